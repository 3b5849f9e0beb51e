/* peak.c: see peak.h. */
#define _POSIX_C_SOURCE 200809L
#include "bench/cpu/peak.h"

#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 7 };

double bench_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the peak: independent multiply-adds in registers ---- */

#define CHAINS 12 /* latency 4, two a cycle: 8 are enough */
#define PEAK_LOOP(TYPE, SET, STEP)                                                                                     \
    TYPE sum[CHAINS];                                                                                                  \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = SET;                                            \
    for (long n = 0; n < steps; n++) {                                                                                 \
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) {                                                    \
            sum[i] = STEP;                                                                                             \
            __asm__ volatile("" : "+v"(sum[i])); /* keeps it in a register, alive */                                   \
        }                                                                                                              \
    }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void peak_avx2(long steps) {
    const __m256 x = _mm256_set1_ps(0.5f);
    PEAK_LOOP(__m256, _mm256_setzero_ps(), _mm256_fmadd_ps(x, x, sum[i]))
}

__attribute__((target("avx512f"))) static void peak_avx512(long steps) {
    const __m512 x = _mm512_set1_ps(0.5f);
    PEAK_LOOP(__m512, _mm512_setzero_ps(), _mm512_fmadd_ps(x, x, sum[i]))
}

__attribute__((target("avx512f,avx512bf16"))) static void peak_avx512_bf16(long steps) {
    const __m512bh x = (__m512bh)_mm512_set1_epi32(0x3f003f00);
    PEAK_LOOP(__m512, _mm512_setzero_ps(), _mm512_dpbf16_ps(sum[i], x, x))
}
#endif

static const struct Peak {
    const char *kernels; /* amp_product_kernels.name */
    amp_dtype operand;
    double flop; /* of one step of CHAINS */
    void (*run)(long steps);
} peaks[] = {
#if defined(__x86_64__)
    {"avx2", AMP_DT_F32, CHAINS * 8 * 2.0, peak_avx2},
    {"avx2", AMP_DT_BF16, CHAINS * 8 * 2.0, peak_avx2},
    {"avx512", AMP_DT_F32, CHAINS * 16 * 2.0, peak_avx512},
    {"avx512", AMP_DT_BF16, CHAINS * 16 * 2.0, peak_avx512},
    {"avx512_bf16", AMP_DT_BF16, CHAINS * 16 * 4.0, peak_avx512_bf16},
#endif
    {NULL, AMP_DT_NONE, 0, NULL}};

double bench_peak(const amp_product_kernels *kernels) {
    const struct Peak *peak = peaks;
    while (peak->kernels && (strcmp(peak->kernels, kernels->name) || peak->operand != kernels->operand)) peak++;
    if (!peak->kernels) return 0;
    const long steps = 1000000;
    double best = 1e30;
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_seconds();
        peak->run(steps);
        double time = bench_seconds() - start;
        if (time < best) best = time;
    }
    return peak->flop * (double)steps / best * 1e-9;
}
