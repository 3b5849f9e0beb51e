/* kernel_bench.c: each kernel of a program by itself, between device events: kernel_bench MODEL.so PROGRAM N [REPEATS [KERNEL...]]
 *
 * Writes one line of JSON: the kernels in order (or only the named ones) with the median of their times, the bytes of
 * their operands (each once) and what a device-to-device copy of 1 GiB (less where memory is short) takes, bytes read and
 * written.  Launches are repeated with other operands each time (sets of buffers take turns, 256 MiB in all at least where
 * there is room), so that no cache keeps them.  REPEATS 0, for a profiler: each is launched once, nothing is timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/load.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/cuda_launch.h"
#include "runtime/model/model.h"

enum { MAX_SETS = 16, MAX_OPERANDS = 4096, WARM_UP = 3, MAX_REPEATS = 1000 };
static const size_t cold_bytes = (size_t)256 << 20;
static const size_t pattern_bytes = (size_t)1 << 20; /* a multiple of each type's size */

typedef struct Bench {
    amp_cuda_context *context;
    const amp_model *model;
    const amp_program *program;
    amp_cuda_functions functions;
    amp_sizes sizes;
    int sets, repeats;
    char **only;        /* names of kernels, up to a NULL; none: all */
    CuPointer *buffers; /* [sets][buffer_count] */
    CuStream stream;
    CuEvent start, end;
} Bench;

static int fail(const char *what) {
    fprintf(stderr, "kernel_bench: %s\n", what);
    return 1;
}

