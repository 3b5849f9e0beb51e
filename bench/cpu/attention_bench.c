/* attention_bench.c: how fast one thread computes the attention kernels of a model, forward and backward, beside the
 * fastest that its multiply-add units can go.
 *
 *     ampc bench/cpu/models/attention.amp --isa native -D T=512 -D H=12 -D D=64 -o attention.so
 *     bazel run -c opt //bench/cpu:attention_bench -- $PWD/attention.so [forward | backward]
 *
 * What counts as arithmetic is two products forward and five backward, of the keys that each query sees; products that
 * are made twice do not count.  As GFLOP/s: the best of several rounds, on 8 samples.  The share of the peak does not
 * count exponentials; the last column counts 12 multiply-adds in f32 for each.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu/kernel_bench.h"
#include "runtime/device/cpu/product/attention.h"

enum { ROUNDS = 15, SAMPLES = 8, MOST_OPERANDS = 16 };
#define EXPONENTIAL_FLOP 24.0
#define FLOP_PER_ROUND 1e9

typedef struct Run {
    const amp_model_program *program;
    const amp_model_kernel *kernel;
    amp_attention attention;
    amp_kernel_args args;
    void *operands[MOST_OPERANDS], *scratch;
} Run;

static int64_t at(const amp_model_dim *d) { return d->of_n ? d->mul * SAMPLES / d->div : d->mul; }

static const amp_model_buffer *buffer_of(const Run *run, int32_t operand) {
    return (const amp_model_buffer *)run->program->buffers.data + run->kernel->operands[operand];
}

static void step(void *ctx, const amp_attention_tile *tile) {
    const Run *run = ctx;
    amp_kernel_args args = run->args;
    args.attention = tile;
    run->kernel->run[AMP_ISA_V4](&args);
}

static void run_tasks(void *ctx) {
    const Run *run = ctx;
    const int64_t tasks = amp_attention_tasks(&run->attention), more = amp_attention_second_tasks(&run->attention);
    for (int64_t i = 0; i < tasks; i++) amp_attention_task(&run->attention, i, run->scratch);
    for (int64_t i = 0; i < more; i++) amp_attention_second_task(&run->attention, i, run->scratch);
}

static amp_attention_rows rows_of(const Run *run, const amp_model_attention_operand *x, int64_t size) {
    amp_attention_rows to = {.pitch = at(&x->at.pitch) * size};
    if (x->operand >= 0) to.data = (char *)run->operands[x->operand] + x->at.offset * size;
    for (uint32_t i = 0; i < run->kernel->attention->rank; i++) to.stride[i] = at(&x->at.strides[i]) * size;
    return to;
}

/* Small numbers of either sign, so that scores are small, too. */
static void fill(Run *run) {
    for (uint32_t i = 0; i < run->kernel->operand_count; i++) {
        const amp_model_buffer *b = buffer_of(run, (int32_t)i);
        const int64_t size = b->storage == AMP_DT_BF16 ? 2 : 8, count = (at(&b->rows) + 32) * (at(&b->cols) + 32);
        char *data = run->operands[i] = bench_zeros(count * size);
        for (int64_t e = 0; e < count; e++) {
            const float value = (float)((e * 7919 + 13) % 257 - 128) / 256;
            if (b->storage == AMP_DT_BF16) memcpy(data + e * 2, (const char *)&value + 2, 2);
            else if (b->storage == AMP_DT_F32) memcpy(data + e * 4, &value, 4);
        }
    }
}

static void describe(Run *run, const amp_product_kernels *kernels) {
    const amp_model_attention *x = run->kernel->attention;
    const int64_t size = x->storage == AMP_DT_BF16 ? 2 : 4;
    run->attention = (amp_attention){
        .kernels = kernels,
        .step = step,
        .ctx = run,
        .backward = x->backward,
        .causal = x->causal,
        .mask_is_one = x->mask.one_step,
        .rank = (int32_t)x->rank,
        .share = x->share,
        .queries = at(&x->queries),
        .keys = at(&x->keys),
        .width = x->width,
        .v_width = x->v_width,
        .q = rows_of(run, &x->q, size),
        .k = rows_of(run, &x->k, size),
        .v = rows_of(run, &x->v, size),
        .mask = rows_of(run, &x->mask, 4),
        .dy = rows_of(run, &x->dy, size),
        .sums = rows_of(run, &x->sums, 4),
    };
    for (uint32_t i = 0; i < x->rank; i++) run->attention.dims[i] = at(&x->dims[i]);
    for (int i = 0; i < 3; i++) run->attention.result[i] = rows_of(run, &x->result[i], 4);
    if (x->y < 0) return;
    const amp_model_buffer *y = buffer_of(run, x->y);
    run->attention.y.data = run->operands[x->y];
    run->attention.y.in_panels = y->layout == AMP_LAYOUT_PANELS;
    run->attention.y.rows = at(&y->rows);
    run->attention.y.cols = at(&y->cols);
    run->attention.y.element = y->storage == AMP_DT_BF16 ? 2 : 4;
}

