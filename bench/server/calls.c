/* calls.c: a call of amp_infer beside one of onnxruntime, in one process, one thread, interleaved.
 *
 *     calls MODEL.so WEIGHTS.safetensors MODEL.onnx LIBONNXRUNTIME.so BATCH [ROUNDS]
 *
 * Prints microseconds of processor time a call (medians over the rounds) and the largest difference of results.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "amp/amp.h"
#include "amp/serve.h"
#include "ort.h"
#include "bench/server/median.h"

enum { ROUNDS = 31, MICROSECONDS_PER_ROUND = 20000 };

typedef struct Side {
    int (*call)(void *ctx); /* 0: done */
    void *ctx;
    double *means; /* of each round, in microseconds */
} Side;

typedef struct Ours {
    amp_session *session;
    const void *inputs[1];
    void *outputs[1];
    long n;
} Ours;

static int call_ours(void *ctx) {
    Ours *o = ctx;
    amp_error err;
    if (!amp_infer(o->session, o->inputs, (amp_sizes){.n = o->n}, o->outputs, &err)) return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
static int call_theirs(void *ctx) { return ort_run(ctx); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int time_round(Side *s, int round) {
    double start = now(), end = start;
    long calls = 0;
    for (; end - start < MICROSECONDS_PER_ROUND; calls++, end = now())
        if (s->call(s->ctx)) return 1;
    s->means[round] = (end - start) / (double)calls;
    return 0;
}

static amp_session *open_ours(const char *model_path, const char *weights, long n, amp_tensor_info *in,
                              amp_tensor_info *out) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = n, .threads = 1, .published = 1};
    if (amp_model_load(model_path, NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_params_load(params, weights, NULL, NULL, &err) || amp_params_publish(params, NULL, &err) ||
        amp_session_create(model, params, &options, &session, &err) ||
        amp_model_input_at(model, 0, (amp_sizes){.n = n}, in, &err) ||
        amp_model_result_at(model, 0, (amp_sizes){.n = n}, out, &err))
        fprintf(stderr, "%s\n", err.message);
    amp_params_release(params);
    amp_model_release(model);
    return session;
}

static float *numbers(long count) {
    float *x = malloc(sizeof *x * (size_t)count);
    for (long i = 0; x && i < count; i++) x[i] = (float)((i * 2654435761u >> 7) % 1000) / 1000.0f;
    return x;
}

static int compare(Side *ours, Side *theirs, int rounds) {
    for (int round = 0; round < rounds; round++)
        if (time_round(round % 2 ? ours : theirs, round) || time_round(round % 2 ? theirs : ours, round)) return 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "usage: calls MODEL.so WEIGHTS MODEL.onnx LIBRARY BATCH [ROUNDS]\n"), 2;
    long n = atol(argv[5]);
    int rounds = argc > 6 ? atoi(argv[6]) : ROUNDS;
    amp_tensor_info in, out;
    Ours o = {.session = open_ours(argv[1], argv[2], n, &in, &out), .n = n};
    Ort *ort = ort_open(argv[4], argv[3]);
    if (!o.session || !ort) return 1;
    float *x = numbers(n * in.dims[1]), *y = numbers(n * out.dims[1]), *y_theirs = numbers(n * out.dims[1]);
    Side ours = {call_ours, &o, malloc(sizeof(double) * (size_t)rounds)};
    Side theirs = {call_theirs, ort_caller(ort, x, in.dims[1], y_theirs, out.dims[1], n),
                   malloc(sizeof(double) * (size_t)rounds)};
    o.inputs[0] = x;
    o.outputs[0] = y;
    if (!theirs.ctx || compare(&ours, &theirs, rounds)) return 1;
    double difference = 0;
    for (long i = 0; i < n * out.dims[1]; i++) difference = fmax(difference, fabs((double)y[i] - (double)y_theirs[i]));
    double a = median(ours.means, rounds), b = median(theirs.means, rounds);
    printf("batch %ld: amp %.1f us, onnxruntime %s %.1f us a call, ratio %.2f; largest difference %.2g\n", n, a,
           ort_version(ort), b, a / b, difference);
    return 0;
}
