// Half and bfloat16 values, vectors, predicates, in-place and strided loops.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void __launch_bounds__(256, 2) gelu_half(__half *y, const __half *x, const __half *bias, int n, int c) {
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2; i < n; i += gridDim.x * blockDim.x * 2) {
        __half2 v = *(const __half2 *)(x + i);
        float2 f = __half22float2(v);
        f.x += __half2float(bias[i % c]);
        f.y += __half2float(bias[(i + 1) % c]);
        f.x = 0.5f * f.x * (1.f + erff(f.x * 0.70710678f));
        f.y = 0.5f * f.y * (1.f + erff(f.y * 0.70710678f));
        *(__half2 *)(y + i) = __floats2half2_rn(f.x, f.y);
    }
}
extern "C" __global__ void half_arithmetic(__half2 *y, const __half2 *x) {
    __half2 a = x[threadIdx.x], b = x[threadIdx.x + 32];
    y[threadIdx.x] = __hfma2(a, b, __hadd2(__hmul2(a, a), __hsub2(b, a)));
    if (__hgt(__low2half(a), __high2half(b))) y[0] = __hmax2(a, b);
}
extern "C" __global__ void bfloat(__nv_bfloat16 *y, const __nv_bfloat16 *x, const float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * 0.9f + z[i]);
}
extern "C" __global__ void vectors(float4 *y, const float4 *__restrict__ x, const int4 *k, uchar4 *c, short2 *s, double2 *d) {
    int i = threadIdx.x;
    float4 v = x[i];
    int4 w = k[i];
    y[i] = make_float4(v.x + w.x, v.y * w.y, v.z - w.z, w.w > 3 ? v.w : 0.f);
    c[i] = make_uchar4(w.x, w.y, w.z, 7);
    s[i].x += s[i].y;
    d[i] = make_double2(v.x, v.y);
}
extern "C" __global__ void adamw(float *p, float *m, float *v, __half *h, const float *g, const float *scale, const int *skip, float lr, long n) {
    if (*skip) return;
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = g[i] * *scale, a = m[i] = m[i] * 0.9f + 0.1f * x, b = v[i] = v[i] * 0.999f + 0.001f * x * x;
    p[i] -= lr * (a / (sqrtf(b) + 1e-8f) + 0.01f * p[i]);
    h[i] = __float2half(p[i]);
}
