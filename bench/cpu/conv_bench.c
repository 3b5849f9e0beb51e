/* conv_bench.c: how fast one thread runs image products, beside the fastest that its multiply-add units can go.
 *
 *     bazel run -c opt //bench/cpu:conv_bench [-- ISA [WHAT]]
 *
 * ISA as in product_bench.c; WHAT is a part of a line's first words ("weight", "cnn 2").  Each line is one product of a
 * training step, as GFLOP/s of the windows' arithmetic (padding counts as work): the best of several rounds, with an
 * epilogue that stores the result.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu/kernel_bench.h"
#include "runtime/device/cpu/product/conv.h"

enum { ROUNDS = 15 };
#define FLOP_PER_ROUND 3e8

static const struct Shape {
    const char *what;
    int32_t n, h, c, oc, k, stride, padding, groups;
} shapes[] = {
    {"cnn 1", 64, 28, 1, 32, 3, 1, 1, 0},
    {"cnn 2", 64, 14, 32, 64, 3, 1, 1, 0},
    {"28x28 3x3", 16, 28, 64, 64, 3, 1, 1, 0},
    {"32x32 3x3", 16, 32, 64, 64, 3, 1, 1, 0},
    {"16x16 3x3 /2", 32, 32, 64, 128, 3, 2, 1, 0},
    {"8x8 3x3", 32, 8, 256, 256, 3, 1, 1, 0},
    {"4x4 3x3", 64, 4, 512, 512, 3, 1, 1, 0},
    {"7x7 3x3", 16, 7, 512, 512, 3, 1, 1, 0},
    {"224x224 7x7 /2", 2, 224, 3, 64, 7, 2, 3, 0},
    {"56x56 1x1", 8, 56, 64, 256, 1, 1, 0, 0},
    {"28x28 1x1 /2", 16, 28, 128, 256, 1, 2, 0, 0},
    {"56x56 depth", 8, 56, 128, 128, 3, 1, 1, 128},
    {"28x28 depth", 8, 28, 256, 256, 3, 1, 1, 256},
    {"28x28 depth /2", 16, 56, 128, 128, 3, 2, 1, 128},
    {"14x14 depth", 32, 14, 512, 512, 3, 1, 1, 512},
    {"56x56 of 4", 8, 56, 128, 128, 3, 1, 1, 32},
    {"28x28 of 8", 8, 28, 256, 256, 3, 1, 1, 32},
    {"14x14 of 16", 16, 14, 512, 512, 3, 1, 1, 32},
    {"28x28 of 64", 8, 28, 256, 256, 3, 1, 1, 4},
};

static const struct Kind {
    const char *what;
    uint32_t kind;
} kinds[] = {{"forward", AMP_WINDOW_CONV}, {"data", AMP_WINDOW_CONV_DATA}, {"weight", AMP_WINDOW_CONV_WEIGHT}};

typedef struct Output {
    float *c;
    int64_t rows;
} Output;

static void store(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
    const Output *out = ctx;
    memcpy(out->c + col0 * out->rows + row0 * 32, c, (size_t)rows * 32 * sizeof *c);
}

/* Few channels in f32 are stored in rows, as the layout pass stores them. */
static amp_image make_image(const amp_product_kernels *kernels, int64_t pixels, int64_t channels) {
    const int64_t bytes = kernels->operand == AMP_DT_BF16 ? 2 : 4;
    if (channels < 32) return (amp_image){bench_zeros(pixels * channels * bytes), channels * bytes, 0};
    return (amp_image){bench_zeros(bench_round_up(pixels) * bench_round_up(channels) * bytes), 32 * bytes,
                       bench_round_up(pixels) * 32 * bytes};
}

typedef struct Run {
    amp_conv conv;
    void *scratch;
} Run;

static void run_tasks(void *ctx) {
    const Run *run = ctx;
    const int64_t tasks = amp_conv_tasks(&run->conv), second = amp_conv_second_tasks(&run->conv);
    for (int64_t i = 0; i < tasks; i++) amp_conv_task(&run->conv, i, run->scratch);
    for (int64_t i = 0; i < second; i++) amp_conv_second_task(&run->conv, i, run->scratch);
}

