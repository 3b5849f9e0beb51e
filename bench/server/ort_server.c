/* ort_server.c: the server of examples/server with onnxruntime in place of libamp: the peer of the comparison.
 *
 *     ort_server MODEL.onnx LIBONNXRUNTIME.so ADDRESS THREADS INPUTS OUTPUTS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"
#include "serving.h"

typedef struct Service {
    Ort *ort; /* one model, which all threads run */
    Backend backend;
} Service;

typedef struct Worker {
    const Backend *backend;
    float *x, *y;
    OrtCaller *caller;
} Worker;

static void close_worker(void *worker) {
    Worker *w = worker;
    ort_caller_free(w->caller);
    free(w->x);
    free(w->y);
    free(w);
}

static void *open_worker(void *ctx) {
    Service *s = ctx;
    const Backend *b = &s->backend;
    Worker *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->backend = b;
    w->x = malloc(sizeof *w->x * b->inputs);
    w->y = malloc(sizeof *w->y * b->outputs);
    if (w->x && w->y) w->caller = ort_caller(s->ort, w->x, b->inputs, w->y, b->outputs, 1);
    if (w->caller) return w;
    close_worker(w);
    return NULL;
}

/* The arrays of a caller are fixed, so both are copied: 3 kB. */
static uint64_t answer(void *worker, const float *x, float *y) {
    Worker *w = worker;
    memcpy(w->x, x, sizeof *x * w->backend->inputs);
    if (ort_run(w->caller)) return 0;
    memcpy(y, w->y, sizeof *y * w->backend->outputs);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 7) return fprintf(stderr, "usage: ort_server MODEL.onnx LIBRARY ADDRESS THREADS INPUTS OUTPUTS\n"), 2;
    Service s = {.ort = ort_open(argv[2], argv[1])};
    if (!s.ort) return 1;
    s.backend = (Backend){.inputs = (uint32_t)atoi(argv[5]),
                          .outputs = (uint32_t)atoi(argv[6]),
                          .ctx = &s,
                          .open = open_worker,
                          .answer = answer,
                          .close = close_worker};
    int failed = serve(argv[3], atoi(argv[4]), &s.backend);
    ort_close(s.ort);
    return failed;
}
