/* device_block.h: how tensor cores of a GPU add (docs/design/sums.md).  Kernels of the CPU that add alike have this
 * text (device_sums.h), and so has the stand-in for a GPU (fakecuda/alu/tensor_core.c).  vector.h comes before it.
 *
 * k is cut into blocks of a number of elements, in order.  Of a block and the sum so far c, with products of
 * significands s = sa sb and exponents e = ea + eb, which are not normalised (1 <= s < 4):
 *
 *   E = max(-126, the largest e, the exponent of c)           a zero has none
 *   S = sum of trunc(s 2^(e - E + bits)), c among them        integers: in any order
 *   c = S 2^(E - bits), cut off after 24 digits               of type f16: rounded to the nearest
 *
 * A number below the normal ones of its type has the exponent of the smallest.  With an infinity or NaN in a block, c
 * is the infinity or NaN that the sum in float64 is.  A sum of nothing but zeros is +0.
 *
 * The length of a block and |bits| are the architecture's (codegen/cpu/cpu_sums.c, fakecuda/alu/mma.c).
 */

enum { DEVICE_STEP = 16, DEVICE_NOTHING = -4096, DEVICE_LOWEST = -126 };

/* 16 elements of k of 32 lines. */
typedef struct DeviceFactor {
    float x[DEVICE_STEP][32], sig[DEVICE_STEP][32];
    int32_t exp[DEVICE_STEP][32];
    int special; /* some element is infinite or NaN */
} __attribute__((aligned(64))) DeviceFactor;

/* ---- numbers in parts -------------------------------------------------------------------------------------------- */

typedef struct DeviceTerms {
    vf sig; /* in [1, 2), below 1 where the number is less than the normal ones; with its sign */
    vi exp, special;
} DeviceTerms;

/* |lowest| is the exponent of the smallest normal number of the type. */
INLINE DeviceTerms device_split(vf x, int lowest) {
    const vi bits = (vi)x, size = bits & 0x7FFFFFFF, biased = size >> 23;
    const vi special = biased == 255, small = biased < lowest + 127;
    const vf raised = x * (vf)splat_i((127 - lowest) << 23); /* x 2^-lowest */
    const vf sig = select_vf(small, raised, (vf)((bits & (int32_t)0x807FFFFF) | 0x3F800000));
    const vi exp = select_vi(small, splat_i(lowest), biased - 127), nothing = special | (size == 0);
    return (DeviceTerms){keep_vf(sig, ~nothing), select_vi(nothing, splat_i(DEVICE_NOTHING), exp), special};
}

INLINE void device_split_factor(DeviceFactor *x, int steps, int lines, int lowest) {
    vi special = {0};
    for (int i = 0; i < steps; i++)
        for (int j = 0; j < lines; j += W) {
            const DeviceTerms t = device_split(load_f32(&x->x[i][j]), lowest);
            store_f32(&x->sig[i][j], t.sig);
            store_i32(&x->exp[i][j], t.exp);
            special |= t.special;
        }
    x->special = any_vi(special);
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

/* A term in units of 2^(E - bits); |at|: its exponent in them, and 127. */
INLINE vi device_cut(vf sig, vi at) { return int_vf(sig * (vf)((at & (at > 0)) << 23)); }

/* Makes S 2^(E - bits) of elements |first| to |first + block| of k, row |r| of A and W columns of B from |c| on. */
INLINE void device_block(double exact[W], DeviceTerms sum, const DeviceFactor *a, const DeviceFactor *b, int first,
                         int block, int bits, int64_t r, int64_t c) {
    vi largest = select_vi(sum.exp > DEVICE_LOWEST, sum.exp, splat_i(DEVICE_LOWEST));
    for (int k = first; k < first + block; k++) {
        const vi exp = load_i32(&b->exp[k][c]) + a->exp[k][r];
        largest = select_vi(exp > largest, exp, largest);
    }
    const vi shift = bits + 127 - largest, exp = largest + (1023 - bits);
    vi cut[2]; /* eight terms below 2^27 fit 31 bits */
    for (int half = 0; half < 2; half++) {
        const int end = half == 0 && block > 8 ? first + 8 : first + block;
        vi sums = {0};
        for (int k = first + 8 * half; k < end; k++)
            sums += device_cut(load_f32(&b->sig[k][c]) * a->sig[k][r], load_i32(&b->exp[k][c]) + a->exp[k][r] + shift);
        cut[half] = sums;
    }
    const vi of_sum = device_cut(sum.sig, sum.exp + shift);
    for (int l = 0; l < W; l++) {
        const int64_t unit_bits = (int64_t)exp[l] << 52;
        double unit;
        __builtin_memcpy(&unit, &unit_bits, sizeof unit);
        exact[l] = ((double)of_sum[l] + cut[0][l] + cut[1][l]) * unit;
    }
}

/* A sum as f32: cut off after 24 digits, and below what f32 holds. */
INLINE float device_narrow(double sum) {
    int64_t bits;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    bits &= ~(((int64_t)1 << 29) - 1);
    __builtin_memcpy(&sum, &bits, sizeof bits);
    const double size = __builtin_fabs(sum);
    if (size >= 0x1p-126 || size == 0) return (float)sum;
    const float cut = (float)(int64_t)(size * 0x1p149) * 0x1p-149f;
    return sum < 0 ? -cut : cut;
}

/* The columns in whose block there is an infinity or NaN: float64 holds each sum of the others.  INLINE: fakecuda's
 * caller is compiled for AVX2, and a function that is not would get its vectors another way. */
INLINE vf device_specials(vf found, vf sum, const DeviceFactor *a, const DeviceFactor *b, int first, int block,
                          int64_t r, int64_t c) {
    vi bits = (vi)found;
    for (int l = 0; l < W; l++) {
        double plain = sum[l];
        for (int k = first; k < first + block; k++) plain += (double)a->x[k][r] * b->x[k][c + l];
        if (plain != plain) bits[l] = 0x7FFFFFFF;
        else if (plain - plain != 0) bits[l] = plain > 0 ? 0x7F800000 : (int32_t)0xFF800000;
    }
    return (vf)bits;
}
