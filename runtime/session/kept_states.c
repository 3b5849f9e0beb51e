/* kept_states.c: states whose new value was not finite in a step that was not skipped, so that they kept theirs
 * (AMP_COUNTER_STATES_KEPT). */
#include "base/error.h"
#include "runtime/session/session.h"

/* The state that |counter| counts of: the one with its number among the buffers. */
static const char *name_of(const amp_model *m, const amp_model_state *counter) {
    for (int32_t i = 0, number = 0; i < m->state_count; i++)
        if (m->states[i].role == AMP_STATE_BUFFER && number++ == counter->counter_block) return m->states[i].name;
    return "";
}

static int64_t last_kept(const amp_session *s, int32_t i) {
    const int64_t *last = s->model->states[i].counter == AMP_COUNTER_STATES_KEPT ? s->states.host[i] : NULL;
    return last ? *last : 0;
}

/* Named once; a variance of too few values is nothing's fault, and said once of all. */
static void say_kept(const amp_session *s, int32_t i, int64_t iteration) {
    amp_measured *m = &s->readback->measured;
    if (m->too_few ? m->said_too_few : m->first_kept[i]) return;
    const char *name = name_of(s->model, &s->model->states[i]);
    if (m->too_few)
        amp_log_say(&s->log, AMP_LOG_WARNING,
                    "iteration %lld: %s keeps its value, as a batch has fewer than %lld samples, and so no variance",
                    (long long)iteration, name, (long long)s->model->desc.least_batch);
    else
        amp_log_say(&s->log, AMP_LOG_WARNING,
                    "iteration %lld: %s keeps its value, as what the step made of it is not finite",
                    (long long)iteration, name);
    if (m->too_few) m->said_too_few = true;
    else m->first_kept[i] = iteration;
}

void amp_session_note_kept(const amp_session *s, bool too_few) {
    const int64_t *iteration = amp_session_iteration(s);
    amp_measured *m = &s->readback->measured;
    m->states_kept = 0;
    m->too_few = false;
    if (!iteration || !*iteration || !s->device->type->computes || amp_session_skips_all(s)) return;
    for (int32_t i = 0; i < s->model->state_count; i++) {
        if (last_kept(s, i) != *iteration) continue;
        m->states_kept++;
        m->too_few = too_few;
        say_kept(s, i, *iteration);
    }
}

void amp_session_forget_kept(const amp_session *s) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        int64_t *last = s->model->states[i].counter == AMP_COUNTER_STATES_KEPT ? s->states.host[i] : NULL;
        if (last) *last = 0;
    }
}

const char *amp_session_kept_state_name(const amp_session *s, int32_t index, int64_t *iteration) {
    if (!s || !s->readback || index < 0) return NULL;
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const int64_t first = s->readback->measured.first_kept[i];
        if (!first || index-- > 0) continue;
        if (iteration) *iteration = first;
        return name_of(s->model, &s->model->states[i]);
    }
    return NULL;
}
