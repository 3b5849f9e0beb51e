/* scaler_driver.c: drives a model's loss scaler through given sequences, and says what every step left.
 *
 *     scaler_driver models/scaler.so [DEVICE] < sequences
 *
 * A sequence is one line `SCALE TRACKER PATTERN`: the bits of the f32 scale in hexadecimal, the growth tracker, and one
 * character a step: 1 where a gradient is to be not finite, 0 where all are to be finite.  Gradients are made so by the
 * input, not by the scale: x = NaN, or x = 0 with targets that cross_entropy ignores (then every gradient is exactly 0,
 * at every scale).
 *
 * Answers with one line a step: `SCALE TRACKER SKIPPED KEPT STATUS`.  KEPT is 1 where the weights, the moments and the
 * `step` counter have the bits that they had before; STATUS is what amp_step returned.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"
#include "amp/train.h"

enum { SAMPLES = 2, FEATURES = 4, WEIGHTS = 8, IGNORED = -100, MAX_PATTERN = 1 << 16 };
static const char *const weight_name = "fc.weight", *const moment_names[] = {"fc.weight/m", "fc.weight/v"};
enum { MOMENTS = sizeof moment_names / sizeof moment_names[0] };

/* What a skipped step must not touch. */
typedef struct Kept {
    float weight[WEIGHTS], moment[MOMENTS][WEIGHTS];
    int64_t step;
} Kept;

typedef struct Driver {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_error err;
} Driver;

static amp_status open_driver(Driver *d, const char *path, const char *device) {
    amp_params_options params = {.struct_size = sizeof params, .seed = 1};
    amp_session_options session = {
        .struct_size = sizeof session, .capacity.n = SAMPLES, .threads = 1, .device = device};
    amp_status status = amp_model_load(path, NULL, &d->model, &d->err);
    if (!status) status = amp_params_create(d->model, &params, &d->params, &d->err);
    if (!status) status = amp_session_create(d->model, d->params, &session, &d->session, &d->err);
    return status;
}

static void close_driver(Driver *d) {
    amp_session_release(d->session);
    amp_params_release(d->params);
    amp_model_release(d->model);
}

static amp_status read_kept(Driver *d, Kept *out) {
    amp_scaler_state state;
    memset(out, 0, sizeof *out);
    amp_status status = amp_params_get(d->params, weight_name, out->weight, WEIGHTS, &d->err);
    for (int i = 0; !status && i < MOMENTS; i++)
        status = amp_session_get_moment(d->session, moment_names[i], out->moment[i], WEIGHTS, &d->err);
    if (!status) status = amp_session_get_scaler(d->session, &state, &d->err);
    if (!status) out->step = state.step;
    return status;
}

/* Weights and moments that are finite and not zero, which they stay at every scale. */
static amp_status write_weights(Driver *d) {
    Kept start;
    for (int i = 0; i < WEIGHTS; i++) {
        start.weight[i] = 0.125f * (float)(i + 1);
        for (int k = 0; k < MOMENTS; k++) start.moment[k][i] = 0.5f / (float)(i + k + 1);
    }
    amp_status status = amp_params_set(d->params, weight_name, start.weight, WEIGHTS, &d->err);
    for (int i = 0; !status && i < MOMENTS; i++)
        status = amp_session_set_moment(d->session, moment_names[i], start.moment[i], WEIGHTS, &d->err);
    return status;
}

static amp_status start_sequence(Driver *d, uint32_t scale_bits, int32_t tracker) {
    amp_scaler_state state = {.growth_tracker = tracker};
    memcpy(&state.scale, &scale_bits, sizeof scale_bits);
    amp_status status = amp_session_set_scaler(d->session, &state, &d->err);
    return status ? status : write_weights(d);
}

static void print_step(const amp_scaler_state *state, int skipped, int kept, amp_status status) {
    uint32_t scale_bits;
    memcpy(&scale_bits, &state->scale, sizeof scale_bits);
    printf("%08" PRIx32 " %" PRId32 " %d %d %d\n", scale_bits, state->growth_tracker, skipped, kept, (int)status);
}

static amp_status one_step(Driver *d, int finite) {
    float x[SAMPLES * FEATURES];
    int32_t targets[SAMPLES] = {IGNORED, IGNORED};
    const void *inputs[] = {x, targets};
    amp_step_report report;
    amp_scaler_state state;
    Kept before, after;
    for (int i = 0; i < SAMPLES * FEATURES; i++) x[i] = finite ? 0.0f : NAN;

    amp_status failed = read_kept(d, &before);
    if (failed) return failed;
    amp_status status = amp_step(d->session, inputs, (amp_sizes){.n = SAMPLES}, &report, &d->err);
    if (status && status != AMP_SCALE_AT_FLOOR) return status;
    failed = read_kept(d, &after);
    if (!failed) failed = amp_session_get_scaler(d->session, &state, &d->err);
    if (failed) return failed;
    print_step(&state, report.skipped, !memcmp(&before, &after, sizeof before), status);
    if (!isnan(after.weight[0])) return AMP_OK;
    snprintf(d->err.message, sizeof d->err.message, "a step at scale %g made weights NaN", (double)state.scale);
    return AMP_INTERNAL;
}

static amp_status all_sequences(Driver *d, char *pattern) {
    uint32_t scale_bits;
    int32_t tracker;
    while (scanf("%" SCNx32 " %" SCNd32 " %65535s", &scale_bits, &tracker, pattern) == 3) {
        amp_status status = start_sequence(d, scale_bits, tracker);
        for (const char *at = pattern; !status && *at; at++) status = one_step(d, *at == '0');
        if (status) return status;
    }
    return AMP_OK;
}

int main(int argc, char **argv) {
    static char pattern[MAX_PATTERN];
    Driver d = {0};
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: scaler_driver MODEL.so [DEVICE] < sequences\n");
        return 2;
    }
    amp_status status = open_driver(&d, argv[1], argc == 3 ? argv[2] : NULL);
    if (!status) status = all_sequences(&d, pattern);
    if (status) fprintf(stderr, "scaler_driver: %s\n", d.err.message);
    close_driver(&d);
    return status != AMP_OK;
}
