/* arithmetic.h: arithmetic beside C's operators, on vectors and on single numbers. */

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

#define INF __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")

INLINE vf plus_vf(vf a, vf b) { return a + b; }
INLINE vi plus_vi(vi a, vi b) { return a + b; }
INLINE vf times_vf(vf a, vf b) { return a * b; }
/* The larger; NaN where either is NaN; the second of equals. */
#if GCC_X86 && W == 16
/* The instructions give the second of equals, and where one is NaN; so where the first one is, it stays. */
INLINE vf max_vf(vf a, vf b) {
    return __builtin_ia32_maxps512_mask(a, b, a, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4);
}
INLINE vf min_vf(vf a, vf b) {
    return __builtin_ia32_minps512_mask(a, b, a, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4);
}
#elif GCC_X86 && W == 8
INLINE vf max_vf(vf a, vf b) { return __builtin_ia32_blendvps256(__builtin_ia32_maxps256(a, b), a, (vf)nan_vf(a)); }
INLINE vf min_vf(vf a, vf b) { return __builtin_ia32_blendvps256(__builtin_ia32_minps256(a, b), a, (vf)nan_vf(a)); }
#else
INLINE vf max_vf(vf a, vf b) { return select_vf((a > b) | nan_vf(a), a, b); }
INLINE vf min_vf(vf a, vf b) { return select_vf((a < b) | nan_vf(a), a, b); }
#endif
INLINE vi max_vi(vi a, vi b) { return select_vi(a > b, a, b); }
INLINE vi min_vi(vi a, vi b) { return select_vi(a < b, a, b); }
INLINE vi finite_vf(vf v) { return magnitude_bits(v) < 0x7F800000; }
INLINE vf abs_vf(vf v) { return (vf)magnitude_bits(v); }
INLINE vi abs_vi(vi v) { return select_vi(v < 0, -v, v); }

/* ---- single numbers ---- */

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

/* a - floor(a / b) b; 0 where b is 0. */
INLINE int32_t remainder_i32(int32_t a, int32_t b) {
    const int32_t rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
INLINE vi remainder_vi(vi a, vi b) {
    for (int i = 0; i < W; i++) a[i] = remainder_i32(a[i], b[i]);
    return a;
}

/* The function of single numbers that has the bits of name##_vf. */
#define SCALAR(name)                                                                                                   \
    INLINE float name##_f32(float x) { return name##_vf(splat_f(x))[0]; }
#define SCALAR_DITHERED(type)                                                                                          \
    INLINE float dithered_##type##_f32(float x, float u) { return dithered_##type##_vf(splat_f(x), splat_f(u))[0]; }
#define SCALAR_PAIR(name)                                                                                              \
    INLINE float name##_f32(float x, float y) { return name##_vf(splat_f(x), splat_f(y))[0]; }
#define SCALAR_OF(name, type)                                                                                          \
    INLINE float name##_f32(float x, type e) { return name##_vf(splat_f(x), e)[0]; }
