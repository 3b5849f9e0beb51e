/* step_bench.c: training steps on the device "cuda", for gpu-check:
 *
 *     step_bench [--inputs pageable|pinned|device] [--products 0|1|2] MODEL.so BATCH [INPUT=COUNT...]
 *
 * --products: one of AMP_PRODUCTS_*.  Prints {"ready": 1, "library": [..]} with what the session says of products by
 * cuBLASLt, then answers each line K with a line of JSON:
 *   wall_us, device_us   of a step, of K steps that are started without waiting; by the host's clock until all are done,
 *                        and between device events
 *   host_cpu_us, host_us of one call of amp_step without a report, on a device that has nothing to do: processor time
 *                        of the calling thread and the host's clock; medians
 * Inputs are in ordinary or page-locked memory of the host, where each step brings its own to the device, or on the device
 * already; several sets take turns.  Integers of INPUT are below COUNT, else below 10. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amp/amp.h"
#include "amp/cuda.h"
#include "runtime/device/cuda/cuda_driver.h"

enum { SETS = 8, HOST_STEPS = 200, USUAL_BOUND = 10 };
typedef enum Place { PAGEABLE, PINNED, DEVICE, PLACES } Place;
static const char *const places[PLACES] = {"pageable", "pinned", "device"};

typedef struct Bench {
    CudaDriver driver;
    CuStream stream;
    CuEvent start, end;
    amp_session *session;
    Place place;
    int products;
    int64_t batch;
    char **bounds; /* "INPUT=COUNT", up to a NULL */
    const void *inputs[SETS][8];
} Bench;

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int fail(const char *what) {
    fprintf(stderr, "step_bench: %s\n", what);
    return 1;
}

static int bound_of(const Bench *b, const char *input) {
    const size_t length = strlen(input);
    for (char **given = b->bounds; *given; given++)
        if (!strncmp(*given, input, length) && (*given)[length] == '=') return atoi(*given + length + 1);
    return USUAL_BOUND;
}

static void *host_memory(const Bench *b, size_t bytes) {
    void *memory = NULL;
    if (b->place != PINNED) return malloc(bytes);
    return b->driver.host_alloc(&memory, bytes, CU_HOST_PORTABLE) ? NULL : memory;
}

static void *on_device(const Bench *b, void *data, size_t bytes) {
    CuPointer memory = 0;
    const int failed = b->driver.mem_alloc(&memory, bytes) || b->driver.copy_in(memory, data, bytes, b->stream) ||
                       b->driver.stream_sync(b->stream);
    free(data);
    return failed ? NULL : (void *)(uintptr_t)memory;
}

