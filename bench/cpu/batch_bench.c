/* batch_bench.c: how fast one thread computes the batched products of attention, beside the fastest that its
 * multiply-add units can go.
 *
 *     bazel run -c opt //bench/cpu:batch_bench [-- ISA [WHAT]]
 *
 * ISA and WHAT as of conv_bench.  Each line is one product of a training step for 8 samples, heads split off rows of
 * 3 x heads x width elements: the scores q k^T, the context p v, and the gradients dy v^T, p^T dy and ds k.  As
 * GFLOP/s: the best of several rounds, with an epilogue that stores C.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu/kernel_bench.h"
#include "runtime/device/cpu/product/batch.h"

enum { ROUNDS = 7, SAMPLES = 8 };
#define FLOP_PER_ROUND 1e9

static const struct Size {
    int64_t heads, tokens, width;
} sizes[] = {{4, 64, 32}, {4, 128, 32}, {12, 128, 64}, {12, 512, 64}, {8, 256, 128}};

/* By product: A and B are rows of heads (q, k, v) or matrices of scores; its size is of those. */
static const struct Product {
    const char *what;
    bool a_scores, ta, b_scores, tb;
} products[] = {
    {"scores q k^T", false, false, false, true},    {"context p v", true, false, false, false},
    {"gradient dy v^T", false, false, false, true}, {"gradient p^T dy", true, true, false, false},
    {"gradient ds k", true, false, false, false},
};

typedef struct Run {
    amp_batch batch;
    void *scratch, *a, *b;
} Run;

static void run_tasks(void *ctx) {
    const Run *run = ctx;
    const int64_t tasks = amp_batch_tasks(&run->batch);
    for (int64_t i = 0; i < tasks; i++) amp_batch_task(&run->batch, i, run->scratch);
}

/* Matrices of scores one after another; heads side by side in rows of three times as many. */
static amp_batch_operand operand(const struct Size *s, bool scores, bool transposed, int64_t size, void **memory) {
    const int64_t row = scores ? s->tokens : 3 * s->heads * s->width;
    amp_batch_operand x = {.pitch = row * size, .transposed = transposed};
    x.stride[0] = (scores ? s->heads : 1) * s->tokens * row * size;
    x.stride[1] = (scores ? s->tokens * s->tokens : s->width) * size;
    *memory = bench_zeros(x.stride[0] * SAMPLES);
    x.data = *memory;
    return x;
}

static void bench_product(const amp_product_kernels *kernels, const struct Size *s, const struct Product *p,
                          double peak) {
    const int64_t size = kernels->operand == AMP_DT_BF16 ? 2 : 4, n = p->tb ? s->tokens : s->width,
                  k = p->a_scores ? s->tokens : s->width, rows = SAMPLES * s->heads * s->tokens;
    BenchOutput out = {bench_zeros(bench_round_up(rows) * bench_round_up(n) * 4), bench_round_up(rows) / 32};
    Run run = {.batch = {.kernels = kernels, .rank = 2, .dims = {SAMPLES, s->heads}, .m = s->tokens, .n = n, .k = k}};
    run.batch.a = operand(s, p->a_scores, p->ta, size, &run.a);
    run.batch.b = operand(s, p->b_scores, p->tb, size, &run.b);
    run.batch.epilogue = bench_store;
    run.batch.ctx = &out;
    run.batch.prefetch_count = 1;
    run.batch.prefetch[0] = (amp_product_prefetch){(char *)out.c, out.row_tiles * 4096, 4096};
    run.scratch = bench_zeros((int64_t)amp_batch_thread_bytes(&run.batch));
    printf("  %-15s %2d heads %4d x %4d x %4d  %4d tasks", p->what, (int)s->heads, (int)s->tokens, (int)n, (int)k,
           (int)amp_batch_tasks(&run.batch));
    const double flop = 2.0 * (double)rows * (double)n * (double)k;
    bench_print(bench_gflops(&(BenchRun){run_tasks, &run, flop, ROUNDS, FLOP_PER_ROUND}), peak);
    free(run.a), free(run.b);
    free(run.scratch), free(out.c);
}

/* |ctx|: WHAT, or NULL. */
static void bench_products(const amp_product_kernels *kernels, double peak, void *ctx) {
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < sizeof products / sizeof *products; p++)
            if (!ctx || strstr(products[p].what, ctx)) bench_product(kernels, &sizes[s], &products[p], peak);
}

int main(int argc, char **argv) {
    return bench_operands("batch_bench", argc > 1 ? argv[1] : NULL, bench_products, argc > 2 ? argv[2] : NULL);
}
