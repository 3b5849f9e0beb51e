/* tensor_core.c: see tensor_core.h. */
#include "fakecuda/alu/tensor_core.h"

#include <math.h>

/* One vector is a row of C, whatever instructions the processor has. */
#define W 8
#define NO_X86
#include "codegen/cpu/prelude/vector.h"

#include "codegen/cpu/prelude/device_block.h"

static int lowest(int type) { return type == PTX_F16 ? -14 : DEVICE_LOWEST; }

/* W numbers of a type, one in each 32 bits; a tf32 is its upper 19. */
INLINE vf numbers(int type, const uint32_t *from) {
    const vi bits = load_i32((const int32_t *)from);
    if (type == PTX_F16) return vf_of_f16(__builtin_convertvector(bits, vh));
    if (type == PTX_BF16) return (vf)(bits << 16);
    return (vf)(type == PTX_TF32 ? bits & ~0x1FFF : bits);
}

INLINE void take(DeviceFactor *to, int type, int k, int lines, const uint32_t *from) {
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < lines; j += W) store_f32(&to->x[i][j], numbers(type, from + i * lines + j));
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static float nearest_f16(double x) {
    return alu_f16_to_f32((uint16_t)alu_pack(&alu_f16, alu_from_double(x), ALU_NEAREST, 0));
}

INLINE vf next_sum(const TensorTask *t, vf sum, const DeviceFactor *a, const DeviceFactor *b, int first, int row) {
    const DeviceTerms of_sum = device_split(sum, lowest(t->sum));
    double exact[W];
    vf next;
    device_block(exact, of_sum, a, b, first, t->block, t->bits, row, 0);
    for (int j = 0; j < W; ++j) next[j] = t->sum == PTX_F16 ? nearest_f16(exact[j]) : device_narrow(exact[j]);
    if (a->special || b->special || any_vi(of_sum.special))
        next = device_specials(next, sum, a, b, first, t->block, row, 0);
    return next;
}

INLINE void multiply(TensorTask *t) {
    DeviceFactor a, b;
    take(&a, t->factor, t->k, TENSOR_M, &t->a[0][0]);
    take(&b, t->factor, t->k, TENSOR_N, &t->b[0][0]);
    device_split_factor(&a, t->k, TENSOR_M, lowest(t->factor));
    device_split_factor(&b, t->k, TENSOR_N, lowest(t->factor));
    for (int row = 0; row < TENSOR_M; ++row) {
        vf sum = numbers(t->sum, t->c[row]);
        for (int first = 0; first < t->k; first += t->block) sum = next_sum(t, sum, &a, &b, first, row);
        store_i32((int32_t *)t->c[row], t->sum == PTX_F16 ? bits_f16(sum) : (vi)sum);
    }
}

static void multiply_anywhere(TensorTask *t) { multiply(t); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void multiply_avx2(TensorTask *t) { multiply(t); }
#endif

void tensor_multiply(TensorTask *t) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        multiply_avx2(t);
        return;
    }
#endif
    multiply_anywhere(t);
}

/* ---- exact sums -------------------------------------------------------------------------------------------------- */

/* Sums of products without any error but one rounding: a fixed-point number that is wide enough for every product. */

/* 2^-352 .. 2^288: products of tf32 numbers are multiples of 2^-272 below 2^256, and have 53 digits as float64. */
enum { DIGITS = 20, DIGIT_BITS = 32, LOWEST_BIT = -352 };

typedef struct Sum {
    int64_t digits[DIGITS]; /* each with its own sign; carries are only made at the end */
} Sum;

static void add(Sum *s, double term) { /* zero, or a normal number within the range */
    uint64_t bits = alu_f64_bits(term);
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0) return;
    int at = exponent - 1075 - LOWEST_BIT, digit = at / DIGIT_BITS;
    bool negative = bits >> 63;
    AluWide shifted = (AluWide)((bits & ((1ull << 52) - 1)) | 1ull << 52) << (at % DIGIT_BITS);
    for (int i = 0; i < 3; ++i) {
        int64_t part = (int64_t)(uint32_t)(shifted >> (DIGIT_BITS * i));
        s->digits[digit + i] += negative ? -part : part;
    }
}

/* Digits between 0 and 2^32 - 1, but for the sign of the last. */
static void carry(Sum *s) {
    for (int i = 0; i + 1 < DIGITS; ++i) {
        int64_t up = s->digits[i] >> DIGIT_BITS;
        s->digits[i] &= 0xffffffff;
        s->digits[i + 1] += up;
    }
}

static AluValue value(Sum *s) {
    carry(s);
    bool negative = s->digits[DIGITS - 1] < 0;
    if (negative) {
        for (int i = 0; i < DIGITS; ++i) s->digits[i] = -s->digits[i];
        carry(s);
    }
    int top = DIGITS - 1;
    while (top >= 0 && s->digits[top] == 0) --top;
    if (top < 0) return alu_from_integer(0, false);
    AluWide sig = 0;
    bool below = false;
    for (int i = 0; i <= top; ++i) {
        int place = i - (top - 3); /* four digits are kept */
        if (place >= 0) sig |= (AluWide)(uint64_t)s->digits[i] << (DIGIT_BITS * place);
        else below |= s->digits[i] != 0;
    }
    return (AluValue){ALU_NUMBER_, negative, LOWEST_BIT + DIGIT_BITS * (top - 3), sig | below};
}

/* c and row |row| of A times column |column| of B. */
static uint32_t exact_sum(const TensorTask *t, double c, const DeviceFactor *a, const DeviceFactor *b, int row,
                          int column) {
    const AluFormat *to = t->sum == PTX_F16 ? &alu_f16 : &alu_f32;
    Sum sum = {{0}};
    double rough = c; /* cannot overflow */
    add(&sum, isfinite(c) ? c : 0);
    for (int k = 0; k < t->k; ++k) {
        double product = (double)a->x[k][row] * b->x[k][column];
        rough += product;
        add(&sum, isfinite(product) ? product : 0);
    }
    return (uint32_t)alu_pack(to, isfinite(rough) ? value(&sum) : alu_from_double(rough), ALU_NEAREST, 0);
}

void tensor_multiply_exact(TensorTask *t) {
    DeviceFactor a, b;
    take(&a, t->factor, t->k, TENSOR_M, &t->a[0][0]);
    take(&b, t->factor, t->k, TENSOR_N, &t->b[0][0]);
    for (int row = 0; row < TENSOR_M; ++row) {
        const vf c = numbers(t->sum, t->c[row]);
        for (int j = 0; j < TENSOR_N; ++j) t->c[row][j] = exact_sum(t, c[j], &a, &b, row, j);
    }
}
