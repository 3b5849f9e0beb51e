/* math.h: elementary functions on vectors.  The bounds are measured against long double over all finite arguments in
 * steps (tests/codegen/math_test.cc), in units in the last place of the f32 result, on every instruction set:
 *
 *   exp 1   log 1   tanh 1.5   erf 2.5   sqrt, /, +, -, * correctly rounded
 *
 * The polynomials are minimax fits by Lawson's iteration, each coefficient rounded to f32 before the next is fitted;
 * reductions follow W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980.
 */

/* a * b + c.  One rounding where the processor has it, two elsewhere; always spelled out, never left to the
 * compiler. */
#if GCC_X86 && W == 16
INLINE vf fma_vf(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
INLINE vf sqrt_vf(vf a) { return __builtin_ia32_sqrtps512_mask(a, a, -1, 4); }
#elif GCC_X86 && W == 8
INLINE vf fma_vf(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }
INLINE vf sqrt_vf(vf a) { return __builtin_ia32_sqrtps256(a); }
#elif GCC_X86
INLINE vf fma_vf(vf a, vf b, vf c) { return a * b + c; }
INLINE vf sqrt_vf(vf a) { return __builtin_ia32_sqrtps(a); }
#else
INLINE vf fma_vf(vf a, vf b, vf c) {
#ifdef __FMA__
    for (int i = 0; i < W; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
}
INLINE vf sqrt_vf(vf a) {
    for (int i = 0; i < W; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
#endif

#define POLY(r, x, c) ((r) = fma_vf((r), (x), splat_f(c)))
#define INF __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")

INLINE vf plus_vf(vf a, vf b) { return a + b; }
INLINE vi plus_vi(vi a, vi b) { return a + b; }
/* The larger; NaN where either is NaN; the second of equals. */
INLINE vf max_vf(vf a, vf b) { return select_vf((a > b) | nan_vf(a), a, b); }
INLINE vf min_vf(vf a, vf b) { return select_vf((a < b) | nan_vf(a), a, b); }
INLINE vi max_vi(vi a, vi b) { return select_vi(a > b, a, b); }
INLINE vi min_vi(vi a, vi b) { return select_vi(a < b, a, b); }
INLINE vi finite_vf(vf v) { return magnitude_bits(v) < 0x7F800000; }

/* x = n ln 2 + r, |r| <= ln 2 / 2;  e^x = 2^n (1 + r + r^2 P(r)).  2^n goes on in two factors, so that the last one
 * rounds once into the subnormals. */
INLINE vf exp_vf(vf x) {
    const vf shifter = splat_f(0x1.8p23f);
    const vf t = fma_vf(x, splat_f(0x1.715476p0f), shifter), n = t - shifter;
    const vi k = (vi)t - 0x4B400000, k1 = k >> 1;
    vf r = fma_vf(n, splat_f(-0x1.62ep-1f), x);
    r = fma_vf(n, splat_f(-0x1.0bfbe8p-15f), r);
    vf p = splat_f(0x1.6a4d6ep-10f);
    POLY(p, r, 0x1.123e58p-7f);
    POLY(p, r, 0x1.5558b8p-5f);
    POLY(p, r, 0x1.55548cp-3f);
    POLY(p, r, 0x1.fffffcp-2f);
    p = fma_vf(p, r * r, r) + 1.0f;
    const vf y = p * (vf)((k1 + 127) << 23) * (vf)((k - k1 + 127) << 23);
    const vf high = select_vf(x > 0x1.62e42ep6f, splat_f(INF), y);
    return select_vf(x < -0x1.9fe368p6f, splat_f(0.0f), high);
}

/* x = 2^n m, sqrt(1/2) <= m < sqrt(2), f = m - 1;  log x = n ln 2 + f - f^2 / 2 + f^3 P(f). */
INLINE vf log_vf(vf x) {
    const vi tiny = x < 0x1p-126f;
    const vf scaled = select_vf(tiny, x * 0x1p23f, x);
    const vi k = ((vi)scaled - 0x3F3504F3) >> 23;
    const vf f = (vf)((vi)scaled - (k << 23)) - 1.0f;
    const vf n = float_vi(k + (tiny & -23));
    vf p = splat_f(0x1.147204p-4f);
    POLY(p, f, -0x1.de00e4p-4f);
    POLY(p, f, 0x1.e6bff2p-4f);
    POLY(p, f, -0x1.fc28dep-4f);
    POLY(p, f, 0x1.233ba4p-3f);
    POLY(p, f, -0x1.555c44p-3f);
    POLY(p, f, 0x1.99a476p-3f);
    POLY(p, f, -0x1.000006p-2f);
    POLY(p, f, 0x1.555548p-2f);
    const vf half_square = 0.5f * f * f;
    const vf tail = fma_vf(n, splat_f(0x1.7f7d1cp-20f), f * f * f * p); /* ln 2 = 0x1.62e4p-1 + 0x1.7f7d1cp-20 */
    const vf y = fma_vf(n, splat_f(0x1.62e4p-1f), f + (tail - half_square));
    vf special = select_vf(x == 0.0f, splat_f(-INF), splat_f(NOT_A_NUMBER)); /* zero; negative or NaN */
    special = select_vf(x == INF, x, special);
    return select_vf((x > 0.0f) & (x < INF), y, select_vf(nan_vf(x), x, special));
}

/* |x| < 0.625: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1). */
INLINE vf tanh_vf(vf x) {
    const vi sign = (vi)x & (int32_t)0x80000000;
    const vf a = (vf)magnitude_bits(x), z = x * x;
    vf p = splat_f(-0x1.750ce4p-8f);
    POLY(p, z, 0x1.51f8cep-6f);
    POLY(p, z, -0x1.b835a4p-5f);
    POLY(p, z, 0x1.1106f6p-3f);
    POLY(p, z, -0x1.555532p-2f);
    const vf small = fma_vf(x * z, p, x);
    const vf large = 1.0f - 2.0f / (exp_vf(a + a) + 1.0f);
    return select_vf(a < 0.625f, small, (vf)((vi)large | sign));
}

/* |x| < 1: x + x P(x^2); else 1 - e^-Q(|x| - 2.5), Q a fit of -log erfc; from 4 on it is 1. */
INLINE vf erf_vf(vf x) {
    const vi sign = (vi)x & (int32_t)0x80000000;
    const vf a = (vf)magnitude_bits(x), z = x * x;
    vf p = splat_f(0x1.4771fcp-14f);
    POLY(p, z, -0x1.a3515ep-11f);
    POLY(p, z, 0x1.53f224p-8f);
    POLY(p, z, -0x1.b7f71ap-6f);
    POLY(p, z, 0x1.ce2ce6p-4f);
    POLY(p, z, -0x1.81273ep-2f);
    POLY(p, z, 0x1.06eba8p-3f);
    const vf small = fma_vf(x, p, x);
    const vf t = min_vf(a, splat_f(4.0f)) - 2.5f;
    vf q = splat_f(0x1.735d44p-16f);
    POLY(q, t, -0x1.ed4170p-15f);
    POLY(q, t, 0x1.cc473ep-12f);
    POLY(q, t, -0x1.1a94f0p-9f);
    POLY(q, t, 0x1.63deb2p-7f);
    POLY(q, t, 0x1.e345fap-1f);
    POLY(q, t, 0x1.569250p2f);
    POLY(q, t, 0x1.f3a2dcp2f);
    const vf large = 1.0f - exp_vf(-q);
    return select_vf(a < 1.0f, small, (vf)((vi)large | sign));
}

INLINE vf abs_vf(vf v) { return (vf)magnitude_bits(v); }
INLINE vi abs_vi(vi v) { return select_vi(v < 0, -v, v); }

/* ---- powers: in double, so that the product of the exponent and the logarithm keeps its digits ---- */

typedef double vd __attribute__((vector_size(8 * W)));
typedef int64_t vl __attribute__((vector_size(8 * W)));

INLINE vd splat_d(double x) { return x - (vd){0}; }
INLINE vd select_vd(vl mask, vd a, vd b) { return (vd)(((vl)a & mask) | ((vl)b & ~mask)); }

/* a = 2^k m, sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1);  log a = k ln 2 + 2 (s + s^3/3 + s^5/5 + ..), a finite, > 0. */
INLINE vd log_vd(vd a) {
    const vl k = ((vl)a - INT64_C(0x3FE6A09E667F3BCD)) >> 52;
    const vd m = (vd)((vl)a - (k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
    vd p = splat_d(1.0 / 19.0);
    for (int i = 17; i >= 1; i -= 2) p = p * z + 1.0 / i;
    return __builtin_convertvector(k, vd) * 0x1.62e42fefa39efp-1 + (s + s) * p;
}

/* y = n ln 2 + r;  e^y = 2^n (1 + r + r^2/2 + ..), |y| <= 200. */
INLINE vd exp_vd(vd y) {
    const vd shifter = splat_d(0x1.8p52), t = y * 0x1.71547652b82fep0 + shifter, n = t - shifter;
    const vd r = (y - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    vd p = splat_d(1.0);
    for (int i = 12; i >= 1; i--) p = p * r * (1.0 / i) + 1.0;
    return p * (vd)(((vl)t << 52) + INT64_C(0x3FF0000000000000));
}

/* x^e with C's edge cases, e a constant.  Less than one unit in the last place of f32 away. */
INLINE vf pow_vf(vf x, double e) {
    const int small = e < 0x1p52 && e > -0x1p52, whole = !small || e == (double)(int64_t)e,
              odd = small && whole && ((int64_t)e & 1);
    const vf a = abs_vf(x);
    const vi sign = odd ? (vi)x & (int32_t)0x80000000 : (vi){0};
    const vf zero = splat_f(e > 0 ? 0.0f : INF), infinite = splat_f(e > 0 ? INF : 0.0f);
    if (e == 0.0) return splat_f(1.0f);
    if (e != e) return splat_f(NOT_A_NUMBER);
    const vi plain = (a > 0.0f) & (a < INF);
    vd y = log_vd(__builtin_convertvector(select_vf(plain, a, splat_f(1.0f)), vd)) * e;
    y = select_vd(y > 200.0, splat_d(200.0), select_vd(y < -200.0, splat_d(-200.0), y));
    vf r = __builtin_convertvector(exp_vd(y), vf);
    r = select_vf(a == 1.0f, splat_f(1.0f), r);
    r = select_vf(a == 0.0f, zero, select_vf(a == INF, infinite, r));
    r = (vf)((vi)r | sign);
    r = select_vf(whole ? (vi){0} : plain & (x < 0.0f), splat_f(NOT_A_NUMBER), r);
    return select_vf(nan_vf(x), x, r);
}

/* ---- scalars ---- */

INLINE float exp_f32(float x) { return exp_vf(splat_f(x))[0]; }
INLINE float log_f32(float x) { return log_vf(splat_f(x))[0]; }
INLINE float tanh_f32(float x) { return tanh_vf(splat_f(x))[0]; }
INLINE float erf_f32(float x) { return erf_vf(splat_f(x))[0]; }
INLINE float pow_f32(float x, double e) { return pow_vf(splat_f(x), e)[0]; }
INLINE float abs_f32(float x) { return __builtin_fabsf(x); }
INLINE double abs_f64(double x) { return __builtin_fabs(x); }
INLINE int32_t abs_i32(int32_t x) { return x < 0 ? -x : x; }
INLINE float sqrt_f32(float x) { return __builtin_sqrtf(x); }
INLINE double sqrt_f64(double x) { return __builtin_sqrt(x); }
INLINE int32_t finite_f32(float x) { return x - x == 0.0f; }
INLINE int32_t finite_f64(double x) { return x - x == 0.0; }
#define DEFINE_MAX_MIN(name, type)                                                                                     \
    INLINE type max_##name(type a, type b) { return a > b || a != a ? a : b; }                                         \
    INLINE type min_##name(type a, type b) { return a < b || a != a ? a : b; }
DEFINE_MAX_MIN(f32, float)
DEFINE_MAX_MIN(f64, double)
#define DEFINE_INT_MAX_MIN(name, type)                                                                                 \
    INLINE type max_##name(type a, type b) { return a > b ? a : b; }                                                   \
    INLINE type min_##name(type a, type b) { return a < b ? a : b; }
DEFINE_INT_MAX_MIN(i32, int32_t)
DEFINE_INT_MAX_MIN(i64, int64_t)

/* x = k pi / 2 + r, |r| <= pi / 4, by three parts of pi / 2; the Taylor series of cos or sin of r.  For schedules: |x| up to 10^5. */
INLINE double cos_f64(double x) {
    const double k = (x * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
    const double r = ((x - k * 0x1.921fb544p0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69, z = r * r;
    double cosine = 1.0, sine = 1.0;
    if (!(x < 1e5 && x > -1e5)) return (x - x) / (x - x);
    for (int i = 16; i >= 2; i -= 2) cosine = 1.0 - cosine * z / (i * (i - 1));
    for (int i = 17; i >= 3; i -= 2) sine = 1.0 - sine * z / (i * (i - 1));
    switch ((int64_t)k & 3) {
    case 0: return cosine;
    case 1: return -r * sine;
    case 2: return -cosine;
    default: return r * sine;
    }
}

/* base^e by repeated squaring, lowest bit first; 1 for e <= 0. */
INLINE double power_f64(double base, int64_t e) {
    double r = 1.0;
    for (; e > 0; e >>= 1, base *= base)
        if (e & 1) r *= base;
    return r;
}

/* ---- sums along a row: 16 partial sums of the columns c % 16, then c and c + 8, + 4, + 2, + 1 are added ------------- */

#if W == 16
#define LANES_DOWN(v, n)                                                                                               \
    __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define EIGHT_LANES(p, combine) combine((p)[0], LANES_DOWN((p)[0], 8))
#elif W == 8
#define LANES_DOWN(v, n) __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, 4, 5, 6, 7)
#define EIGHT_LANES(p, combine) combine((p)[0], (p)[1])
#else
#define LANES_DOWN(v, n) __builtin_shufflevector(v, v, n, n + 1, 2, 3)
#endif
/* Only the lanes that lead to lane 0 are meant. */
#if W == 4
#define FOUR_LANES(p, combine) combine(combine((p)[0], (p)[2]), combine((p)[1], (p)[3]))
#else
#define FOUR_LANES(p, combine) combine(EIGHT_LANES(p, combine), LANES_DOWN(EIGHT_LANES(p, combine), 4))
#endif
#define DEFINE_TREE(name, vector, type)                                                                                \
    INLINE type tree_##name(const vector *partial) {                                                                   \
        vector t = FOUR_LANES(partial, name);                                                                          \
        t = name(t, LANES_DOWN(t, 2));                                                                                 \
        t = name(t, LANES_DOWN(t, 1));                                                                                 \
        return t[0];                                                                                                   \
    }
DEFINE_TREE(plus_vf, vf, float)
DEFINE_TREE(max_vf, vf, float)
DEFINE_TREE(min_vf, vf, float)
DEFINE_TREE(plus_vi, vi, int32_t)
DEFINE_TREE(max_vi, vi, int32_t)
DEFINE_TREE(min_vi, vi, int32_t)
