/* embed_train.c: a C program that trains a compiled model, on public headers alone.
 *
 *     embed_train mlp.so
 *
 * The data is made up: two classes of 784 numbers, told apart by which half is brighter.  Any model with one f32
 * input, i32 targets and at least two classes will do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"
#include "amp/inspect.h"

enum { BATCH = 64, STEPS = 200 };

static int fail(const amp_error *err) {
    fprintf(stderr, "embed_train: %s\n", err->message);
    return 1;
}

/* A batch of noisy samples: class 0 is brighter in its first half, class 1 in its second. */
static void make_batch(float *x, int *y, long width) {
    for (long i = 0; i < BATCH; i++) {
        y[i] = rand() % 2;
        for (long k = 0; k < width; k++) {
            int bright = (k < width / 2) == (y[i] == 0);
            x[i * width + k] = (float)rand() / (float)RAND_MAX + (bright ? 0.2f : 0.0f);
        }
    }
}

static int train(amp_session *session, long width) {
    amp_error err;
    amp_step_report report;
    float *x = malloc(sizeof *x * BATCH * (size_t)width);
    int y[BATCH];
    const void *inputs[] = {x, y};
    for (int i = 0; x && i < STEPS; i++) {
        make_batch(x, y, width);
        if (amp_step(session, inputs, (amp_sizes){.n = BATCH}, &report, &err)) return fail(&err);
        if (i % 50 == 0 || i == STEPS - 1)
            printf("step %3d  loss %.4f  scale %g%s\n", i, report.loss, report.scale,
                   report.skipped ? "  (skipped)" : "");
    }
    free(x);
    return 0;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_tensor_info input;
    amp_decision why;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH};
    if (argc != 2) return fprintf(stderr, "usage: embed_train MODEL.so\n"), 2;

    if (amp_model_load(argv[1], NULL, &model, &err)) return fail(&err);
    if (amp_params_create(model, &seed, &params, &err)) return fail(&err);
    if (amp_session_create(model, params, &options, &session, &err)) return fail(&err);
    if (amp_model_input_at(model, 0, (amp_sizes){.n = BATCH}, &input, &err)) return fail(&err);

    for (int i = 0; !amp_model_decision_at(model, i, &why, &err); i++)
        printf("%-28s %-5s because %s\n", why.path, amp_dtype_name(why.dtype), why.reason);
    if (train(session, (long)input.dims[1])) return 1;
    if (amp_params_save(params, "trained.safetensors", NULL, &err)) return fail(&err);
    printf("saved trained.safetensors\n");

    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}