/* Floats in [0, 1), integers below the input's bound. */
static void *make_input(const Bench *b, const amp_model *model, int index, unsigned seed) {
    amp_error err;
    amp_tensor_info info;
    if (amp_model_input_at(model, index, (amp_sizes){.n = b->batch}, &info, &err)) return NULL;
    const int bound = bound_of(b, info.name);
    int64_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= info.dims[i];
    float *data = host_memory(b, (size_t)count * 4);
    for (int64_t i = 0; data && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (info.dtype == AMP_DT_I32) ((int *)data)[i] = (int)(seed >> 8) % bound;
        else data[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return data && b->place == DEVICE ? on_device(b, data, (size_t)count * 4) : data;
}

/* The application's stream: events can be put before and after the steps. */
static int open_stream(Bench *b) {
    amp_error err;
    amp_cuda_device_info info;
    CuContext context;
    if (amp_cuda_driver_open(&b->driver, &err) || amp_cuda_device_find(&b->driver, 0, &info, &err))
        return fail(err.message);
    if (b->driver.primary_retain(&context, info.device) || b->driver.context_push(context) ||
        b->driver.stream_create(&b->stream, CU_STREAM_NON_BLOCKING) ||
        b->driver.event_create(&b->start, CU_EVENT_DEFAULT) || b->driver.event_create(&b->end, CU_EVENT_DEFAULT))
        return fail("no stream on the device");
    return 0;
}

/* |user|: how many lines before this one. */
static void print_library(void *user, amp_log_level level, const char *text) {
    int *lines = user;
    if (level == AMP_LOG_PROGRESS || !strstr(text, "cuBLASLt")) return;
    printf("%s\"", (*lines)++ ? ", " : "");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

/* With a log a session also looks at numbers, which takes time: the one that is measured has none, and finds on disk
 * what the first one has chosen. */
static int open_session(Bench *b, const char *path) {
    amp_error err = {0};
    amp_model *model;
    amp_params *params;
    amp_model_info info;
    const amp_cuda_options cuda = {.struct_size = sizeof cuda,
                                   .stream = b->stream,
                                   .device_inputs = b->place == DEVICE,
                                   .pinned_inputs = b->place == PINNED,
                                   .products = b->products};
    int lines = 0;
    amp_session_options options = {.struct_size = sizeof options,
                                   .capacity.n = b->batch,
                                   .device = "cuda",
                                   .cuda = &cuda,
                                   .log = print_library,
                                   .log_user = &lines};
    if (amp_model_load(path, NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_session_create(model, params, &options, &b->session, &err))
        return fail(err.message);
    amp_session_release(b->session);
    options.log = NULL;
    if (amp_session_create(model, params, &options, &b->session, &err)) return fail(err.message);
    amp_model_get_info(model, &info);
    if (info.input_count > 8) return fail("too many inputs");
    for (int set = 0; set < SETS; set++)
        for (int i = 0; i < info.input_count; i++)
            if (!(b->inputs[set][i] = make_input(b, model, i, (unsigned)(8 * set + i + 1)))) return fail("no memory");
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}

static int step(Bench *b, int i) {
    amp_error err;
    return amp_step(b->session, b->inputs[i % SETS], (amp_sizes){.n = b->batch}, NULL, &err) ? fail(err.message) : 0;
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count ? values[count / 2] : 0;
}

static int time_block(Bench *b, int steps) {
    float milliseconds = 0;
    double wall = clock_us(CLOCK_MONOTONIC);
    if (b->driver.event_record(b->start, b->stream)) return fail("cuEventRecord");
    for (int i = 0; i < steps; i++)
        if (step(b, i)) return 1;
    if (b->driver.event_record(b->end, b->stream) || b->driver.stream_sync(b->stream))
        return fail("the steps failed on the device");
    wall = clock_us(CLOCK_MONOTONIC) - wall;
    if (b->driver.event_elapsed(&milliseconds, b->start, b->end)) return fail("cuEventElapsedTime");
    printf("{\"steps\": %d, \"wall_us\": %.3f, \"device_us\": %.3f", steps, wall / steps,
           1e3 * (double)milliseconds / steps);
    return 0;
}

static int time_host(Bench *b, int steps) {
    double cpu[HOST_STEPS], wall[HOST_STEPS];
    if (steps > HOST_STEPS) steps = HOST_STEPS;
    for (int i = 0; i < steps; i++) {
        const double cpu0 = clock_us(CLOCK_THREAD_CPUTIME_ID), wall0 = clock_us(CLOCK_MONOTONIC);
        if (step(b, i)) return 1;
        cpu[i] = clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu0;
        wall[i] = clock_us(CLOCK_MONOTONIC) - wall0;
        if (b->driver.stream_sync(b->stream)) return fail("the steps failed on the device");
    }
    printf(", \"host_cpu_us\": %.3f, \"host_us\": %.3f}\n", median(cpu, steps), median(wall, steps));
    return 0;
}

static Place place_named(const char *name) {
    Place place = 0;
    while (place < PLACES && strcmp(name, places[place])) place++;
    return place;
}

int main(int argc, char **argv) {
    Bench b = {.place = PAGEABLE};
    for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2) {
        if (!strcmp(argv[1], "--inputs")) b.place = place_named(argv[2]);
        else b.products = atoi(argv[2]);
    }
    if (argc < 3 || b.place == PLACES || (b.batch = atoll(argv[2])) < 1)
        return fprintf(stderr, "usage: step_bench [--inputs pageable|pinned|device] [--products 0|1|2] MODEL.so BATCH "
                               "[INPUT=COUNT...]\n"),
               2;
    b.bounds = argv + 3;
    printf("{\"ready\": 1, \"library\": [");
    if (open_stream(&b) || open_session(&b, argv[1])) return 1;
    printf("]}\n");
    fflush(stdout);
    for (int steps; scanf("%d", &steps) == 1 && steps > 0;) {
        if (time_block(&b, steps) || time_host(&b, steps)) return 1;
        fflush(stdout);
    }
    amp_session_release(b.session);
    return 0;
}
