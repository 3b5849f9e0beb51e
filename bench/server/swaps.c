/* swaps.c: what a hand-over costs: the publisher, and the answers of serving threads meanwhile.
 *
 *     swaps MODEL.so THREADS SWAPS
 *
 * Prints percentiles of amp_params_publish where every weight changed, where one bias changed and where nothing did; of
 * amp_infer at batch 1 without swaps and with one each millisecond; and the memory of versions.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amp/amp.h"
#include "amp/serve.h"

enum { MAX_THREADS = 64, MAX_CALLS = 1 << 18, QUIET_MS = 500 };
enum { ALL, ONE, NONE };

typedef struct Server {
    pthread_t thread;
    amp_session *session;
    long width, outputs, calls;
    float *latency;
    int failed;
} Server;

static atomic_int stop;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_percentiles(const char *what, float *values, long count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    printf("%-44s p50 %8.1f us  p99 %8.1f us  of %ld\n", what, (double)values[count / 2],
           (double)values[count * 99 / 100], count);
}

static void *serve(void *arg) {
    Server *s = arg;
    amp_error err;
    float *x = calloc((size_t)s->width, sizeof *x), *y = malloc(sizeof *y * (size_t)s->outputs);
    const void *inputs[] = {x};
    void *outputs[] = {y};
    s->failed = !x || !y || !s->latency;
    while (!s->failed && !atomic_load(&stop) && s->calls < MAX_CALLS) {
        double start = now();
        s->failed = amp_infer(s->session, inputs, (amp_sizes){.n = 1}, outputs, &err) != AMP_OK;
        s->latency[s->calls++] = (float)(now() - start);
    }
    free(x);
    free(y);
    return NULL;
}

/* Weights that differ from those before in every number, in one tensor, or not at all. */
static int change(amp_model *model, amp_params *params, int what, int round) {
    amp_error err;
    amp_tensor_info t;
    for (int32_t i = 0; what != NONE && !amp_model_param_at(model, i, &t, &err); i++) {
        size_t count = 1;
        for (int32_t d = 0; d < t.rank; d++) count *= (size_t)t.dims[d];
        float *values = malloc(sizeof *values * count);
        if (what == ONE && t.rank > 1) count = 0;
        for (size_t k = 0; values && k < count; k++) values[k] = (float)((k + (size_t)round) % 100) / 1000.0f;
        int failed = !values || (count && amp_params_set(params, t.name, values, count, &err));
        free(values);
        if (failed) return 1;
        if (what == ONE && count) return 0;
    }
    return 0;
}

static int publish(amp_model *model, amp_params *params, int what, int swaps, const char *name) {
    amp_error err;
    amp_publish_report report = {0};
    float *latency = malloc(sizeof *latency * (size_t)swaps);
    int most = 0, failed = !latency;
    unsigned long long bytes = 0;
    for (int i = 0; !failed && i < swaps; i++) {
        failed = change(model, params, what, i);
        double start = now();
        failed = failed || amp_params_publish(params, &report, &err);
        latency[i] = (float)(now() - start);
        if (report.versions_alive > most) most = report.versions_alive;
        if (report.bytes_alive > bytes) bytes = report.bytes_alive;
        sleep_ms(1);
    }
    if (failed) return 1;
    print_percentiles(name, latency, swaps);
    printf("    copied %llu kB, shared %llu kB; at most %d versions alive, %llu kB\n",
           (unsigned long long)report.copied_bytes / 1000, (unsigned long long)report.shared_bytes / 1000, most,
           bytes / 1000);
    free(latency);
    return 0;
}

static int start_servers(amp_model *model, amp_params *params, Server *servers, int threads) {
    amp_error err;
    amp_tensor_info in, out;
    amp_session_options options = {.struct_size = sizeof options, .threads = 1, .published = 1};
    if (amp_model_input_at(model, 0, (amp_sizes){.n = 1}, &in, &err) ||
        amp_model_result_at(model, 0, (amp_sizes){.n = 1}, &out, &err))
        return 1;
    atomic_store(&stop, 0);
    for (int i = 0; i < threads; i++) {
        servers[i] = (Server){
            .width = (long)in.dims[1], .outputs = (long)out.dims[1], .latency = malloc(sizeof(float) * MAX_CALLS)};
        if (amp_session_create(model, params, &options, &servers[i].session, &err) ||
            pthread_create(&servers[i].thread, NULL, serve, &servers[i]))
            return 1;
    }
    return 0;
}

static int end_servers(Server *servers, int threads, const char *name) {
    int failed = 0;
    atomic_store(&stop, 1);
    for (int i = 0; i < threads; i++) {
        pthread_join(servers[i].thread, NULL);
        failed |= servers[i].failed;
        amp_session_release(servers[i].session);
    }
    if (!failed) print_percentiles(name, servers[0].latency, servers[0].calls);
    for (int i = 0; i < threads; i++) free(servers[i].latency);
    return failed;
}

int main(int argc, char **argv) {
    static Server servers[MAX_THREADS];
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    int threads = argc == 4 ? atoi(argv[2]) : 0, swaps = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > MAX_THREADS || swaps < 1)
        return fprintf(stderr, "usage: swaps MODEL.so THREADS SWAPS\n"), 2;
    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_params_publish(params, NULL, &err))
        return fprintf(stderr, "swaps: %s\n", err.message), 1;
    int failed = start_servers(model, params, servers, threads);
    sleep_ms(QUIET_MS);
    failed = failed || end_servers(servers, threads, "amp_infer, no swaps") ||
             start_servers(model, params, servers, threads) ||
             publish(model, params, ALL, swaps, "amp_params_publish, every weight changed") ||
             publish(model, params, ONE, swaps, "amp_params_publish, one bias changed") ||
             publish(model, params, NONE, swaps, "amp_params_publish, nothing changed") ||
             end_servers(servers, threads, "amp_infer, a swap each millisecond");
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}
