/* arithmetic.cuh: arithmetic beside C's operators. */
INLINE float fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }

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

/* a - floor(a / b) b; 0 where b is 0. */
INLINE int32_t remainder_i32(int32_t a, int32_t b) {
    const int32_t rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

INLINE float abs_f32(float x) { return float_of(bits_of(x) & 0x7FFFFFFFu); }
INLINE double abs_f64(double x) { return __longlong_as_double(__double_as_longlong(x) & 0x7FFFFFFFFFFFFFFFLL); }
INLINE int32_t abs_i32(int32_t x) { return x < 0 ? -x : x; }
INLINE float sqrt_f32(float x) { return __fsqrt_rn(x); }
INLINE double sqrt_f64(double x) { return __dsqrt_rn(x); }
INLINE int32_t finite_f32(float x) { return (bits_of(x) & 0x7FFFFFFFu) < 0x7F800000u; }
INLINE int32_t finite_f64(double x) { return x - x == 0.0; }
