/* train_made_up.c: trains a model on made-up numbers and saves its parameters, for tests of machines without data.
 *
 *     train_made_up MODEL.so ISA STEPS OUT.safetensors      ISA: portable, neon, ..., or best
 *
 * The model has one f32 input and i32 targets of ten classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"
#include "amp/cpu.h"

enum { BATCH = 32, CLASSES = 10 };

static int fail(const amp_error *err) {
    fprintf(stderr, "train_made_up: %s\n", err->message);
    return 1;
}

/* The same numbers everywhere: Knuth's linear congruential generator, MMIX. */
static unsigned next_number(void) {
    static unsigned long long state = 1;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33);
}

/* Class c is brighter in the c-th tenth of the sample. */
static void make_batch(float *x, int *y, long width) {
    for (long i = 0; i < BATCH; i++) {
        y[i] = (int)(next_number() % CLASSES);
        for (long k = 0; k < width; k++)
            x[i * width + k] = (float)(next_number() % 256) / 512.0f + (k * CLASSES / width == y[i] ? 0.5f : 0.0f);
    }
}

static int train(amp_session *session, long width, int steps, amp_error *err) {
    amp_step_report report;
    float *x = malloc(sizeof *x * BATCH * (size_t)width);
    int y[BATCH], failed = !x;
    const void *inputs[] = {x, y};
    for (int i = 0; !failed && i < steps; i++) {
        make_batch(x, y, width);
        failed = amp_step(session, inputs, (amp_sizes){.n = BATCH}, &report, err) != AMP_OK;
    }
    if (!failed) printf("loss %.6f scale %g step %lld\n", report.loss, report.scale, (long long)report.step);
    free(x);
    return failed;
}

int main(int argc, char **argv) {
    amp_error err = {0};
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_tensor_info input;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    if (argc != 5) return fprintf(stderr, "usage: train_made_up MODEL.so ISA STEPS OUT.safetensors\n"), 2;
    const amp_cpu_options cpu = {.struct_size = sizeof cpu, .isa = strcmp(argv[2], "best") ? argv[2] : NULL};
    const amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .cpu = &cpu};
    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, &seed, &params, &err) ||
        amp_session_create(model, params, &options, &session, &err) ||
        amp_model_input_at(model, 0, (amp_sizes){.n = 1}, &input, &err))
        return fail(&err);
    long width = 1;
    for (int i = 1; i < input.rank; i++) width *= (long)input.dims[i];
    if (train(session, width, atoi(argv[3]), &err) || amp_params_save(params, argv[4], NULL, &err)) return fail(&err);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}
