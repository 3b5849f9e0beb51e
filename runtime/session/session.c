/* session.c: what a session has, and what that takes. */
#include "runtime/session/session.h"

#include "base/error.h"
#include "runtime/model/state.h"

amp_status amp_session_check_training(const amp_session *s, const char *call, amp_error *err) {
    if (!s) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: session is NULL", call);
    if (s->training) return AMP_OK;
    const char *why =
        amp_model_trains(s->model) ? "the session was created with inference = 1" : "the model has no train block";
    return amp_fail(err, AMP_WRONG_STATE, "%s: %s", call, why);
}

bool amp_session_has_device_memory(const amp_session *s) { return s->device && s->device->type->device_memory; }

/* ---- states ------------------------------------------------------------------------------------------------------ */

static bool reads_state(const amp_program *p, int32_t state) {
    for (int32_t i = 0; p && i < p->buffer_count; i++)
        if (p->buffers[i].kind == AMP_BUFFER_STATE && p->buffers[i].index == state) return true;
    return false;
}

bool amp_session_holds(const amp_session *s, int32_t index) {
    const amp_model *model = s->model;
    if (amp_state_lives_in_params(model, index, NULL)) return false;
    return s->training || reads_state(model->eval, index) || reads_state(model->infer, index) ||
           reads_state(model->eval_fp32, index) || reads_state(model->infer_fp32, index);
}

/* What a counter is stored as depends on its kind; the model was checked for it. */
static void *scalar(const amp_session *s, uint32_t counter) {
    int32_t i = amp_model_counter(s->model, counter);
    return i >= 0 ? s->states.host[i] : NULL;
}

float *amp_session_scale(const amp_session *s) { return scalar(s, AMP_COUNTER_SCALE); }
int32_t *amp_session_growth_tracker(const amp_session *s) { return scalar(s, AMP_COUNTER_GROWTH_TRACKER); }
int32_t *amp_session_floor_hits(const amp_session *s) { return scalar(s, AMP_COUNTER_FLOOR_HITS); }
int64_t *amp_session_step(const amp_session *s) { return scalar(s, AMP_COUNTER_STEP); }
int64_t *amp_session_iteration(const amp_session *s) { return scalar(s, AMP_COUNTER_ITERATION); }
int64_t *amp_session_seed(const amp_session *s) { return scalar(s, AMP_COUNTER_SEED); }
int64_t *amp_session_micro(const amp_session *s) { return scalar(s, AMP_COUNTER_MICRO); }

/* ---- programs ---------------------------------------------------------------------------------------------------- */

const amp_bound_program *amp_session_last_program(const amp_session *s) {
    return &s->programs[s->programs[AMP_RUN_APPLY_STEP].program ? AMP_RUN_APPLY_STEP : AMP_RUN_TRAIN_STEP];
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t held_bytes(const amp_session *s) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (amp_session_holds(s, i)) bytes += amp_state_bytes(&s->model->states[i]);
    return bytes;
}

static uint64_t bytes_of_role(const amp_session *s, uint32_t role) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (s->model->states[i].role == role) bytes += amp_state_bytes(&s->model->states[i]);
    return bytes;
}

/* Of the device, what allocators do not see. */
static uint64_t device_bytes(const amp_session *s) {
    if (!amp_session_has_device_memory(s)) return 0;
    return s->device_arena.bytes + s->params->residency->bytes + s->device->type->device_memory->bytes(s->device);
}

void amp_session_memory(const amp_session *s, amp_memory_info *out) {
    *out = (amp_memory_info){0};
    if (!s) return;
    *out = (amp_memory_info){
        .params = bytes_of_role(s, AMP_STATE_PARAM) + bytes_of_role(s, AMP_STATE_BUFFER),
        .derived = bytes_of_role(s, AMP_STATE_DERIVED),
        .moments = held_bytes(s),
        .activations = s->arena.bytes,
        .total = s->memory.bytes + s->params->memory.bytes + sizeof *s + sizeof *s->params + device_bytes(s),
    };
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_bound_program *b = &s->programs[i];
        out->activations += amp_bound_program_temporaries(b);
        out->outputs += b->kept_bytes;
    }
    /* Threads, scratch of products, and the tables that the session itself needs; with device memory, what the
     * host keeps besides. */
    out->scratch = out->total - out->params - out->derived - out->moments - out->activations - out->outputs;
}
