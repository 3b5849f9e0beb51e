/* step_kernels.c: where the time of a training step goes, kernel by kernel, on one thread.
 *
 *     step_kernels MODEL.so BATCH [ROUNDS]
 *
 * Runs the kernels of the step in their order, each timed by itself, and prints the median of the rounds beside what
 * bounds it: the arithmetic of a product and its share of the multiply-add units' peak, and the bytes of all operands,
 * each taken once, beside what a copy of 256 MB moves.  A product by Winograd's may pass the peak.  Every buffer has
 * memory of its own here, so values do not take the place of others in the cache as in a planned arena. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "bench/cpu/kernel_bench.h"
#include "runtime/device/device.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/model.h"

enum { USUAL_ROUNDS = 7, MOST_ROUNDS = 100, WARM_UP = 2, COPY_BYTES = 128 << 20, SHOWN = 40 };

typedef struct Row {
    const amp_model_kernel *kernel;
    double ms, flop, bytes;
} Row;

static int fail(const char *what) {
    fprintf(stderr, "step_kernels: %s\n", what);
    return 1;
}

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t buffer_bytes(const amp_model_buffer *b, amp_sizes sizes) {
    int64_t rows = amp_model_dim_at(&b->rows, sizes), cols = amp_model_dim_at(&b->cols, sizes);
    if (b->layout != AMP_LAYOUT_ROWS) rows = bench_round_up(rows), cols = bench_round_up(cols);
    return (size_t)(rows * cols) * amp_storage_size(b->storage);
}

/* Small numbers that differ; integers 1, so that predicates hold and indices are valid. */
static void fill(void *data, const amp_model_buffer *b, size_t bytes, unsigned seed) {
    const size_t size = amp_storage_size(b->storage);
    for (size_t i = 0; i < bytes / size; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float value = (float)(seed >> 8) / 16777216.0f * 0.1f + 0.001f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        switch (b->storage) {
        case AMP_DT_F32: ((float *)data)[i] = value; break;
        case AMP_DT_BF16: ((uint16_t *)data)[i] = (uint16_t)(bits >> 16); break;
        case AMP_DT_F64: ((double *)data)[i] = (double)value; break;
        case AMP_DT_I64: ((int64_t *)data)[i] = 1; break;
        default: memset((char *)data + i * size, 0, size), ((char *)data)[i * size] = 1; break;
        }
    }
}

/* Buffers of one state are one. */
static void *shared_state(const amp_program *p, void **buffers, int i) {
    const amp_model_buffer *b = p->buffers;
    for (int j = 0; j < i; j++)
        if (b[i].kind == AMP_BUFFER_STATE && b[j].kind == AMP_BUFFER_STATE && b[i].index == b[j].index)
            return buffers[j];
    return NULL;
}

static void **make_buffers(const amp_program *p, amp_sizes sizes) {
    void **buffers = calloc((size_t)p->buffer_count + 1, sizeof *buffers);
    for (int i = 0; buffers && i < p->buffer_count; i++) {
        if (p->buffers[i].kind == AMP_BUFFER_WATCH) continue;
        buffers[i] = shared_state(p, buffers, i);
        if (buffers[i]) continue;
        const size_t bytes = buffer_bytes(&p->buffers[i], sizes);
        buffers[i] = bench_zeros((int64_t)bytes + 64);
        fill(buffers[i], &p->buffers[i], bytes, (unsigned)i + 1);
    }
    return buffers;
}

/* ---- what a kernel has to do ------------------------------------------------------------------------------------- */

static double at(const amp_model_dim *d, amp_sizes sizes) { return (double)amp_model_dim_at(d, sizes); }

