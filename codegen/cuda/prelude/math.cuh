/* math.cuh: elementary functions, operation by operation those of the CPU's kernels (whose comments say where the polynomials
 * come from), so that they give the same bits as with x86-64-v3.  In units in the last place of f32:
 *
 *   exp 1   log 1   tanh 1.5   erf 2.5   pow 0.501   sqrt, /, +, -, * correctly rounded
 */
INLINE float fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#define POLY(r, x, c) ((r) = fma_f32((r), (x), (c)))

/* The larger; NaN where either is NaN; the second of equals. */
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

INLINE float abs_f32(float x) { return float_of(bits_of(x) & 0x7FFFFFFFu); }
INLINE double abs_f64(double x) { return __longlong_as_double(__double_as_longlong(x) & 0x7FFFFFFFFFFFFFFFLL); }
INLINE int32_t abs_i32(int32_t x) { return x < 0 ? -x : x; }
INLINE float sqrt_f32(float x) { return __fsqrt_rn(x); }
INLINE double sqrt_f64(double x) { return __dsqrt_rn(x); }
INLINE int32_t finite_f32(float x) { return (bits_of(x) & 0x7FFFFFFFu) < 0x7F800000u; }
INLINE int32_t finite_f64(double x) { return x - x == 0.0; }

/* x = n ln 2 + r, |r| <= ln 2 / 2;  e^x = 2^n (1 + r + r^2 P(r)).  2^n goes on in two factors, so that the last one rounds
 * once into the subnormals. */
INLINE float exp_f32(float x) {
    const float t = fma_f32(x, 0x1.715476p0f, 0x1.8p23f), n = t - 0x1.8p23f;
    const int32_t k = (int32_t)(bits_of(t) - 0x4B400000u), k1 = k >> 1;
    float r = fma_f32(n, -0x1.62ep-1f, x);
    r = fma_f32(n, -0x1.0bfbe8p-15f, r);
    float p = 0x1.6a4d6ep-10f;
    POLY(p, r, 0x1.123e58p-7f);
    POLY(p, r, 0x1.5558b8p-5f);
    POLY(p, r, 0x1.55548cp-3f);
    POLY(p, r, 0x1.fffffcp-2f);
    p = fma_f32(p, r * r, r) + 1.0f;
    const float y = p * float_of((uint32_t)(k1 + 127) << 23) * float_of((uint32_t)(k - k1 + 127) << 23);
    const float high = x > 0x1.62e42ep6f ? INF : y;
    return x < -0x1.9fe368p6f ? 0.0f : high;
}

/* x = 2^n m, sqrt(1/2) <= m < sqrt(2), f = m - 1;  log x = n ln 2 + f - f^2 / 2 + f^3 P(f). */
INLINE float log_f32(float x) {
    const bool tiny = x < 0x1p-126f;
    const int32_t scaled = (int32_t)bits_of(tiny ? x * 0x1p23f : x), k = (scaled - 0x3F3504F3) >> 23;
    const float f = float_of((uint32_t)scaled - ((uint32_t)k << 23)) - 1.0f, n = (float)(k + (tiny ? -23 : 0));
    float p = 0x1.147204p-4f;
    POLY(p, f, -0x1.de00e4p-4f);
    POLY(p, f, 0x1.e6bff2p-4f);
    POLY(p, f, -0x1.fc28dep-4f);
    POLY(p, f, 0x1.233ba4p-3f);
    POLY(p, f, -0x1.555c44p-3f);
    POLY(p, f, 0x1.99a476p-3f);
    POLY(p, f, -0x1.000006p-2f);
    POLY(p, f, 0x1.555548p-2f);
    const float half_square = 0.5f * f * f;
    const float tail = fma_f32(n, 0x1.7f7d1cp-20f, f * f * f * p); /* ln 2 = 0x1.62e4p-1 + 0x1.7f7d1cp-20 */
    const float y = fma_f32(n, 0x1.62e4p-1f, f + (tail - half_square));
    if (x > 0.0f && x < INF) return y;
    if (x != x || x == INF) return x;
    return x == 0.0f ? -INF : NOT_A_NUMBER;
}

/* |x| < 0.625: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1). */
INLINE float tanh_f32(float x) {
    const uint32_t sign = bits_of(x) & 0x80000000u;
    const float a = abs_f32(x), z = x * x;
    float p = -0x1.750ce4p-8f;
    POLY(p, z, 0x1.51f8cep-6f);
    POLY(p, z, -0x1.b835a4p-5f);
    POLY(p, z, 0x1.1106f6p-3f);
    POLY(p, z, -0x1.555532p-2f);
    const float small = fma_f32(x * z, p, x), large = 1.0f - 2.0f / (exp_f32(a + a) + 1.0f);
    return a < 0.625f ? small : float_of(bits_of(large) | sign);
}

/* |x| < 1: x + x P(x^2); else 1 - e^-Q(|x| - 2.5), Q a fit of -log erfc; from 4 on it is 1. */
INLINE float erf_f32(float x) {
    const uint32_t sign = bits_of(x) & 0x80000000u;
    const float a = abs_f32(x), z = x * x;
    float p = 0x1.4771fcp-14f;
    POLY(p, z, -0x1.a3515ep-11f);
    POLY(p, z, 0x1.53f224p-8f);
    POLY(p, z, -0x1.b7f71ap-6f);
    POLY(p, z, 0x1.ce2ce6p-4f);
    POLY(p, z, -0x1.81273ep-2f);
    POLY(p, z, 0x1.06eba8p-3f);
    const float small = fma_f32(x, p, x), t = min_f32(a, 4.0f) - 2.5f;
    float q = 0x1.735d44p-16f;
    POLY(q, t, -0x1.ed4170p-15f);
    POLY(q, t, 0x1.cc473ep-12f);
    POLY(q, t, -0x1.1a94f0p-9f);
    POLY(q, t, 0x1.63deb2p-7f);
    POLY(q, t, 0x1.e345fap-1f);
    POLY(q, t, 0x1.569250p2f);
    POLY(q, t, 0x1.f3a2dcp2f);
    const float large = 1.0f - exp_f32(-q);
    return a < 1.0f ? small : float_of(bits_of(large) | sign);
}
