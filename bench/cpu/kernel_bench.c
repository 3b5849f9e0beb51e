/* kernel_bench.c: see kernel_bench.h. */
#define _DEFAULT_SOURCE
#include "bench/cpu/kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 7 };

static const char *program_name = "bench";

/* Of this thread. */
static double seconds(void) {
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
        double start = seconds();
        peak->run(steps);
        double time = seconds() - start;
        if (time < best) best = time;
    }
    return peak->flop * (double)steps / best * 1e-9;
}

/* ---- the benches ---- */

double bench_gflops(const BenchRun *run) {
    const int repeat = (int)(run->flop_per_round / run->flop) + 1;
    double best = 1e30;
    for (int round = 0; round < run->rounds; round++) {
        double start = seconds();
        for (int i = 0; i < repeat; i++) run->once(run->ctx);
        double time = (seconds() - start) / repeat;
        if (time < best) best = time;
    }
    return run->flop / best * 1e-9;
}

int64_t bench_round_up(int64_t x) { return (x + 31) / 32 * 32; }

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* Huge pages, as an arena of the runtime has. */
void *bench_zeros(int64_t bytes) {
    const size_t align = bytes < HUGE_PAGE ? PAGE : HUGE_PAGE, size = ((size_t)bytes + align - 1) / align * align;
    void *memory = aligned_alloc(align, size);
    if (!memory) {
        fprintf(stderr, "%s: out of memory\n", program_name);
        exit(1);
    }
    if (align == HUGE_PAGE) (void)madvise(memory, size, MADV_HUGEPAGE);
    return memset(memory, 0, size);
}

void bench_store(void *output, const float *c, int64_t row0, int64_t rows, int64_t col0) {
    const BenchOutput *out = output;
    float *tile = out->c + (col0 / AMP_PRODUCT_COLS * out->row_tiles + row0 / AMP_PRODUCT_ROWS) * 1024;
    memcpy(tile, c, (size_t)rows * AMP_PRODUCT_COLS * sizeof *c);
}

void bench_print(double gflops, double peak) {
    printf("  %6.1f GFLOP/s", gflops);
    if (peak > 0) printf("  %5.1f %%", 100 * gflops / peak);
    printf("\n");
    fflush(stdout);
}

int bench_operands(const char *program, const char *isa,
                   void (*shapes)(const amp_product_kernels *kernels, double peak, void *ctx), void *ctx) {
    const amp_dtype operands[] = {AMP_DT_F32, AMP_DT_BF16};
    program_name = program;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        amp_error err;
        const amp_product_kernels *kernels = amp_product_select(operands[i], isa, &err);
        if (!kernels) {
            fprintf(stderr, "%s: %s\n", program, err.message);
            return 1;
        }
        const double peak = bench_peak(kernels); /* again for each, for the clock moves */
        printf("%s, %s kernels", amp_dtype_name(operands[i]), kernels->name);
        if (peak > 0) printf(", peak %.1f GFLOP/s", peak);
        printf("\n");
        shapes(kernels, peak, ctx);
    }
    return 0;
}
