/* hand_over.c: one thread trains a model while others answer with it, on public headers alone.
 *
 *     hand_over mlp.so
 *
 * Every SWAP_EVERY steps the trainer publishes its weights; each answer is computed with exactly one published version.
 * The data is made up, as in embed_train: two classes, told apart by which half of the input is brighter.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"
#include "amp/serve.h"

enum { BATCH = 64, STEPS = 200, SWAP_EVERY = 20, SERVERS = 2 };

typedef struct Server {
    pthread_t thread;
    amp_session *session;
    const atomic_int *stop;
    long width, classes, answers, versions; /* how many answers, from how many versions */
    int failed;
} Server;

static int fail(const amp_error *err) {
    fprintf(stderr, "hand_over: %s\n", err->message);
    return 1;
}

/* Noisy samples: class 0 is brighter in its first half, class 1 in its second. */
static void make_batch(float *x, int *y, long n, long width) {
    for (long i = 0; i < n; i++) {
        y[i] = rand() % 2;
        for (long k = 0; k < width; k++) {
            int bright = (k < width / 2) == (y[i] == 0);
            x[i * width + k] = (float)rand() / (float)RAND_MAX + (bright ? 0.2f : 0.0f);
        }
    }
}

/* A thread that answers, one sample a call, as a server would.  It knows nothing of the training. */
static void *serve(void *arg) {
    Server *s = arg;
    amp_error err;
    float *x = calloc((size_t)s->width, sizeof *x), *logits = malloc(sizeof *logits * (size_t)s->classes);
    const void *inputs[] = {x};
    void *outputs[] = {logits};
    unsigned long long last = 0;
    s->failed = !x || !logits;
    while (!s->failed && !atomic_load(s->stop)) {
        s->failed = amp_infer(s->session, inputs, (amp_sizes){.n = 1}, outputs, &err) && fail(&err);
        s->answers++;
        s->versions += amp_session_version(s->session) != last;
        last = amp_session_version(s->session);
    }
    free(x);
    free(logits);
    return NULL;
}

static int train(amp_params *params, amp_session *session, long width) {
    amp_error err;
    amp_step_report step;
    amp_publish_report published;
    int y[BATCH], failed = 0;
    float *x = malloc(sizeof *x * BATCH * (size_t)width);
    const void *inputs[] = {x, y};
    for (int i = 1; x && !failed && i <= STEPS; i++) {
        make_batch(x, y, BATCH, width);
        if (amp_step(session, inputs, (amp_sizes){.n = BATCH}, &step, &err)) failed = fail(&err);
        if (failed || i % SWAP_EVERY) continue;
        if (amp_params_publish(params, &published, &err)) failed = fail(&err);
        else
            printf("step %3d  loss %.4f  version %llu: %llu kB copied, %d versions alive\n", i, step.loss,
                   (unsigned long long)published.version, (unsigned long long)published.copied_bytes / 1000,
                   (int)published.versions_alive);
    }
    free(x);
    return failed || !x;
}

static int run(amp_model *model, amp_params *params, amp_session *training) {
    amp_error err;
    amp_tensor_info input, result;
    Server servers[SERVERS];
    atomic_int stop = 0;
    int started = 0, failed = 0;
    amp_session_options options = {.struct_size = sizeof options, .threads = 1, .published = 1};
    if (amp_model_input_at(model, 0, (amp_sizes){.n = BATCH}, &input, &err) ||
        amp_model_result_at(model, 0, (amp_sizes){.n = 1}, &result, &err) ||
        amp_params_publish(params, NULL, &err)) /* the first version, so that there is something to serve */
        return fail(&err);
    for (; started < SERVERS && !failed; started++) {
        Server *s = &servers[started];
        *s = (Server){.stop = &stop, .width = (long)input.dims[1], .classes = (long)result.dims[1]};
        if (amp_session_create(model, params, &options, &s->session, &err)) return fail(&err);
        if (pthread_create(&s->thread, NULL, serve, s)) return fprintf(stderr, "hand_over: no thread\n"), 1;
    }
    failed = train(params, training, (long)input.dims[1]);
    atomic_store(&stop, 1);
    for (int i = 0; i < started; i++) {
        pthread_join(servers[i].thread, NULL);
        failed |= servers[i].failed;
        printf("server %d: %ld answers from %ld versions\n", i, servers[i].answers, servers[i].versions);
        amp_session_release(servers[i].session);
    }
    return failed;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *training = NULL;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .threads = 1};
    if (argc != 2) return fprintf(stderr, "usage: hand_over MODEL.so\n"), 2;
    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_session_create(model, params, &options, &training, &err))
        return fail(&err);
    int failed = run(model, params, training);
    amp_session_release(training);
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}
