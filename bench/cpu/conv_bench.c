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

#include "bench/cpu/peak.h"
#include "runtime/device/cpu/product/conv.h"

enum { ROUNDS = 15 };
#define FLOP_PER_ROUND 3e8

static const struct Shape {
    const char *what;
    int32_t n, h, c, oc, k, stride, padding;
} shapes[] = {
    {"cnn 1", 64, 28, 1, 32, 3, 1, 1},           {"cnn 2", 64, 14, 32, 64, 3, 1, 1},
    {"28x28 3x3", 16, 28, 64, 64, 3, 1, 1},      {"32x32 3x3", 16, 32, 64, 64, 3, 1, 1},
    {"16x16 3x3 /2", 32, 32, 64, 128, 3, 2, 1},  {"8x8 3x3", 32, 8, 256, 256, 3, 1, 1},
    {"4x4 3x3", 64, 4, 512, 512, 3, 1, 1},       {"7x7 3x3", 16, 7, 512, 512, 3, 1, 1},
    {"224x224 7x7 /2", 2, 224, 3, 64, 7, 2, 3},  {"56x56 1x1", 8, 56, 64, 256, 1, 1, 0},
    {"28x28 1x1 /2", 16, 28, 128, 256, 1, 2, 0},
};

static const struct Kind {
    const char *what;
    uint32_t kind;
} kinds[] = {{"forward", AMP_WINDOW_CONV}, {"data", AMP_WINDOW_CONV_DATA}, {"weight", AMP_WINDOW_CONV_WEIGHT}};

static int64_t round_up(int64_t x) { return (x + 31) / 32 * 32; }

static void *zeros(int64_t bytes) {
    size_t size = ((size_t)bytes + 4095) / 4096 * 4096;
    void *memory = aligned_alloc(4096, size);
    if (!memory) {
        fprintf(stderr, "conv_bench: out of memory\n");
        exit(1);
    }
    return memset(memory, 0, size);
}

typedef struct Output {
    float *c;
    int64_t rows;
} Output;

static void store(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
    const Output *out = ctx;
    memcpy(out->c + col0 * out->rows + row0 * 32, c, (size_t)rows * 32 * sizeof *c);
}

/* Few channels in f32 lie in rows, as layout lays them. */
static amp_image make_image(const amp_product_kernels *kernels, int64_t pixels, int64_t channels) {
    const int64_t bytes = kernels->operand == AMP_DT_BF16 ? 2 : 4;
    if (channels < 32) return (amp_image){zeros(pixels * channels * bytes), channels * bytes, 0};
    return (amp_image){zeros(round_up(pixels) * round_up(channels) * bytes), 32 * bytes, round_up(pixels) * 32 * bytes};
}

static void run(const amp_conv *conv, void *scratch) {
    const int64_t tasks = amp_conv_tasks(conv), sums = amp_conv_sum_tasks(conv);
    for (int64_t i = 0; i < tasks; i++) amp_conv_task(conv, i, scratch);
    for (int64_t i = 0; i < sums; i++) amp_conv_sum_task(conv, i);
}

static double best_gflops(const amp_conv *conv, double flop, void *scratch) {
    const int repeat = (int)(FLOP_PER_ROUND / flop) + 1;
    double best = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_seconds();
        for (int i = 0; i < repeat; i++) run(conv, scratch);
        double time = (bench_seconds() - start) / repeat;
        if (time < best) best = time;
    }
    return flop / best * 1e-9;
}

static void bench_shape(const amp_product_kernels *kernels, const struct Shape *s, const struct Kind *kind,
                        double peak) {
    const int32_t out = (s->h + 2 * s->padding - s->k) / s->stride + 1;
    const bool data = kind->kind == AMP_WINDOW_CONV_DATA, weight = kind->kind == AMP_WINDOW_CONV_WEIGHT;
    const int64_t x = (int64_t)s->n * s->h * s->h, y = (int64_t)s->n * out * out, taps = s->k * s->k,
                  inner = data ? s->oc : s->c, cols = data ? s->c : s->oc,
                  rows = data     ? x
                         : weight ? taps * s->c
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
                   {1, 1}},
        .n = s->n,
        .a = make_image(kernels, data ? y : x, inner),
        .epilogue = store,
    };
    if (weight) conv.dy = make_image(kernels, y, s->oc);
    else conv.b = zeros(round_up(taps * inner) * round_up(cols) * 4);
    conv.b_panel_stride = round_up(taps * inner) * 32 / (kernels->operand == AMP_DT_BF16 ? 2 : 1);
    Output output = {zeros(round_up(rows) * round_up(cols) * 4), round_up(rows)};
    conv.ctx = &output;
    void *scratch = zeros((int64_t)amp_conv_thread_bytes(&conv));
    conv.shared = zeros((int64_t)amp_conv_shared_bytes(&conv) + 64);
    const double flop = 2.0 * (double)y * (double)taps * s->c * s->oc;
    const double gflops = best_gflops(&conv, flop, scratch);
    printf("  %-15s %-8s %4d x %3d^2, %3d -> %3d  %5d tasks  %6.1f GFLOP/s", s->what, kind->what, s->n, s->h, s->c,
           s->oc, (int)amp_conv_tasks(&conv), gflops);
    if (peak > 0) printf("  %5.1f %%", 100 * gflops / peak);
    printf("\n");
    fflush(stdout);
    free(scratch), free(conv.shared), free(output.c);
    free((void *)(uintptr_t)conv.a.data), free((void *)(uintptr_t)conv.dy.data), free((void *)(uintptr_t)conv.b);
}

int main(int argc, char **argv) {
    const amp_dtype operands[] = {AMP_DT_F32, AMP_DT_BF16};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        amp_error err;
        const amp_product_kernels *kernels = amp_product_select(operands[i], argc > 1 ? argv[1] : NULL, &err);
        if (!kernels) {
            fprintf(stderr, "conv_bench: %s\n", err.message);
            return 1;
        }
        const double peak = bench_peak(kernels);
        printf("%s, %s kernels", amp_dtype_name(operands[i]), kernels->name);
        if (peak > 0) printf(", peak %.1f GFLOP/s", peak);
        printf("\n");
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                char line[64];
                snprintf(line, sizeof line, "%s %s", shapes[s].what, kinds[k].what);
                const bool odd = operands[i] == AMP_DT_BF16 && kinds[k].kind != AMP_WINDOW_CONV_WEIGHT &&
                                 (kinds[k].kind == AMP_WINDOW_CONV ? shapes[s].c : shapes[s].oc) % 2;
                if (odd || (argc > 2 && !strstr(line, argv[2]))) continue;
                bench_shape(kernels, &shapes[s], &kinds[k], peak);
            }
    }
    return 0;
}
