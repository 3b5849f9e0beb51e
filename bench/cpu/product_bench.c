/* product_bench.c: how fast one thread multiplies matrices, beside the fastest that its multiply-add units can go.
 *
 *     bazel run -c opt //bench/cpu:product_bench [-- ISA]
 *
 * ISA is "portable", "avx2", "avx512" or "avx512_bf16"; the best of the machine otherwise.  Each line is one product of
 * a training step (batch 128, layers of 784, 1024 and 512; and the linear layers of a GPT, 4096 tokens of 768), as
 * GFLOP/s: the best of several rounds, with an epilogue that stores C.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/cpu/kernel_bench.h"

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

typedef struct Run {
    const amp_product_kernels *kernels;
    amp_product product;
    float *scratch;
} Run;

static void run_tasks(void *ctx) {
    const Run *run = ctx;
    const int64_t tasks = amp_product_tasks(&run->product);
    for (int64_t i = 0; i < tasks; i++) amp_product_task(run->kernels, &run->product, i, run->scratch);
}

static void bench_shape(const amp_product_kernels *kernels, const struct Shape *s, double peak) {
    const int64_t per = kernels->operand == AMP_DT_BF16 ? 2 : 1, m = bench_round_up(s->m),
                  k = bench_round_up(s->k) / per;
    float *a = bench_zeros(m * k * 4), *b = bench_zeros(s->n * k * 4), *c = bench_zeros(m * s->n * 4);
    BenchOutput out = {c, m / 32};
    Run run = {kernels,
               {
                   .a = a,
                   .b = b,
                   .form = s->form,
                   .m = s->m,
                   .n = s->n,
                   .k = k,
                   .a_block_stride = m * 32 / per,
                   .a_tile_stride = s->form == AMP_PRODUCT_BLOCKED ? 32 * 32 / per : k * 32,
                   .b_panel_stride = k * 32,
                   .epilogue = bench_store,
                   .ctx = &out,
               },
               bench_zeros((int64_t)amp_product_scratch_bytes(kernels))};
    const double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    printf("  %-13s %5d x %4d x %4d  %4d tasks", s->what, (int)s->m, (int)s->n, (int)s->k,
           (int)amp_product_tasks(&run.product));
    bench_print(bench_gflops(&(BenchRun){run_tasks, &run, flop, ROUNDS, FLOP_PER_ROUND}), peak);
    free(a), free(b), free(c), free(run.scratch);
}

static void bench_shapes(const amp_product_kernels *kernels, double peak, void *ctx) {
    (void)ctx;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) bench_shape(kernels, &shapes[s], peak);
}

int main(int argc, char **argv) {
    return bench_operands("product_bench", argc > 1 ? argv[1] : NULL, bench_shapes, NULL);
}
