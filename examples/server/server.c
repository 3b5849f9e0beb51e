/* server.c: serves a compiled model on a socket, on public headers alone.
 *
 *     server MODEL.so WEIGHTS.safetensors ADDRESS THREADS
 *
 * ADDRESS is a path (with a slash) or a port of 127.0.0.1; the protocol is in serving.h.  Each thread has a session of
 * its own, which reads published weights.  SIGHUP loads the weights again and hands them over while requests are
 * answered; SIGTERM and SIGINT end the server.
 */
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"
#include "amp/serve.h"
#include "serving.h"

typedef struct Service {
    const char *weights;
    amp_model *model;
    amp_params *params; /* used by the main thread alone; workers read versions */
} Service;

static int fail(const amp_error *err) {
    fprintf(stderr, "server: %s\n", err->message);
    return 1;
}

/* Loading is all or nothing: where it fails, the weights before go on. */
static int load(void *ctx) {
    Service *s = ctx;
    amp_error err;
    amp_publish_report report;
    if (amp_params_load(s->params, s->weights, NULL, NULL, &err) || amp_params_publish(s->params, &report, &err))
        return fail(&err);
    printf("version %llu: %llu kB of weights changed\n", (unsigned long long)report.version,
           (unsigned long long)report.copied_bytes / 1000);
    fflush(stdout);
    return 0;
}

static void *open_session(void *ctx) {
    Service *s = ctx;
    amp_error err;
    amp_session *session;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = 1, .threads = 1, .published = 1};
    return amp_session_create(s->model, s->params, &options, &session, &err) ? fail(&err), NULL : session;
}

static void close_session(void *session) { amp_session_release(session); }

static uint64_t answer(void *session, const float *x, float *y) {
    amp_error err;
    const void *inputs[] = {x};
    void *outputs[] = {y};
    return amp_infer(session, inputs, (amp_sizes){.n = 1}, outputs, &err) ? fail(&err),
           0                                                              : amp_session_version(session);
}

static uint32_t count(const amp_tensor_info *t) {
    uint32_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) n *= (uint32_t)t->dims[i];
    return n;
}

/* One input and one result of f32. */
static int describe(const amp_model *model, Backend *b) {
    amp_error err;
    amp_tensor_info in, out;
    amp_model_info info;
    amp_model_get_info(model, &info);
    if (amp_model_input_at(model, 0, (amp_sizes){.n = 1}, &in, &err) ||
        amp_model_result_at(model, 0, (amp_sizes){.n = 1}, &out, &err))
        return fail(&err);
    if (info.model_input_count != 1 || info.result_count != 1 || in.dtype != AMP_DT_F32 || out.dtype != AMP_DT_F32)
        return fprintf(stderr, "server: %s: one input and one result of f32 are wanted\n", info.name), 1;
    b->inputs = count(&in);
    b->outputs = count(&out);
    return 0;
}

int main(int argc, char **argv) {
    amp_error err;
    if (argc != 5) return fprintf(stderr, "usage: server MODEL.so WEIGHTS.safetensors ADDRESS THREADS\n"), 2;
    Service s = {.weights = argv[2]};
    Backend b = {.ctx = &s, .open = open_session, .answer = answer, .close = close_session, .reload = load};
    if (amp_model_load(argv[1], NULL, &s.model, &err) || amp_params_create(s.model, NULL, &s.params, &err))
        return fail(&err);
    int failed = load(&s) || describe(s.model, &b) || serve(argv[3], atoi(argv[4]), &b);
    amp_params_release(s.params);
    amp_model_release(s.model);
    return failed;
}
