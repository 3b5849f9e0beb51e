/* product_bench.c: how fast one thread multiplies matrices, beside the fastest that its multiply-add units can go.
 *
 *     bazel run -c opt //bench/cpu:product_bench [-- ISA]
 *
 * ISA is "portable", "avx2", "avx512" or "avx512_bf16"; the best of the machine otherwise.  Each line is one product of
 * a training step (batch 128, layers of 784, 1024 and 512; and the linear layers of a GPT, 4096 tokens of 768), as
 * GFLOP/s: the best of several rounds, with an epilogue that stores C.  The peak is measured before each operand type,
 * for the clock moves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu/peak.h"

enum { ROUNDS = 7 };
#define FLOP_PER_ROUND 1e9

/* ---- the products of a training step ---- */

static const struct Shape {
    const char *what;
    amp_product_form form;
    int64_t m, n, k; /* k in values */
} shapes[] = {
    {"mlp forward", AMP_PRODUCT_BLOCKED, 128, 1024, 784},     {"mlp forward", AMP_PRODUCT_BLOCKED, 128, 1024, 1024},
    {"mlp forward", AMP_PRODUCT_BLOCKED, 128, 512, 1024},     {"mlp gradient", AMP_PRODUCT_TRANSPOSED, 1024, 1024, 128},
    {"mlp gradient", AMP_PRODUCT_TRANSPOSED, 784, 1024, 128}, {"gpt forward", AMP_PRODUCT_BLOCKED, 4096, 768, 768},
    {"gpt forward", AMP_PRODUCT_BLOCKED, 4096, 768, 3072},    {"gpt gradient", AMP_PRODUCT_TRANSPOSED, 768, 768, 4096},
};

typedef struct Output {
    float *c;
    int64_t row_tiles;
} Output;

static void store(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
    const Output *out = ctx;
    float *tile = out->c + (col0 / AMP_PRODUCT_COLS * out->row_tiles + row0 / AMP_PRODUCT_ROWS) * 1024;
    memcpy(tile, c, (size_t)rows * AMP_PRODUCT_COLS * sizeof *c);
}

static void run_tasks(const amp_product_kernels *kernels, const amp_product *p, float *scratch) {
    const int64_t tasks = amp_product_tasks(p);
    for (int64_t i = 0; i < tasks; i++) amp_product_task(kernels, p, i, scratch);
}

static double best_gflops(const amp_product_kernels *kernels, const amp_product *p, double flop, float *scratch) {
    const int repeat = (int)(FLOP_PER_ROUND / flop) + 1;
    double best = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_seconds();
        for (int i = 0; i < repeat; i++) run_tasks(kernels, p, scratch);
        double time = (bench_seconds() - start) / repeat;
        if (time < best) best = time;
    }
    return flop / best * 1e-9;
}

static void *zeros(int64_t units) {
    size_t bytes = ((size_t)units * 4 + 4095) / 4096 * 4096;
    void *memory = aligned_alloc(4096, bytes);
    if (!memory) {
        fprintf(stderr, "product_bench: out of memory\n");
        exit(1);
    }
    return memset(memory, 0, bytes);
}

static int64_t round_up(int64_t x) { return (x + 31) / 32 * 32; }

static void bench_shape(const amp_product_kernels *kernels, const struct Shape *s, double peak) {
    const int64_t per = kernels->operand == AMP_DT_BF16 ? 2 : 1, m = round_up(s->m), k = round_up(s->k) / per;
    float *a = zeros(m * k), *b = zeros(s->n * k), *c = zeros(m * s->n), *scratch = zeros(1024);
    Output out = {c, m / 32};
    const amp_product product = {
        .a = a,
        .b = b,
        .form = s->form,
        .m = s->m,
        .n = s->n,
        .k = k,
        .a_block_stride = m * 32 / per,
        .a_tile_stride = s->form == AMP_PRODUCT_BLOCKED ? 32 * 32 / per : k * 32,
        .b_panel_stride = k * 32,
        .epilogue = store,
        .ctx = &out,
    };
    const double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double gflops = best_gflops(kernels, &product, flop, scratch);
    printf("  %-13s %5d x %4d x %4d  %4d tasks  %6.1f GFLOP/s", s->what, (int)s->m, (int)s->n, (int)s->k,
           (int)amp_product_tasks(&product), gflops);
    if (peak > 0) printf("  %5.1f %%", 100 * gflops / peak);
    printf("\n");
    free(a), free(b), free(c), free(scratch);
}

int main(int argc, char **argv) {
    const amp_dtype operands[] = {AMP_DT_F32, AMP_DT_BF16};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        amp_error err;
        const amp_product_kernels *kernels = amp_product_select(operands[i], argc > 1 ? argv[1] : NULL, &err);
        if (!kernels) {
            fprintf(stderr, "product_bench: %s\n", err.message);
            return 1;
        }
        const double peak = bench_peak(kernels);
        printf("%s, %s kernels", amp_dtype_name(operands[i]), kernels->name);
        if (peak > 0) printf(", peak %.1f GFLOP/s", peak);
        printf("\n");
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) bench_shape(kernels, &shapes[s], peak);
    }
    return 0;
}