#define DRIVER(b, name, arguments)                                                                                     \
    do {                                                                                                               \
        amp_error driver_err;                                                                                          \
        if (AMP_CUDA((b)->context, &driver_err, name, arguments)) return fail(driver_err.message);                     \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t buffer_bytes(const Bench *b, const amp_model_buffer *x) {
    size_t elements = (size_t)(amp_model_dim_at(&x->rows, b->sizes) * amp_model_dim_at(&x->cols, b->sizes));
    return elements * amp_storage_size(x->storage);
}

/* Small numbers that differ; integers 1, so that predicates hold and indices are valid. */
static void fill(void *data, const amp_model_buffer *x, size_t bytes, unsigned seed) {
    size_t size = amp_storage_size(x->storage);
    for (size_t i = 0; i < bytes / size; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(seed >> 8) / 16777216.0f * 0.1f + 0.001f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t short_bits = (uint16_t)(bits >> 16);
        if (x->storage == AMP_DT_F16) short_bits = (uint16_t)(0x2000u | (seed >> 22)); /* 0.0078 to 0.0156 */
        switch (x->storage) {
        case AMP_DT_F32: ((float *)data)[i] = value; break;
        case AMP_DT_F16:
        case AMP_DT_BF16: ((uint16_t *)data)[i] = short_bits; break;
        case AMP_DT_F64: ((double *)data)[i] = (double)value; break;
        case AMP_DT_I64: ((int64_t *)data)[i] = 1; break;
        default: memset((char *)data + i * size, 0, size), ((char *)data)[i * size] = 1; break;
        }
    }
}

static size_t set_bytes(const Bench *b) {
    size_t total = 0;
    for (int i = 0; i < b->program->buffer_count; i++) total += buffer_bytes(b, &b->program->buffers[i]);
    return total;
}

/* Buffers of one state are one. */
static CuPointer shared_state(const Bench *b, const CuPointer *set, int i) {
    const amp_model_buffer *x = b->program->buffers;
    for (int j = 0; j < i; j++)
        if (x[i].kind == AMP_BUFFER_STATE && x[j].kind == AMP_BUFFER_STATE && x[i].index == x[j].index) return set[j];
    return 0;
}

/* A pattern of the host, then copies of what is there: the bus would take longer than the kernels. */
static int fill_buffer(Bench *b, CuPointer to, const amp_model_buffer *x, size_t bytes, unsigned seed) {
    size_t filled = bytes < pattern_bytes ? bytes : pattern_bytes;
    void *data = malloc(filled + 16);
    if (!data) return fail("no memory");
    fill(data, x, filled, seed);
    DRIVER(b, copy_in, (to, data, filled, b->stream));
    DRIVER(b, stream_sync, (b->stream));
    free(data);
    for (size_t part; filled < bytes; filled += part) {
        part = filled < bytes - filled ? filled : bytes - filled;
        DRIVER(b, copy, (to + filled, to, part, b->stream));
    }
    return 0;
}

static int make_set(Bench *b, int number) {
    CuPointer *set = b->buffers + number * b->program->buffer_count;
    for (int i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *x = &b->program->buffers[i];
        size_t bytes = buffer_bytes(b, x);
        set[i] = x->kind == AMP_BUFFER_WATCH ? 0 : shared_state(b, set, i);
        if (set[i] || x->kind == AMP_BUFFER_WATCH) continue;
        if (x->kind == AMP_BUFFER_LOOK) { /* counts, which are off */
            DRIVER(b, mem_alloc, (&set[i], sizeof(amp_model_look_counts)));
            DRIVER(b, fill32, (set[i], 0, sizeof(amp_model_look_counts) / sizeof(uint32_t), b->stream));
            continue;
        }
        DRIVER(b, mem_alloc, (&set[i], bytes + 16));
        if (fill_buffer(b, set[i], x, bytes, (unsigned)(number * 1000 + i + 1))) return 1;
    }
    DRIVER(b, stream_sync, (b->stream));
    return 0;
}

static int make_buffers(Bench *b) {
    size_t free_bytes, total, one = set_bytes(b) + 1;
    DRIVER(b, mem_info, (&free_bytes, &total));
    b->sets = (int)(cold_bytes / one) + 2;
    if (b->sets > MAX_SETS) b->sets = MAX_SETS;
    while (b->sets > 1 && one * (size_t)b->sets > free_bytes / 2) b->sets--;
    b->buffers = calloc((size_t)(b->sets * b->program->buffer_count), sizeof *b->buffers);
    if (!b->buffers) return fail("no memory");
    for (int i = 0; i < b->sets; i++)
        if (make_set(b, i)) return 1;
    return 0;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct Launch {
    uint64_t values[300];
    void *pointers[300];
    CuPointer tables, partials; /* 0: it has none */
    amp_cuda_used used;
} Launch;

static int prepare(Bench *b, const amp_model_cuda_kernel *k, int set, Launch *l) {
    static uint64_t words[3 * MAX_OPERANDS];
    const CuPointer *buffers = b->buffers + set * b->program->buffer_count;
    uint32_t count = 0, table = 0;
    if (k->operands.count > MAX_OPERANDS || k->elements.count > MAX_OPERANDS || k->waits.tickets > MAX_OPERANDS)
        return fail("too many operands");
    for (uint32_t i = 0; i < k->operands.count; i++) {
        if (k->operand_table) words[table++] = buffers[k->operands.at[i]];
        else l->values[count++] = buffers[k->operands.at[i]];
    }
    for (uint32_t i = 0; i < k->elements.count; i++)
        words[table + i] = (uint64_t)amp_model_dim_at(&k->elements.at[i], b->sizes);
    const uint32_t size = table + k->elements.count + k->waits.tickets; /* which are zero */
    memset(words + table + k->elements.count, 0, k->waits.tickets * sizeof *words);
    if (size) {
        DRIVER(b, mem_alloc, (&l->tables, size * 8));
        DRIVER(b, copy_in, (l->tables, words, size * 8, b->stream));
        DRIVER(b, stream_sync, (b->stream));
    }
    if (k->operand_table) l->values[count++] = l->tables;
    l->values[count++] = (uint64_t)b->sizes.n;
    for (uint32_t i = 0; i < k->sizes.count; i++)
        l->values[count++] = (uint64_t)amp_model_dim_at(&k->sizes.at[i], b->sizes);
    if (k->elements.count) l->values[count++] = l->tables + 8 * table;
    if (k->waits.tickets) l->values[count++] = l->tables + 8 * (table + k->elements.count);
    l->used =
        amp_cuda_launch_choose(k, b->sizes, b->context->info.multiprocessors, b->context->info.max_shared_optin_bytes);
    if (k->waits.partial_bytes) {
        const size_t blocks = (size_t)(l->used.grid[0] * l->used.grid[1] * l->used.grid[2]);
        DRIVER(b, mem_alloc, (&l->partials, blocks * (8 + k->waits.partial_bytes)));
        DRIVER(b, fill32, (l->partials, 0, 2 * blocks, b->stream));
        l->values[count++] = l->partials;
        l->values[count++] = l->partials + 8 * blocks;
    }
    for (uint32_t i = 0; amp_cuda_places_parts(k) && i < k->parts.count; i++) {
        const amp_cuda_part_place place = amp_cuda_place_part(k, l->used.index, i, b->sizes);
        l->values[count++] = (uint64_t)place.first;
        l->values[count++] = (uint64_t)place.x;
        l->values[count++] = (uint64_t)place.y;
    }
    for (uint32_t i = 0; i < count; i++) l->pointers[i] = &l->values[i];
    return 0;
}

static int start(Bench *b, Launch *l) {
    const amp_model_cuda_choice *how = l->used.choice;
    const int64_t *grid = l->used.grid;
    DRIVER(b, launch,
           (b->functions.loaded[how->function].function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2],
            how->block[0], how->block[1], how->block[2], how->shared_bytes, b->stream, l->pointers, NULL));
    return 0;
}

static int by_value(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* Microseconds of all repeats as one graph, so that the host's launches are not what is measured. */
static int time_graph(Bench *b, Launch *l, float *ms) {
    CuGraph graph;
    CuGraphExec exec;
    DRIVER(b, capture_begin, (b->stream, CU_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < b->repeats; i++)
        if (start(b, &l[i % b->sets])) return 1;
    DRIVER(b, capture_end, (b->stream, &graph));
    DRIVER(b, graph_instantiate, (&exec, graph, 0));
    for (int i = 0; i < 2; i++) { /* the first launch also brings the graph to the device */
        DRIVER(b, event_record, (b->start, b->stream));
        DRIVER(b, graph_launch, (exec, b->stream));
        DRIVER(b, event_record, (b->end, b->stream));
        DRIVER(b, stream_sync, (b->stream));
    }
    DRIVER(b, event_elapsed, (ms, b->start, b->end));
    DRIVER(b, graph_exec_destroy, (exec));
    DRIVER(b, graph_destroy, (graph));
    return 0;
}

/* Microseconds: medians of single launches, and their mean when several follow one another (no gaps in between). */
static int time_kernel(Bench *b, Launch *l, double *median, double *in_a_row) {
    static float times[MAX_REPEATS];
    float all = 0;
    for (int i = 0; i < b->repeats + WARM_UP; i++) {
        DRIVER(b, event_record, (b->start, b->stream));
        if (start(b, &l[i % b->sets])) return 1;
        DRIVER(b, event_record, (b->end, b->stream));
        DRIVER(b, stream_sync, (b->stream));
        if (i >= WARM_UP) DRIVER(b, event_elapsed, (&times[i - WARM_UP], b->start, b->end));
    }
    qsort(times, (size_t)b->repeats, sizeof *times, by_value);
    *median = 1e3 * (double)times[b->repeats / 2];
    if (time_graph(b, l, &all)) return 1;
    *in_a_row = 1e3 * (double)all / b->repeats;
    return 0;
}

/* Bytes of operands, each buffer once. */
static size_t kernel_bytes(const Bench *b, const amp_model_cuda_kernel *k) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < k->operands.count; i++) {
        uint32_t first = 0;
        while (k->operands.at[first] != k->operands.at[i]) first++;
        if (first == i) bytes += buffer_bytes(b, &b->program->buffers[k->operands.at[i]]);
    }
    return bytes;
}

/* Flags are zero when a program starts. */
static int clear_flags(Bench *b) {
    for (int set = 0; set < b->sets; set++)
        for (int i = 0; i < b->program->buffer_count; i++) {
            const amp_model_buffer *x = &b->program->buffers[i];
            if (x->kind == AMP_BUFFER_FLAG)
                DRIVER(b, fill8, (b->buffers[set * b->program->buffer_count + i], 0, buffer_bytes(b, x), b->stream));
        }
    return 0;
}

/* What its products compute (elements, terms) on tensor cores, and its sizes, where rows, k and cols are found. */
static void print_products(const Bench *b, const amp_model_cuda_kernel *k) {
    const char *between = "";
    printf(", \"products\": [");
    for (uint32_t i = 0; i < k->work.count; i++) {
        const amp_model_cuda_work *w = &k->work.at[i];
        if (w->instruction < AMP_INSTRUCTION_MMA_F16) continue;
        printf("%s[%lld, %lld]", between, (long long)amp_model_dim_at(&w->elements, b->sizes),
               (long long)amp_model_dim_at(&w->terms, b->sizes));
        between = ", ";
    }
    printf("], \"sizes\": [");
    for (uint32_t i = 0; i < k->sizes.count; i++)
        printf("%s%lld", i ? ", " : "", (long long)amp_model_dim_at(&k->sizes.at[i], b->sizes));
    printf("], \"members\": %u}", k->parts.at->members);
}

/* Whether a product of it runs on tensor cores. */
static bool has_mma(const amp_model_cuda_kernel *k) {
    for (uint32_t i = 0; i < k->work.count; i++)
        if (k->work.at[i].instruction >= AMP_INSTRUCTION_MMA_F16) return true;
    return false;
}

static bool is_chosen(const Bench *b, const char *kernel) {
    for (char **name = b->only; *name; name++)
        if (!strcmp(*name, kernel)) return true;
    return !*b->only;
}

static int launch_once(Bench *b, Launch *l) {
    if (start(b, l)) return 1;
    DRIVER(b, stream_sync, (b->stream));
    return 0;
}

static int time_all(Bench *b) {
    Launch *launches = calloc(MAX_SETS, sizeof *launches);
    if (!launches) return fail("no memory");
    bool any = false;
    printf("\"kernels\": [");
    for (int i = 0; i < b->program->kernel_count; i++) {
        const amp_model_cuda_kernel *k = &b->program->cuda_kernels[i];
        double median = 0, in_a_row = 0;
        int64_t elements = 0;
        if (!is_chosen(b, k->name)) continue;
        for (int s = 0; s < b->sets; s++)
            if (prepare(b, k, s, &launches[s])) return 1;
        const amp_cuda_loaded *f = &b->functions.loaded[launches[0].used.choice->function];
        if (b->repeats ? time_kernel(b, launches, &median, &in_a_row) : launch_once(b, launches)) return 1;
        for (int s = 0; s < b->sets; s++) {
            if (launches[s].tables) DRIVER(b, mem_free, (launches[s].tables));
            if (launches[s].partials) DRIVER(b, mem_free, (launches[s].partials));
        }
        memset(launches, 0, MAX_SETS * sizeof *launches);
        const uint32_t kind = k->parts.at->superstep ? (uint32_t)AMP_KERNEL_PRODUCT : k->parts.at->kind;
        for (uint32_t j = 0; j < k->elements.count; j++) elements += amp_model_dim_at(&k->elements.at[j], b->sizes);
        printf("%s{\"name\": \"%s\", \"title\": \"%s\", \"kind\": %u, \"us\": %.3f, \"us_in_a_row\": %.3f, "
               "\"operand_bytes\": %zu, \"batch_elements\": %lld, \"tensor_cores\": %d, \"registers\": %d, "
               "\"spill_bytes\": %d",
               any ? ", " : "", k->name, k->title, kind, median, in_a_row, kernel_bytes(b, k), (long long)elements,
               has_mma(k), f->registers, f->spill_bytes);
        print_products(b, k);
        any = true;
    }
    if (!any) return fail("the program has no such kernel");
    printf("]");
    free(launches);
    return 0;
}

/* ---- the copy ------------------------------------------------------------------------------------------------------ */

static int time_copy(Bench *b) {
    size_t free_bytes, total, bytes = (size_t)1 << 30;
    CuPointer from, to;
    float times[10];
    DRIVER(b, mem_info, (&free_bytes, &total));
    if (b->repeats < 10) bytes = (size_t)1 << 20;
    while (bytes > free_bytes / 4) bytes /= 2;
    DRIVER(b, mem_alloc, (&from, bytes));
    DRIVER(b, mem_alloc, (&to, bytes));
    DRIVER(b, fill32, (from, 0x3F9D70A4, bytes / 4, b->stream));
    for (int i = 0; i < 13; i++) {
        DRIVER(b, event_record, (b->start, b->stream));
        DRIVER(b, copy, (to, from, bytes, b->stream));
        DRIVER(b, event_record, (b->end, b->stream));
        DRIVER(b, stream_sync, (b->stream));
        if (i >= 3) DRIVER(b, event_elapsed, (&times[i - 3], b->start, b->end));
    }
    qsort(times, 10, sizeof *times, by_value);
    printf(", \"copy_bytes\": %zu, \"copy_us\": %.3f", 2 * bytes, 1e3 * (double)times[5]);
    DRIVER(b, mem_free, (from));
    DRIVER(b, mem_free, (to));
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static int load_functions(Bench *b) {
    amp_error err = {0};
    amp_cuda_functions *f = &b->functions;
    const amp_cuda_device_info *device = &b->context->info;
    if (amp_cuda_functions_make(f, b->context, b->model, 0, NULL, &b->model->allocator, &err)) return fail(err.message);
    for (int32_t i = 0; i < b->program->kernel_count; i++) {
        const amp_model_cuda_kernel *k = &b->program->cuda_kernels[i];
        const amp_cuda_used used =
            amp_cuda_launch_choose(k, b->sizes, device->multiprocessors, device->max_shared_optin_bytes);
        f->wanted[used.choice->function] = true;
    }
    return amp_cuda_functions_load(f, &err) ? fail(err.message) : 0;
}

static int open_program(Bench *b, const char *path, const char *name) {
    amp_error err = {0};
    amp_model *model, *cuda;
    if (amp_model_load(path, NULL, &model, &err) || amp_model_for(model, "cuda", &cuda, &err)) return fail(err.message);
    b->model = cuda;
    b->program = amp_model_program_of(cuda, amp_program_kind(name));
    if (!b->program) return fail("the model has no such program");
    if (amp_cuda_context_open(&cuda->allocator, NULL, 0, &b->context, &err) || amp_cuda_enter(b->context, &err))
        return fail(err.message);
    DRIVER(b, stream_create, (&b->stream, CU_STREAM_NON_BLOCKING));
    DRIVER(b, event_create, (&b->start, CU_EVENT_DEFAULT));
    DRIVER(b, event_create, (&b->end, CU_EVENT_DEFAULT));
    return load_functions(b);
}

int main(int argc, char **argv) {
    Bench b = {.repeats = argc > 4 ? atoi(argv[4]) : 30, .only = argv + (argc > 5 ? 5 : argc)};
    if (argc < 4 || (b.sizes.n = atoll(argv[3])) < 1 || b.repeats < 0 || b.repeats > MAX_REPEATS)
        return fprintf(stderr, "usage: kernel_bench MODEL.so PROGRAM N [REPEATS [KERNEL...]]\n"), 2;
    if (open_program(&b, argv[1], argv[2]) || make_buffers(&b) || clear_flags(&b)) return 1;
    printf("{\"program\": \"%s\", \"n\": %lld, \"sets\": %d, ", argv[2], (long long)b.sizes.n, b.sets);
    if (time_all(&b) || (b.repeats && time_copy(&b))) return 1;
    printf("}\n");
    return 0;
}
