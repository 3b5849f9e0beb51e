/* gan.c: two networks that train against each other, in one model: a generator learns to make numbers that look like
 * draws from a normal distribution, a discriminator to find out which were made.
 *
 *     gan gan.so [SEED]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"
#include "amp/train.h"

enum { BATCH = 256, STEPS = 3000, DRAWS = 16 };
static const double mean = 3, deviation = 0.5; /* of the real numbers */

static float noise[BATCH][4], real[BATCH][1];

/* Box and Muller's normal numbers. */
static float normal(void) {
    double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = (rand() + 1.0) / (RAND_MAX + 2.0);
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307 * v));
}

static void draw(void) {
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < 4; k++) noise[i][k] = normal();
        real[i][0] = (float)(mean + deviation * normal());
    }
}

/* The mean and the deviation of what the generator makes.  An inference of the whole model: the discriminator's answers
 * come along. */
static int look(amp_session *session, int step, amp_error *err) {
    const void *inputs[] = {noise, real};
    float made[BATCH][1], of_made[BATCH][1], of_real[BATCH][1];
    void *outputs[] = {made, of_made, of_real};
    double sum = 0, square = 0, losses[2];
    if (amp_session_get_losses(session, losses, err) ||
        amp_infer(session, inputs, (amp_sizes){.n = BATCH}, outputs, err))
        return 1;
    for (int i = 0; i < BATCH; i++) sum += made[i][0] / BATCH;
    for (int i = 0; i < BATCH; i++) square += (made[i][0] - sum) * (made[i][0] - sum) / BATCH;
    printf("step %4d: makes %.2f +- %.2f, generator %.3f, discriminator %.3f\n", step, sum, sqrt(square), losses[0],
           losses[1]);
    return 0;
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* How far the numbers that it makes are from the real ones: the first Wasserstein distance of DRAWS batches of each,
 * which in one dimension is the mean difference of the sorted numbers. */
static int distance(amp_session *session, double *result, amp_error *err) {
    static float makes[DRAWS * BATCH], reals[DRAWS * BATCH], of_made[BATCH][1], of_real[BATCH][1];
    const void *inputs[] = {noise, real};
    for (int i = 0; i < DRAWS; i++) {
        void *outputs[] = {makes + i * BATCH, of_made, of_real};
        draw();
        if (amp_infer(session, inputs, (amp_sizes){.n = BATCH}, outputs, err)) return 1;
        memcpy(reals + i * BATCH, real, sizeof real);
    }
    qsort(makes, DRAWS * BATCH, sizeof *makes, compare);
    qsort(reals, DRAWS * BATCH, sizeof *reals, compare);
    *result = 0;
    for (int i = 0; i < DRAWS * BATCH; i++) *result += fabs((double)makes[i] - reals[i]) / (DRAWS * BATCH);
    return 0;
}

static int train(amp_session *session, amp_error *err) {
    const void *inputs[] = {noise, real};
    for (int step = 1; step <= STEPS; step++) {
        draw();
        if (amp_step(session, inputs, (amp_sizes){.n = BATCH}, NULL, err))
            return 1; /* each block updates its own network */
        if (step % (STEPS / 5) == 0 && look(session, step, err)) return 1;
    }
    double last;
    if (distance(session, &last, err)) return 1;
    printf("distance %.3f\n", last);
    return 0;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .threads = 1};
    if (argc < 2 || argc > 3) return fprintf(stderr, "usage: gan MODEL.so [SEED]\n"), 2;
    if (argc == 3) seed.seed = strtoull(argv[2], NULL, 10), srand((unsigned)seed.seed);
    int failed = amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, &seed, &params, &err) ||
                 amp_session_create(model, params, &options, &session, &err) || train(session, &err);
    if (failed) fprintf(stderr, "gan: %s\n", err.message);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}
