/* blend.c: params that follow others: target networks, and averages that a program makes itself. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/params/params.h"

/* All else is copied: a buffer counts or measures what its params have seen. */
static bool is_blended(const amp_model_state *s, float t) { return s->role == AMP_STATE_PARAM && t < 1; }

static void blend(float *to, const float *from, size_t count, float t) {
    for (size_t i = 0; i < count; i++) to[i] += t * (from[i] - to[i]);
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

/* |rows|: room for two of the largest tensor. */
static void blend_on_host(amp_params *to, int32_t i, const amp_params *from, float t, float *rows) {
    const amp_model_state *s = &to->model->states[i];
    const int32_t there = amp_model_state_index(from->model, s->name);
    const amp_model_state *other = &from->model->states[there];
    const bool blends = is_blended(s, t), alike = amp_state_stored_alike(s, other);
    const size_t count = (size_t)amp_model_state_elements(s);
    float *own_rows = rows + amp_states_largest(to->model);
    if (alike && !blends) {
        memcpy(to->states[i], from->states[there], amp_state_bytes(s));
        return;
    }
    if (alike && s->storage == AMP_DT_F32) { /* with what fills its layout, which is 0 in both */
        blend(to->states[i], from->states[there], amp_state_bytes(s) / sizeof(float), t);
        return;
    }
    amp_state_get_f32(other, from->states[there], rows);
    amp_state_get_f32(s, to->states[i], own_rows);
    if (blends) blend(own_rows, rows, count, t);
    amp_state_set_f32(s, to->states[i], blends ? own_rows : rows);
}

static amp_status all_on_host(amp_params *to, const amp_params *from, float t, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    const size_t bytes = 2 * amp_states_largest(to->model) * sizeof(float);
    AMP_TRY(amp_params_reach_host(from, err));
    AMP_TRY(amp_params_reach_host(to, err));
    float *rows = amp_alloc_aligned(&to->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to blend its params", to->model->desc.name);
    for (int32_t i = 0; i < to->model->state_count; i++)
        if (amp_state_is_param(&to->model->states[i])) blend_on_host(to, i, from, t, rows);
    amp_free_aligned(&to->memory.allocator, rows, bytes, AMP_MEMORY_ALIGN);
    amp_params_changed_on_host(to);
    return AMP_OK;
}

/* ---- in the memory of a device ----------------------------------------------------------------------------------- */

/* Of state |i| where |to| lives; false: what the device cannot do. */
static bool one_on_device(const amp_params_residency *to, int32_t i, const amp_params_residency *from, float t,
                          amp_memory_blend *out) {
    const amp_model_state *s = &to->model->states[i];
    const int32_t there = amp_model_state_index(from->model, s->name);
    const amp_model_state *other = &from->model->states[there];
    *out = (amp_memory_blend){.to = to->states[i],
                              .from = from->states[there],
                              .bytes = amp_state_content_bytes(s),
                              .copies = !is_blended(s, t)};
    return amp_state_stored_alike(s, other) && (out->copies || s->storage == AMP_DT_F32);
}

static int32_t list_for_device(const amp_params *to, const amp_params *from, float t, amp_memory_blend *list) {
    const amp_model *m = to->residency->model;
    int32_t count = 0;
    for (int32_t i = 0; i < m->state_count; i++)
        if (amp_state_is_param(&m->states[i]) && !one_on_device(to->residency, i, from->residency, t, &list[count++]))
            return 0;
    return count;
}

/* |*done| false: they do not live in one memory that can. */
static amp_status all_on_device(amp_params *to, amp_params *from, float t, bool *done, amp_error *err) {
    amp_device_memory *memory = to->residency->memory;
    *done = false;
    if (!memory || !amp_device_memory_same(memory, from->residency->memory)) return AMP_OK;
    const size_t bytes = (size_t)to->residency->model->state_count * sizeof(amp_memory_blend);
    amp_memory_blend *list = amp_alloc(&to->memory.allocator, bytes);
    if (!list) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to blend its params", to->model->desc.name);
    const int32_t count = list_for_device(to, from, t, list);
    amp_status status = count ? amp_params_reach_device(from, err) : AMP_OK;
    if (count && !status) status = amp_params_reach_device(to, err);
    if (count && !status) status = memory->type->blend(memory, from->residency->memory, list, count, t, err);
    *done = count && !status;
    amp_free(&to->memory.allocator, list, bytes);
    return status;
}

amp_status amp_params_blend(amp_params *to, const amp_params *from, double t, amp_error *err) {
    bool done;
    AMP_TRY(amp_params_check_pair(to, from, "amp_params_blend", err));
    if (!(t >= 0 && t <= 1))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_params_blend: t is %g, and goes from 0, which changes nothing, "
                        "to 1, which copies",
                        t);
    if (to == from || t == 0) return AMP_OK;
    /* Where values are is no part of what callers see as const. */
    AMP_TRY(all_on_device(to, (amp_params *)from, (float)t, &done, err));
    if (!done) return all_on_host(to, from, (float)t, err);
    amp_params_changed_on_device(to);
    amp_params_make_stale(to);
    return AMP_OK;
}
