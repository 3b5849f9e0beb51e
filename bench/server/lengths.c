/* lengths.c: what bench/lengths times: amp_infer of a model with a size T, and of models for one length, and
 * onnxruntime, in one process, one thread.
 *
 *     lengths WEIGHTS MODEL.onnx LIBONNXRUNTIME.so MOST MODEL.so [LENGTH=MODEL.so]...
 *
 * MODEL.so takes tokens and a mask, both i32[N, T], and gives logits f32[N, 2].  Answers lines of standard input:
 *
 *     any|one|onnxruntime LENGTH SECONDS     microseconds of processor time a call, repeated for as long
 *     memory                 bytes of each session, in the order of the arguments, and allocations of calls
 *     difference LENGTH      whether `any` and `one` have equal bits, and how far onnxruntime is
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amp/amp.h"
#include "amp/serve.h"
#include "ort.h"

enum { MOST_MODELS = 32, MOST_LENGTH = 4096, CLASSES = 2, WORDS = 1000, CHECK_EVERY = 4 };

typedef struct Counted {
    size_t bytes;
    long calls;
} Counted;

typedef struct Model {
    amp_session *session;
    int64_t length; /* 0: any */
    size_t bytes;   /* of the session */
} Model;

typedef struct Bench {
    Counted counted;
    Model models[MOST_MODELS];
    int count;
    Ort *ort;
    int32_t tokens[MOST_LENGTH], mask[MOST_LENGTH];
    float logits[3][CLASSES];
    long calls_before; /* allocations until all sessions were made */
} Bench;

static void *counted_alloc(void *user, size_t size, size_t align) {
    Counted *c = user;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size)) return NULL;
    c->bytes += size;
    c->calls++;
    return p;
}

static void counted_free(void *user, void *p, size_t size, size_t align) {
    (void)align;
    if (p) ((Counted *)user)->bytes -= size;
    free(p);
}

/* 0: |m| has a session of published weights */
static int open_model(Bench *b, const char *path, const char *weights, int64_t most, Model *m) {
    const amp_allocator allocator = {&b->counted, counted_alloc, counted_free};
    const amp_model_options loaded = {.struct_size = sizeof loaded, .allocator = &allocator};
    const amp_sizes capacity = {.n = 1, .t = m->length ? 0 : most};
    const amp_session_options options = {
        .struct_size = sizeof options, .capacity = capacity, .threads = 1, .published = 1};
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    size_t before = 0;
    int failed = amp_model_load(path, &loaded, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
                 amp_params_load(params, weights, NULL, NULL, &err) || amp_params_publish(params, NULL, &err);
    if (!failed) {
        before = b->counted.bytes;
        failed = amp_session_create(model, params, &options, &m->session, &err);
        m->bytes = b->counted.bytes - before;
    }
    if (failed) fprintf(stderr, "%s\n", err.message);
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}

static int call_ours(Bench *b, const Model *m, int64_t length, float *logits) {
    const void *inputs[] = {b->tokens, b->mask};
    void *outputs[] = {logits};
    const amp_sizes sizes = {.n = 1, .t = m->length ? 0 : length};
    amp_error err;
    if (!amp_infer(m->session, inputs, sizes, outputs, &err)) return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}

static OrtCaller *caller(Bench *b, int64_t length) {
    const OrtTensor inputs[] = {{"tokens", b->tokens, ORT_I32, {1, length}}, {"mask", b->mask, ORT_I32, {1, length}}};
    const OrtTensor output = {"logits", b->logits[2], ORT_F32, {1, CLASSES}};
    return ort_caller_of(b->ort, inputs, 2, &output);
}

static const Model *find(const Bench *b, const char *side, int64_t length) {
    for (int i = 0; i < b->count; i++)
        if (b->models[i].length == (strcmp(side, "one") ? 0 : length)) return &b->models[i];
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int time_calls(Bench *b, const char *side, int64_t length, double seconds) {
    const Model *m = find(b, side, length);
    const int is_theirs = !strcmp(side, "onnxruntime");
    OrtCaller *theirs = is_theirs ? caller(b, length) : NULL;
    int failed = !m || (is_theirs && !theirs);
    long calls = 0;
    double start = now(), end = start;
    for (; !failed && end - start < seconds; end = now())
        for (int i = 0; i < CHECK_EVERY && !failed; i++, calls++)
            failed = theirs ? ort_run(theirs) : call_ours(b, m, length, b->logits[0]);
    ort_caller_free(theirs);
    if (!failed) printf("%.3f\n", (end - start) * 1e6 / (double)calls);
    return failed;
}

static int compare(Bench *b, int64_t length) {
    const Model *any = find(b, "any", length), *one = find(b, "one", length);
    OrtCaller *theirs = caller(b, length);
    int failed = !theirs || !one || call_ours(b, any, length, b->logits[0]) ||
                 call_ours(b, one, length, b->logits[1]) || ort_run(theirs);
    ort_caller_free(theirs);
    double distance = 0;
    for (int i = 0; i < CLASSES; i++)
        distance = fmax(distance, fabs((double)b->logits[0][i] - (double)b->logits[2][i]));
    const int same = !memcmp(b->logits[0], b->logits[1], sizeof b->logits[0]);
    if (!failed) printf("%s %.3g\n", same ? "equal" : "different", distance);
    return failed;
}

static int answer(Bench *b, const char *line) {
    char side[16];
    long length = 0;
    double seconds = 0;
    if (!strcmp(line, "memory\n")) {
        for (int i = 0; i < b->count; i++) printf("%zu ", b->models[i].bytes);
        printf("%ld\n", b->counted.calls - b->calls_before);
        return 0;
    }
    const int read = sscanf(line, "%15s %ld %lf", side, &length, &seconds);
    if (read < 2 || length < 1 || length > MOST_LENGTH) return 1;
    return read == 2 ? compare(b, length) : time_calls(b, side, length, seconds);
}

int main(int argc, char **argv) {
    static Bench b;
    if (argc < 6 || argc - 5 > MOST_MODELS)
        return fprintf(stderr, "usage: lengths WEIGHTS MODEL.onnx LIBRARY MOST MODEL.so [LENGTH=MODEL.so]...\n"), 2;
    for (int i = 0; i < MOST_LENGTH; i++)
        b.tokens[i] = (int32_t)(((uint32_t)i * 2654435761u >> 7) % WORDS), b.mask[i] = 1;
    for (; b.count < argc - 5; b.count++) {
        char *equals = strchr(argv[5 + b.count], '='), *path = equals ? equals + 1 : argv[5 + b.count];
        b.models[b.count].length = equals ? atol(argv[5 + b.count]) : 0;
        if (open_model(&b, path, argv[1], atol(argv[4]), &b.models[b.count])) return 1;
    }
    b.calls_before = b.counted.calls;
    b.ort = ort_open(argv[3], argv[2]);
    if (!b.ort) return 1;
    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        if (answer(&b, line)) return fprintf(stderr, "lengths: not done: %s", line), 1;
        fflush(stdout);
    }
    return 0;
}
