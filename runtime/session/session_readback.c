/* session_readback.c: see session.h. */
#include "runtime/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

/* Of the step, and of the last evaluation. */
static size_t sums_bytes(const amp_session *s) { return 2 * (size_t)amp_measure_count(s->model) * sizeof(double); }
static size_t losses_bytes(const amp_session *s) { return (size_t)(amp_loss_count(s->model) + 1) * sizeof(double); }
static size_t averages_bytes(const amp_session *s) { return (size_t)(s->model->all_input_count + 1) * sizeof(float); }

amp_status amp_session_make_readback(amp_session *s, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    amp_session_readback *r = s->readback = amp_alloc_zeroed(a, sizeof *r);
    if (r) {
        r->measured.sums = amp_alloc_zeroed(a, sums_bytes(s));
        r->measured.losses = amp_alloc_zeroed(a, losses_bytes(s));
        r->measured.averages = amp_alloc_zeroed(a, averages_bytes(s));
        if (r->measured.sums && r->measured.losses && r->measured.averages) return AMP_OK;
    }
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its losses and metrics", s->model->desc.name);
}

void amp_session_free_readback(amp_session *s) {
    const amp_allocator *a = &s->memory.allocator;
    amp_session_readback *r = s->readback;
    if (!r) return;
    amp_free(a, r->measured.sums, sums_bytes(s));
    amp_free(a, r->measured.losses, losses_bytes(s));
    amp_free(a, r->measured.averages, averages_bytes(s));
    amp_free(a, r->host, r->bytes + r->header_bytes);
    amp_free(a, r, sizeof *r);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

/* The means of a step; those of micro-batches before it are already in. */
static void note_step(const amp_session *s, const amp_readback_run *run) {
    amp_measured *m = &s->readback->measured;
    int32_t count = amp_measure_count(s->model), losses = amp_loss_count(s->model);
    if (run->micro == 0) memset(m->sums, 0, (size_t)count * sizeof *m->sums);
    amp_bound_program_add_measures(&s->programs[AMP_RUN_TRAIN_STEP], s->model, m->sums);
    m->count = run->micro + 1;
    for (int32_t i = 0; i < losses; i++) m->losses[i] = m->sums[1 + i] / (double)m->count;
}

/* The scale is the one before the run, which the copy replaces. */
static void take_in(const amp_session *s, const void *scalars) {
    amp_session_readback *r = s->readback;
    amp_readback_run run = r->pending[0];
    const float *scale = amp_session_scale(s);
    if (run.step) r->measured.used_scale = scale ? *scale : 1;
    memcpy(r->host, scalars, r->bytes);
    memmove(&r->pending[0], &r->pending[1], sizeof run * (size_t)--r->pending_count);
    if (run.step) note_step(s, &run);
}

amp_status amp_session_settle(const amp_session *s, bool wait, amp_error *err) {
    while (s->readback->pending_count) {
        const void *scalars;
        AMP_TRY(calls_of(s)->finish_readback(s->device, wait, &scalars, err));
        if (!scalars) break;
        take_in(s, scalars);
    }
    return AMP_OK;
}

static amp_status make_room(const amp_session *s, amp_error *err) {
    const void *scalars;
    if (s->readback->pending_count < AMP_READBACKS) return AMP_OK;
    AMP_TRY(calls_of(s)->finish_readback(s->device, true, &scalars, err));
    take_in(s, scalars);
    return AMP_OK;
}

amp_status amp_session_start_readback(const amp_session *s, const amp_readback_run *run, amp_error *err) {
    if (!calls_of(s)) {
        if (run->step) note_step(s, run);
        return AMP_OK;
    }
    AMP_TRY(make_room(s, err));
    AMP_TRY(calls_of(s)->start_readback(s->device, err));
    s->readback->pending[s->readback->pending_count++] = *run;
    return AMP_OK;
}

amp_status amp_session_write_scalars(const amp_session *s, amp_error *err) {
    if (!calls_of(s) || !s->readback->state_bytes) return AMP_OK;
    return calls_of(s)->write(s->device, s->readback->block, s->readback->host, s->readback->state_bytes, err);
}
