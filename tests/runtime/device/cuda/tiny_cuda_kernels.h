/* tiny_cuda_kernels.h: the kernels of tiny_cuda.c as CUDA C.  Sums go in the order of the index; |n| samples, 40
 * features, 10 classes. */
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_TINY_CUDA_KERNELS_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_TINY_CUDA_KERNELS_H

#define TINY_CUDA_PRELUDE                                                                                              \
    "typedef long long i64;\n"                                                                                         \
    "enum { K = 40, C = 10, IGNORE = -100, INTERVAL = 4 };\n"                                                          \
    "#define INDEX ((i64)blockIdx.x * blockDim.x + threadIdx.x)\n"                                                     \
    "#define KERNEL extern \"C\" __global__ void\n"                                                                    \
    "__device__ static bool is_finite(float v) { return v - v == 0; }\n"

static const char count_iteration_text[] = "KERNEL count_iteration(i64 *iteration, i64 n) { ++*iteration; }\n";

static const char linear_text[] = "KERNEL linear(const float *x, const float *wt, const float *b, float *z, i64 n) {\n"
                                  "    i64 i = INDEX;\n"
                                  "    if (i >= n * C) return;\n"
                                  "    float sum = 0;\n"
                                  "    for (int k = 0; k < K; k++) sum += x[i / C * K + k] * wt[k * C + i % C];\n"
                                  "    z[i] = sum + b[i % C];\n"
                                  "}\n";

/* The result in f16. */
static const char linear_half_text[] =
    "KERNEL linear_half(const float *x, const float *wt, const float *b, unsigned short *z, i64 n) {\n"
    "    i64 i = INDEX;\n"
    "    if (i >= n * C) return;\n"
    "    float sum = 0;\n"
    "    unsigned short half;\n"
    "    for (int k = 0; k < K; k++) sum += x[i / C * K + k] * wt[k * C + i % C];\n"
    "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(half) : \"f\"(sum + b[i % C]));\n"
    "    z[i] = half;\n"
    "}\n";

static const char cross_entropy_text[] =
    "KERNEL cross_entropy(const float *logits, const int *targets, const float *scale, float *losses, float *hits,\n"
    "                     float *dlogits, i64 n) {\n"
    "    i64 r = INDEX;\n"
    "    if (r >= n) return;\n"
    "    const float *z = logits + r * C;\n"
    "    int target = targets[r], best = 0;\n"
    "    for (int c = 1; c < C; c++)\n"
    "        if (z[c] > z[best]) best = c;\n"
    "    float sum = 0;\n"
    "    for (int c = 0; c < C; c++) sum += expf(z[c] - z[best]);\n"
    "    for (int c = 0; c < C; c++) {\n"
    "        float d = target == IGNORE ? 0 : expf(z[c] - z[best]) / sum - (c == target);\n"
    "        dlogits[r * C + c] = d / (float)n * *scale;\n"
    "    }\n"
    "    losses[r] = target == IGNORE ? 0 : z[best] + logf(sum) - z[target];\n"
    "    hits[r] = target == best;\n"
    "}\n";

static const char mean_text[] = "KERNEL mean(const float *values, float *out, i64 n) {\n"
                                "    float sum = 0;\n"
                                "    for (i64 r = 0; r < n; r++) sum += values[r];\n"
                                "    *out = sum / (float)n;\n"
                                "}\n";

static const char bias_gradient_text[] = "KERNEL bias_gradient(const float *dlogits, float *db, int *flag, i64 n) {\n"
                                         "    int c = threadIdx.x;\n"
                                         "    if (c >= C) return;\n"
                                         "    float sum = 0;\n"
                                         "    for (i64 r = 0; r < n; r++) sum += dlogits[r * C + c];\n"
                                         "    db[c] = sum;\n"
                                         "    if (!is_finite(sum)) *flag = 1;\n"
                                         "}\n";

/* |grad| is there only where the session keeps values. */
static const char weight_gradient_text[] =
    "KERNEL weight_gradient(const float *dlogits, const float *x, const float *scale, float *dw, float *grad,\n"
    "                       int *flag, i64 n) {\n"
    "    int i = (int)INDEX;\n"
    "    if (i >= C * K) return;\n"
    "    float sum = 0;\n"
    "    for (i64 r = 0; r < n; r++) sum += dlogits[r * C + i / K] * x[r * K + i % K];\n"
    "    dw[i] = sum;\n"
    "    if (grad) grad[i] = sum / *scale;\n"
    "    if (!is_finite(sum)) *flag = 1;\n"
    "}\n";

static const char update_scaler_text[] =
    "KERNEL update_scaler(const int *flag, float *scale, float *inverse, int *tracker, int *floor_hits, i64 *step,\n"
    "                     int *ok, int *ok_out, i64 n) {\n"
    "    *ok = *ok_out = !*flag;\n"
    "    *inverse = 1 / *scale;\n"
    "    *step += *ok;\n"
    "    if (!*ok) {\n"
    "        *tracker = 0;\n"
    "        if (*scale <= 1) ++*floor_hits;\n"
    "        else *scale *= 0.5f;\n"
    "    } else if (++*tracker == INTERVAL) {\n"
    "        *tracker = 0;\n"
    "        *scale *= 2;\n"
    "    }\n"
    "}\n";

/* Members: (gradient, inverse scale, parameter, momentum, ok). */
static const char update_text[] = "KERNEL update(void *const *operands, i64 n, const i64 *elements) {\n"
                                  "    void *const *o = operands + 5 * blockIdx.y;\n"
                                  "    i64 i = INDEX;\n"
                                  "    if (!*(const int *)o[4] || i >= elements[blockIdx.y]) return;\n"
                                  "    float *p = (float *)o[2], *m = (float *)o[3];\n"
                                  "    m[i] = 0.5f * m[i] + ((const float *)o[0])[i] * *(const float *)o[1];\n"
                                  "    p[i] -= 0.125f * m[i];\n"
                                  "}\n";

static const char transpose_text[] = "KERNEL transpose(const float *w, float *wt, i64 n) {\n"
                                     "    int i = (int)INDEX;\n"
                                     "    if (i < C * K) wt[i % K * C + i / K] = w[i];\n"
                                     "}\n";

#endif