static double flop_of(const amp_model_kernel *k, amp_sizes sizes) {
    const amp_model_window *w = &k->window;
    double flop = 2 * at(&k->rows, sizes) * at(&k->cols, sizes);
    if (k->kind == AMP_KERNEL_ATTENTION) {
        const amp_model_attention *a = k->attention;
        flop = 2.0 * at(&a->queries, sizes) * at(&a->keys, sizes) * (a->causal ? 0.5 : 1.0);
        for (uint32_t i = 0; i < a->rank; i++) flop *= at(&a->dims[i], sizes);
        const double width = (double)a->width, v_width = (double)a->v_width;
        return flop * (double)a->share * (a->backward ? 3 * width + 2 * v_width : width + v_width);
    }
    if (k->kind != AMP_KERNEL_PRODUCT) return 0;
    if (w->kind == AMP_WINDOW_NONE) return flop * at(&k->product.k, sizes);
    const double groups = w->groups > 1 ? w->groups : 1, taps = (double)w->kh * w->kw;
    if (w->kind == AMP_WINDOW_CONV) return flop * taps * w->c / groups;
    if (w->kind == AMP_WINDOW_CONV_DATA)
        return flop * taps * w->oc / groups * ((double)w->oh * w->ow) / ((double)w->h * w->w);
    return flop * (double)sizes.n * w->oh * w->ow;
}

