/* session_readback.c: see session_readback.h. */
#include "runtime/session/session_readback.h"

#include <string.h>

#include "base/error.h"
#include "runtime/session/session.h"

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

/* The scale and the means of a step; those of micro-batches before it are already in. */
static void note_step(amp_session *s, const amp_readback_run *c) {
    int32_t count = amp_measure_count(s->model), losses = amp_loss_count(s->model);
    if (c->micro == 0) memset(s->measures, 0, (size_t)count * sizeof *s->measures);
    amp_bound_program_add_measures(&s->train_step, s->model, s->measures);
    s->measured = c->micro + 1;
    for (int32_t i = 0; i < losses; i++) s->losses[i] = s->measures[1 + i] / (double)s->measured;
}

static void take_in(amp_session *s, const void *scalars) {
    amp_readback_run c = s->scalars.pending[0];
    const float *scale = amp_session_scale(s);
    if (c.step) s->used_scale = scale ? *scale : 1;
    memcpy(s->scalars.host, scalars, s->scalars.bytes);
    memmove(&s->scalars.pending[0], &s->scalars.pending[1], sizeof c * (size_t)--s->scalars.pending_count);
    if (c.step) note_step(s, &c);
}

amp_status amp_session_settle(amp_session *s, bool wait, amp_error *err) {
    while (s->scalars.pending_count) {
        const void *scalars;
        AMP_TRY(calls_of(s)->finish_readback(s->device, wait, &scalars, err));
        if (!scalars) break;
        take_in(s, scalars);
    }
    return AMP_OK;
}

amp_status amp_session_await(const amp_session *s, amp_error *err) {
    return amp_session_settle((amp_session *)(uintptr_t)s, true, err);
}

static amp_status make_room(amp_session *s, amp_error *err) {
    const void *scalars;
    if (s->scalars.pending_count < AMP_READBACKS) return AMP_OK;
    AMP_TRY(calls_of(s)->finish_readback(s->device, true, &scalars, err));
    take_in(s, scalars);
    return AMP_OK;
}

amp_status amp_session_start_readback(amp_session *s, const amp_readback_run *collection, amp_error *err) {
    if (!calls_of(s)) {
        if (collection->step) note_step(s, collection);
        return AMP_OK;
    }
    AMP_TRY(make_room(s, err));
    AMP_TRY(calls_of(s)->start_readback(s->device, err));
    s->scalars.pending[s->scalars.pending_count++] = *collection;
    return AMP_OK;
}

amp_status amp_session_write_scalars(amp_session *s, amp_error *err) {
    if (!calls_of(s) || !s->scalars.state_bytes) return AMP_OK;
    return calls_of(s)->write(s->device, s->scalars.block, s->scalars.host, s->scalars.state_bytes, err);
}
