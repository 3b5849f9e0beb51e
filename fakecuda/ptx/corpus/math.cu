// Math functions, precise and approximate, f32 and f64.
extern "C" __global__ void math32(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], s = 0;
    s += expf(v) + exp2f(v) + exp10f(v) + expm1f(v) + logf(v) + log2f(v) + log10f(v) + log1pf(v);
    s += sinf(v) + cosf(v) + tanf(v) + asinf(v) + acosf(v) + atanf(v) + atan2f(v, 2.f) + sinhf(v) + coshf(v) + tanhf(v);
    s += sqrtf(v) + rsqrtf(v) + cbrtf(v) + powf(v, 1.7f) + fmodf(v, 3.f) + remainderf(v, 5.f) + hypotf(v, 2.f);
    s += floorf(v) + ceilf(v) + truncf(v) + rintf(v) + roundf(v) + fabsf(v) + copysignf(v, -1.f) + fmaxf(v, 1.f) + fminf(v, 2.f);
    s += erff(v) + erfcf(v) + lgammaf(v) + tgammaf(v) + ldexpf(v, 3) + v / 3.1f + 1.f / v;
    s += __saturatef(v) + __fdividef(v, 2.5f) + __fadd_rz(v, 1.f) + __fmul_ru(v, 1.1f) + __fmaf_rd(v, 2.f, 3.f);
    s += (float)__float2int_rn(v) + (float)__float2uint_rz(v) + (float)__float2ll_rn(v) + __int_as_float(i) + (float)isnan(v);
    y[i] = s;
}
extern "C" __global__ void math64(double *y, const double *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = exp(x[i]) + sqrt(x[i]) / (1.0 + x[i] * x[i]) + sin(x[i]) + pow(x[i], 3.5) + fma(x[i], 2.0, 0.25) + (double)(long long)x[i] + (float)x[i];
}
