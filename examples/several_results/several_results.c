/* several_results.c: a network with two results and two losses, on public headers alone.
 *
 *     several_results points.so
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"
#include "amp/train.h"

enum { BATCH = 64, STEPS = 600 };

static float x[BATCH][2], far[BATCH][1];
static int32_t which[BATCH];

static void draw(void) {
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < 2; k++) x[i][k] = 2.0f * (float)rand() / (float)RAND_MAX - 1;
        which[i] = (x[i][0] < 0) + 2 * (x[i][1] < 0);
        far[i][0] = sqrtf(x[i][0] * x[i][0] + x[i][1] * x[i][1]);
    }
}

static int train(const amp_model *model, amp_session *session, amp_error *err) {
    const void *inputs[] = {x, which, far}; /* the model's inputs, then its train block's, as written there */
    double losses[2];
    for (int step = 1; step <= STEPS; step++) {
        draw();
        if (amp_step(session, inputs, (amp_sizes){.n = BATCH}, NULL, err) ||
            amp_session_get_losses(session, losses, err))
            return 1;
        if (step % 200 == 0)
            printf("step %d: %s %.3f, %s %.4f\n", step, amp_model_loss_name(model, 0), losses[0],
                   amp_model_loss_name(model, 1), losses[1]);
    }
    return 0;
}

/* One array for each result, as large as amp_model_result_at says. */
static int use(const amp_model *model, amp_session *session, amp_error *err) {
    static const float points[3][2] = {{0.5f, 0.5f}, {-0.6f, 0.3f}, {0.3f, -0.8f}};
    const void *inputs[] = {points};
    float quadrant[3][4], distance[3][1];
    void *outputs[] = {quadrant, distance};
    for (int i = 0; i < 2; i++) {
        amp_tensor_info info;
        if (amp_model_result_at(model, i, (amp_sizes){.n = 3}, &info, err)) return 1;
        printf("result %d: %s, %s [%lld, %lld]\n", i, info.name, amp_dtype_name(info.dtype), (long long)info.dims[0],
               (long long)info.dims[1]);
    }
    if (amp_infer(session, inputs, (amp_sizes){.n = 3}, outputs, err)) return 1;
    for (int i = 0; i < 3; i++) {
        int best = 0;
        for (int c = 1; c < 4; c++)
            if (quadrant[i][c] > quadrant[i][best]) best = c;
        printf("(%.1f, %.1f): quadrant %d, distance %.1f\n", points[i][0], points[i][1], best, distance[i][0]);
    }
    return 0;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .threads = 1};
    if (argc != 2) return fprintf(stderr, "usage: several_results MODEL.so\n"), 2;
    int failed = amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, &seed, &params, &err) ||
                 amp_session_create(model, params, &options, &session, &err) || train(model, session, &err) ||
                 use(model, session, &err);
    if (failed) fprintf(stderr, "several_results: %s\n", err.message);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}
