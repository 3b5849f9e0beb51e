/* session_facts.c: what a session is and has: whether it trains, where its memory is, its scalar states. */
#include "runtime/session/session.h"

#include "base/error.h"

amp_status amp_session_check_training(const amp_session *s, const char *call, amp_error *err) {
    if (!s) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: session is NULL", call);
    if (s->training) return AMP_OK;
    const char *why = !amp_model_trains(s->model) ? "the model has no train block"
                      : s->published              ? "the session was created with published = 1"
                                                  : "the session was created with program = \"infer\"";
    return amp_fail(err, AMP_WRONG_STATE, "%s: %s", call, why);
}

bool amp_session_has_device_memory(const amp_session *s) { return s->device && s->device->type->device_memory; }

int32_t amp_session_has_shares(const amp_session *session) {
    return session && session->ranks && session->ranks->shares;
}

void amp_session_does(const amp_session *s, amp_rank_does what) {
    const int64_t *iteration = amp_session_iteration(s);
    if (!s->ranks) return;
    amp_comm *comm = s->ranks->comm;
    comm->calls->does(comm, what, iteration ? *iteration + (what == AMP_RANK_COMPUTES) : -1);
}

const amp_bound_program *amp_session_last_program(const amp_session *s) {
    return &s->programs[s->programs[AMP_RUN_APPLY_STEP].program ? AMP_RUN_APPLY_STEP : AMP_RUN_TRAIN_STEP];
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
