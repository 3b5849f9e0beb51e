/* near.cuh: elementary functions whose results are rounded to 16 bits, or added up: by the special function unit, a
 * fraction of the instructions of functions.h (codegen/cuda/near.c says where they are called).
 *
 * Bounds of the error, in units in the last place of f32 (tests/codegen/cuda/near_test.cc):
 *
 *   exp 4   tanh 4   erf 4
 *
 * Results below 2^-126 are 0.  The bits differ from functions.h and from the CPU.
 */

/* 2^x within two units in the last place; subnormal results are 0. */
INLINE float exp2_near(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 2^(x log2 e), and what the rounding of that product left out: 2^d = 1 + d ln 2.  Where the product is no exponent of
 * a float there is nothing to add, and infinities have no rest. */
INLINE float near_exp_f32(float x) {
    float t = x * 0x1.715476p0f, size;
    asm("abs.f32 %0, %1;" : "=f"(size) : "f"(t));
    asm("" : "+f"(t)); /* else the compiler multiplies again for -t */
    const float d = fma_f32(x, 0x1.4ae0c0p-26f, fma_f32(x, 0x1.715476p0f, -t));
    const float y = exp2_near(t);
    return size < 128.0f ? fma_f32(y * d, 0x1.62e430p-1f, y) : y;
}

/* 1 / x within a unit in the last place, |x| < 2^126; of infinities 0. */
INLINE float reciprocal_near(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* |x| < 0.625: the polynomial of functions.h; else 1 - 2 / (e^2|x| + 1). */
INLINE float near_tanh_f32(float x) {
    const float a = abs_f32(x), z = x * x;
    float p = -0x1.750ce4p-8f;
    p = fma_f32(p, z, 0x1.51f8cep-6f);
    p = fma_f32(p, z, -0x1.b835a4p-5f);
    p = fma_f32(p, z, 0x1.1106f6p-3f);
    p = fma_f32(p, z, -0x1.555532p-2f);
    const float small = fma_f32(x * z, p, x);
    const float large = 1.0f - 2.0f * reciprocal_near(exp2_near(a * 0x1.715476p1f) + 1.0f);
    return a < 0.625f ? small : float_of(bits_of(large) | (bits_of(x) & 0x80000000u));
}

/* |x| < 1: the function of functions.h; else 1 - 2^-Q(|x| - 2.5), with its other polynomial. */
INLINE float near_erf_f32(float x) {
    const float a = abs_f32(x), z = x * x;
    float p = 0x1.4771fcp-14f;
    p = fma_f32(p, z, -0x1.a3515ep-11f);
    p = fma_f32(p, z, 0x1.53f224p-8f);
    p = fma_f32(p, z, -0x1.b7f71ap-6f);
    p = fma_f32(p, z, 0x1.ce2ce6p-4f);
    p = fma_f32(p, z, -0x1.81273ep-2f);
    p = fma_f32(p, z, 0x1.06eba8p-3f);
    const float small = fma_f32(x, p, x), t = min_f32(a, 4.0f) - 2.5f;
    float q = 0x1.735d44p-16f;
    q = fma_f32(q, t, -0x1.ed4170p-15f);
    q = fma_f32(q, t, 0x1.cc473ep-12f);
    q = fma_f32(q, t, -0x1.1a94f0p-9f);
    q = fma_f32(q, t, 0x1.63deb2p-7f);
    q = fma_f32(q, t, 0x1.e345fap-1f);
    q = fma_f32(q, t, 0x1.569250p2f);
    q = fma_f32(q, t, 0x1.f3a2dcp2f);
    const float large = 1.0f - exp2_near(q * -0x1.715476p0f);
    return a < 1.0f ? small : float_of(bits_of(large) | (bits_of(x) & 0x80000000u));
}