static double pairs_of(const amp_attention *a) {
    double pairs = 0.0;
    for (int64_t i = 0; i < a->queries; i++) pairs += (double)(a->causal && i < a->keys ? i + 1 : a->keys);
    for (int32_t i = 0; i < a->rank; i++) pairs *= (double)a->dims[i];
    return pairs;
}

static double f32_peak(void) {
    amp_error err;
    const amp_product_kernels *kernels = amp_product_select(AMP_DT_F32, NULL, &err);
    return kernels ? bench_peak(kernels) : 0;
}

static void bench_kernel(const amp_model_program *p, const amp_model_kernel *k, const amp_product_kernels *kernels,
                         double peak) {
    Run run = {.program = p, .kernel = k, .args = {.buffer = run.operands, .n = SAMPLES}};
    if ((k->attention->storage == AMP_DT_BF16) != (kernels->operand == AMP_DT_BF16)) return;
    fill(&run);
    describe(&run, kernels);
    const amp_attention *a = &run.attention;
    run.scratch = bench_zeros((int64_t)amp_attention_thread_bytes(a));
    const double flop =
        pairs_of(a) * 2.0 * (double)(a->backward ? 3 * a->width + 2 * a->v_width : a->width + a->v_width);
    printf("  %-8s %2d heads %4d x %4d x %3d%s  %4d + %d tasks", a->backward ? "backward" : "forward",
           (int)a->dims[a->rank - 1], (int)a->queries, (int)a->keys, (int)a->width, a->causal ? " causal" : "",
           (int)amp_attention_tasks(a), (int)amp_attention_second_tasks(a));
    const double gflops = bench_gflops(&(BenchRun){run_tasks, &run, flop, ROUNDS, FLOP_PER_ROUND});
    const double least = flop / peak + pairs_of(a) * EXPONENTIAL_FLOP / f32_peak();
    printf("  %6.1f GFLOP/s  %5.1f %% of the peak", gflops, 100 * gflops / peak);
    printf(", %5.1f %% with exponentials\n", 100 * gflops * least / flop);
    for (uint32_t i = 0; i < k->operand_count; i++) free(run.operands[i]);
    free(run.scratch);
}

typedef struct Wanted {
    const amp_model_desc *desc;
    const char *direction; /* or NULL */
} Wanted;

static bool is_wanted(const Wanted *w, const amp_model_kernel *k) {
    return k->kind == AMP_KERNEL_ATTENTION &&
           (!w->direction || !strcmp(w->direction, k->attention->backward ? "backward" : "forward"));
}

static void bench_model(const amp_product_kernels *kernels, double peak, void *ctx) {
    const Wanted *w = ctx;
    const amp_model_program *programs = w->desc->programs.data;
    for (uint32_t i = 0; i < w->desc->programs.count; i++) {
        const amp_model_kernel *all = programs[i].kernels.data;
        for (uint32_t j = 0; j < programs[i].kernels.count && programs[i].kind == AMP_PROGRAM_TRAIN_STEP; j++)
            if (is_wanted(w, &all[j])) bench_kernel(&programs[i], &all[j], kernels, peak);
    }
}

int main(int argc, char **argv) {
    void *model = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *symbol = model ? dlsym(model, AMP_MODEL_SYMBOL) : NULL;
    amp_model_query_fn query;
    if (!symbol) {
        fprintf(stderr, "attention_bench: usage: attention_bench MODEL.so [forward | backward]\n");
        return 2;
    }
    memcpy(&query, &symbol, sizeof query);
    Wanted wanted = {query(), argc > 2 ? argv[2] : NULL};
    return bench_operands("attention_bench", NULL, bench_model, &wanted);
}
