/* step_server.c: our side of bench/run: step_server MODEL.so BATCH THREADS [PAUSE]
 *
 * BATCH is N, or NxT of a model with a length, whose session takes no more than that T.
 *
 * Prints "ready", then answers each line K with the milliseconds of K training steps; with PAUSE of K requests for
 * inference, PAUSE microseconds apart, and then the processor time of all together.  BENCH_CLOCK=processor in the
 * environment: milliseconds of processor time, of all threads.
 *
 * BENCH_RANKS=PREFIX in the environment: one of the ranks that mpirun has started.  Each reads its lines from the pipe
 * PREFIX.RANK, so that one that waits takes no processor time, and rank 0 alone prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "amp/amp.h"
#include "amp/comm.h"
#include "amp/inspect.h"

static double ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

enum { MOST = 16 }; /* inputs, and results */

typedef struct Server {
    amp_session *session;
    amp_sizes sizes;
    const void *inputs[MOST];
    void *outputs[MOST];
    clockid_t clock;
    int pause; /* microseconds before a request; -1: trains */
} Server;

/* Floats in [0, 1), indices below what they choose from, other integers in [0, 10). */
static void *make_input(const amp_model *model, int index, amp_sizes sizes) {
    amp_error err;
    amp_tensor_info info;
    int64_t below;
    if (amp_model_input_at(model, index, sizes, &info, &err)) return NULL;
    if (amp_model_get_index_range(model, index, &below, NULL, &err)) return NULL;
    if (!below) below = 10;
    int64_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= info.dims[i];
    float *data = malloc((size_t)count * 4);
    unsigned seed = 1;
    for (int64_t i = 0; data && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (info.dtype == AMP_DT_I32) ((int *)data)[i] = (int)((int64_t)(seed >> 8) % below);
        else data[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return data;
}

static clockid_t step_clock(void) {
    const char *name = getenv("BENCH_CLOCK");
    return name && !strcmp(name, "processor") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
}

static int fail(const amp_error *err) {
    fprintf(stderr, "step_server: %s\n", err->message);
    return 1;
}

static void *make_output(const amp_model *model, int index, amp_sizes sizes) {
    amp_error err;
    amp_tensor_info info;
    if (amp_model_result_at(model, index, sizes, &info, &err)) return NULL;
    size_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= (size_t)info.dims[i];
    return malloc(count * 4);
}

/* Milliseconds; negative after an error. */
static double one_call(Server *s, amp_error *err) {
    amp_step_report report;
    if (s->pause > 0) usleep((useconds_t)s->pause);
    double start = ms(s->clock);
    amp_status status = s->pause < 0 ? amp_step(s->session, s->inputs, s->sizes, &report, err)
                                     : amp_infer(s->session, s->inputs, s->sizes, s->outputs, err);
    return status ? -1 : ms(s->clock) - start;
}

static int answer(Server *s, int calls, amp_error *err) {
    double start = ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < calls; i++) {
        double took = one_call(s, err);
        if (took < 0) return fail(err);
        printf("%s%.4f", i ? " " : "", took);
    }
    if (s->pause >= 0) printf(" %.4f", ms(CLOCK_PROCESS_CPUTIME_ID) - start);
    printf("\n");
    fflush(stdout);
    return 0;
}

/* Alone: no comm. */
static amp_status join_ranks(amp_comm **comm, amp_error *err) {
    const char *prefix = getenv("BENCH_RANKS");
    const amp_comm_options options = {.struct_size = sizeof options};
    char pipe[512];
    *comm = NULL;
    if (!prefix) return AMP_OK;
    amp_status status = amp_comm_open(&options, comm, err);
    if (status) return status;
    snprintf(pipe, sizeof pipe, "%s.%d", prefix, amp_comm_rank(*comm));
    if (freopen(pipe, "r", stdin) && (!amp_comm_rank(*comm) || freopen("/dev/null", "w", stdout))) return AMP_OK;
    snprintf(err->message, sizeof err->message, "%s cannot be opened", pipe);
    return AMP_IO;
}

int main(int argc, char **argv) {
    amp_error err = {0};
    amp_comm *comm;
    amp_model *model;
    amp_params *params;
    if (argc != 4 && argc != 5) return fprintf(stderr, "usage: step_server MODEL.so BATCH THREADS [PAUSE]\n"), 2;
    char *after;
    Server s = {
        .sizes.n = strtoll(argv[2], &after, 10), .clock = step_clock(), .pause = argc == 5 ? atoi(argv[4]) : -1};
    if (*after == 'x') s.sizes.t = atoll(after + 1);
    amp_session_options options = {.struct_size = sizeof options,
                                   .capacity = s.sizes,
                                   .threads = atoi(argv[3]),
                                   .program = s.pause >= 0 ? "infer" : NULL};
    if (join_ranks(&comm, &err)) return fail(&err);
    options.comm = comm;
    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_session_create(model, params, &options, &s.session, &err))
        return fail(&err);
    for (int i = 0; i < MOST; i++) {
        s.inputs[i] = make_input(model, i, s.sizes);
        s.outputs[i] = make_output(model, i, s.sizes);
    }
    printf("ready\n");
    fflush(stdout);
    for (int calls; scanf("%d", &calls) == 1;)
        if (answer(&s, calls, &err)) return 1;
    amp_session_release(s.session);
    amp_params_release(params);
    amp_model_release(model);
    amp_comm_release(comm);
    return 0;
}