static void bench_shape(const amp_product_kernels *kernels, const struct Shape *s, const struct Kind *kind,
                        double peak) {
    const int32_t out = (s->h + 2 * s->padding - s->k) / s->stride + 1;
    const bool data = kind->kind == AMP_WINDOW_CONV_DATA, weight = kind->kind == AMP_WINDOW_CONV_WEIGHT;
    const int64_t x = (int64_t)s->n * s->h * s->h, y = (int64_t)s->n * out * out, taps = s->k * s->k,
                  inner = data ? s->oc : s->c, cols = data ? s->c : s->oc, groups = s->groups ? s->groups : 1,
                  rows = data     ? x
                         : weight ? taps * s->c / groups
                                  : y;
    amp_conv conv = {
        .kernels = kernels,
        .window = {kind->kind,
                   s->h,
                   s->h,
                   s->c,
                   out,
                   out,
                   s->oc,
                   s->k,
                   s->k,
                   {s->stride, s->stride},
                   {s->padding, s->padding},
                   {1, 1},
                   s->groups},
        .n = s->n,
        .a = make_image(kernels, data ? y : x, inner),
        .epilogue = store,
    };
    if (weight) conv.dy = make_image(kernels, y, s->oc);
    else conv.b = bench_zeros(bench_round_up(taps * inner) * bench_round_up(cols) * 4);
    conv.b_panel_stride = bench_round_up(taps * inner) * 32 / (kernels->operand == AMP_DT_BF16 ? 2 : 1);
    if (s->groups)
        conv.b_panel_stride = bench_round_up(taps * s->c / groups) * 32 / (kernels->operand == AMP_DT_BF16 ? 2 : 1);
    Output output = {bench_zeros(bench_round_up(rows) * bench_round_up(cols) * 4), bench_round_up(rows)};
    conv.ctx = &output;
    conv.prefetch_count = 1;
    conv.prefetch[0] = (amp_product_prefetch){(char *)output.c, output.rows * 128, 4096};
    conv.shared = bench_zeros((int64_t)amp_conv_shared_bytes(&conv) + 64);
    Run run = {conv, bench_zeros((int64_t)amp_conv_thread_bytes(&conv))};
    const double flop = 2.0 * (double)y * (double)taps * s->c * s->oc / (double)groups;
    printf("  %-15s %-8s %4d x %3d^2, %3d -> %3d  %5d tasks", s->what, kind->what, s->n, s->h, s->c, s->oc,
           (int)amp_conv_tasks(&conv));
    bench_print(bench_gflops(&(BenchRun){run_tasks, &run, flop, ROUNDS, FLOP_PER_ROUND}), peak);
    free(run.scratch), free(conv.shared), free(output.c);
    free((void *)(uintptr_t)conv.a.data), free((void *)(uintptr_t)conv.dy.data), free((void *)(uintptr_t)conv.b);
}

/* Products of 16-bit pairs want an even number of channels to sum over. */
static bool is_odd(const amp_product_kernels *kernels, const struct Shape *s, const struct Kind *kind) {
    if (kernels->operand != AMP_DT_BF16 || kind->kind == AMP_WINDOW_CONV_WEIGHT) return false;
    return (kind->kind == AMP_WINDOW_CONV ? s->c : s->oc) % 2;
}

/* |ctx|: WHAT, or NULL. */
static void bench_shapes(const amp_product_kernels *kernels, double peak, void *ctx) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char line[64];
            snprintf(line, sizeof line, "%s %s", shapes[s].what, kinds[k].what);
            if (is_odd(kernels, &shapes[s], &kinds[k]) || (ctx && !strstr(line, ctx))) continue;
            bench_shape(kernels, &shapes[s], &kinds[k], peak);
        }
}

int main(int argc, char **argv) {
    return bench_operands("conv_bench", argc > 1 ? argv[1] : NULL, bench_shapes, argc > 2 ? argv[2] : NULL);
}