static double bytes_of(const amp_program *p, const amp_model_kernel *k, amp_sizes sizes) {
    double bytes = 0;
    for (uint32_t i = 0; i < k->operand_count; i++) {
        const amp_model_buffer *b = &p->buffers[k->operands[i]];
        if (b->kind != AMP_BUFFER_WATCH) bytes += (double)buffer_bytes(b, sizes);
    }
    for (uint32_t i = 0; i < k->update_count; i++)
        bytes += (double)buffer_bytes(&p->buffers[k->operands[k->updates[i]]], sizes);
    return bytes;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static int by_number(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int by_time(const void *x, const void *y) {
    const Row *a = x, *b = y;
    return (a->ms < b->ms) - (a->ms > b->ms);
}

/* GB/s read and written. */
static double copy_speed(void) {
    char *from = bench_zeros(COPY_BYTES), *to = bench_zeros(COPY_BYTES);
    double best = 1e30;
    for (int i = 0; i < USUAL_ROUNDS; i++) {
        const double start = milliseconds();
        memcpy(to, from, COPY_BYTES);
        const double took = milliseconds() - start;
        if (took < best) best = took;
    }
    free(from), free(to);
    return 2.0 * COPY_BYTES / best / 1e6;
}

static int measure(amp_device *device, const amp_program *p, amp_sizes sizes, int rounds, Row *rows) {
    amp_error err = {0};
    void **buffers = make_buffers(p, sizes);
    double *times = calloc((size_t)p->kernel_count * MOST_ROUNDS, sizeof *times);
    if (!buffers || !times) return fail("no memory");
    for (int round = 0; round < WARM_UP + rounds; round++)
        for (int i = 0; i < p->kernel_count; i++) {
            amp_program one = *p;
            one.kernels = p->kernels + i, one.kernel_count = 1;
            const amp_run run = {.program = &one, .buffers = buffers, .sizes = sizes};
            const double start = milliseconds();
            if (device->type->run(device, &run, &err)) return fail(err.message);
            if (round >= WARM_UP) times[i * MOST_ROUNDS + round - WARM_UP] = milliseconds() - start;
        }
    for (int i = 0; i < p->kernel_count; i++) {
        qsort(times + i * MOST_ROUNDS, (size_t)rounds, sizeof *times, by_number);
        const amp_model_kernel *k = &p->kernels[i];
        rows[i] = (Row){k, times[i * MOST_ROUNDS + rounds / 2], flop_of(k, sizes), bytes_of(p, k, sizes)};
    }
    free(times);
    return 0;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

typedef struct Limits {
    double total, f32, bf16, copy; /* ms; GFLOP/s; GB/s */
} Limits;

static void print_row(const Limits *l, const char *name, const char *what, const Row *r, double peak) {
    printf("%8.3f ms %5.1f %%", r->ms, 100 * r->ms / l->total);
    if (r->flop > 0)
        printf("  %7.2f GFLOP %6.1f GFLOP/s %4.2f", r->flop / 1e9, r->flop / r->ms / 1e6, r->flop / r->ms / 1e6 / peak);
    else printf("  %35s", "");
    printf("  %8.2f MB %6.1f GB/s %4.2f  %s %s\n", r->bytes / 1e6, r->bytes / r->ms / 1e6,
           r->bytes / r->ms / 1e6 / l->copy, name, what);
}

static const char *kind_of(const amp_model_kernel *k) {
    static const char *const windows[] = {"product", "conv", "conv data", "conv weight"};
    switch (k->kind) {
    case AMP_KERNEL_PRODUCT: return k->batch ? "batched product" : windows[k->window.kind % 4];
    case AMP_KERNEL_ATTENTION: return k->attention->backward ? "attention backward" : "attention";
    case AMP_KERNEL_TILE: return "tile";
    case AMP_KERNEL_ROW: return "row";
    case AMP_KERNEL_COLUMN: return "column";
    case AMP_KERNEL_SCATTER: return "scatter";
    default: return "scalar";
    }
}

static double peak_for(const Limits *l, const amp_model_kernel *k) {
    const bool bf16 =
        k->kind == AMP_KERNEL_ATTENTION ? k->attention->storage == AMP_DT_BF16 : k->product.operand == AMP_DT_BF16;
    return bf16 ? l->bf16 : l->f32;
}

static void print_kinds(const Limits *l, const Row *rows, int count) {
    bool *done = calloc((size_t)count, sizeof *done);
    for (int i = 0; done && i < count; i++) {
        Row sum = {.kernel = rows[i].kernel};
        int kernels = 0;
        for (int j = i; j < count && !done[i]; j++) {
            if (strcmp(kind_of(rows[j].kernel), kind_of(rows[i].kernel))) continue;
            sum.ms += rows[j].ms, sum.flop += rows[j].flop, sum.bytes += rows[j].bytes;
            kernels++;
            if (j > i) done[j] = true;
        }
        char name[16];
        snprintf(name, sizeof name, "%4d x", kernels);
        if (!done[i]) print_row(l, name, kind_of(rows[i].kernel), &sum, peak_for(l, rows[i].kernel));
    }
    free(done);
}

static int run(amp_model *model, int64_t n, int rounds) {
    amp_error err = {0};
    amp_device *device;
    const amp_allocator allocator = amp_allocator_or_default(NULL);
    const amp_device_options options = {.threads = 1, .model = model};
    const amp_program *p = model->train_step;
    if (!p) return fail("the model has no train block");
    if (amp_device_cpu.create(&options, &allocator, &device, &err)) return fail(err.message);
    Row *rows = calloc((size_t)p->kernel_count, sizeof *rows);
    if (!rows || measure(device, p, (amp_sizes){.n = n}, rounds, rows)) return 1;
    Limits l = {.copy = copy_speed(),
                .f32 = bench_peak(amp_product_select(AMP_DT_F32, NULL, &err)),
                .bf16 = bench_peak(amp_product_select(AMP_DT_BF16, NULL, &err))};
    for (int i = 0; i < p->kernel_count; i++) l.total += rows[i].ms;
    printf("%.3f ms in %d kernels; peaks: %.0f GFLOP/s in f32, %.0f in bf16, copying %.1f GB/s\n\n", l.total,
           p->kernel_count, l.f32, l.bf16, l.copy);
    qsort(rows, (size_t)p->kernel_count, sizeof *rows, by_time);
    print_kinds(&l, rows, p->kernel_count);
    printf("\n");
    for (int i = 0; i < p->kernel_count && i < SHOWN; i++)
        print_row(&l, rows[i].kernel->name, rows[i].kernel->title, &rows[i], peak_for(&l, rows[i].kernel));
    amp_device_cpu.destroy(device);
    free(rows);
    return 0;
}

int main(int argc, char **argv) {
    amp_error err = {0};
    amp_model *model;
    if (argc != 3 && argc != 4) return fprintf(stderr, "usage: step_kernels MODEL.so BATCH [ROUNDS]\n"), 2;
    const int rounds = argc == 4 ? atoi(argv[3]) : USUAL_ROUNDS;
    if (rounds < 1 || rounds > MOST_ROUNDS) return fail("ROUNDS is not 1 to 100");
    if (amp_model_load(argv[1], NULL, &model, &err)) return fail(err.message);
    const int status = run(model, atoll(argv[2]), rounds);
    amp_model_release(model);
    return status;
}
