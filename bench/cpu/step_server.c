/* step_server.c: our side of bench/run: step_server MODEL.so BATCH THREADS
 *
 * Prints "ready", then answers each line K with the milliseconds of K training steps. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "amp/amp.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Floats in [0, 1), labels in [0, 10). */
static void *make_input(const amp_model *model, int index, int64_t batch) {
    amp_error err;
    amp_tensor_info info;
    if (amp_model_input_at(model, index, batch, &info, &err)) return NULL;
    int64_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= info.dims[i];
    float *data = malloc((size_t)count * 4);
    unsigned seed = 1;
    for (int64_t i = 0; data && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (info.dtype == AMP_DT_I32) ((int *)data)[i] = (int)(seed >> 8) % 10;
        else data[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return data;
}

static int fail(const amp_error *err) {
    fprintf(stderr, "step_server: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv) {
    amp_error err = {0};
    amp_model *model;
    amp_params *params;
    amp_session *session;
    if (argc != 4) return fprintf(stderr, "usage: step_server MODEL.so BATCH THREADS\n"), 2;
    amp_session_options options = {.struct_size = sizeof options, .capacity = atoll(argv[2]), .threads = atoi(argv[3])};
    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_session_create(model, params, &options, &session, &err))
        return fail(&err);
    const void *inputs[2] = {make_input(model, 0, options.capacity), make_input(model, 1, options.capacity)};
    printf("ready\n");
    fflush(stdout);
    for (int steps; scanf("%d", &steps) == 1;) {
        for (int i = 0; i < steps; i++) {
            amp_step_report report;
            double start = now_ms();
            if (amp_step(session, inputs, options.capacity, &report, &err)) return fail(&err);
            printf("%s%.4f", i ? " " : "", now_ms() - start);
        }
        printf("\n");
        fflush(stdout);
    }
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}
