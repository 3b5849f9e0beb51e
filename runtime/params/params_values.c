/* params_values.c: params as a whole: copies of them, and whether they are still numbers. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "runtime/files/state_file.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/params/params.h"

/* ---- copying ----------------------------------------------------------------------------------------------------- */

static bool same_tensor(const amp_model_state *a, const amp_model_state *b) {
    return a->storage == b->storage && a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static const char *describe(char out[AMP_TENSOR_TEXT], const amp_model_state *s) {
    return amp_tensor_describe(out, amp_dtype_name((amp_dtype)s->storage), s->dims, (int)s->rank);
}

/* |other| NULL: there is none of that name. */
static amp_status differs(const char *call, const amp_model_state *own, const amp_model_state *other, amp_error *err) {
    char here[AMP_TENSOR_TEXT], there[AMP_TENSOR_TEXT] = "none";
    if (other) describe(there, other);
    return amp_fail(err, AMP_MISMATCH, "%s: the params that are read have no %s of the same shape and type: %s, not %s",
                    call, own->name, there, describe(here, own));
}

amp_status amp_params_check_pair(const amp_params *to, const amp_params *from, const char *call, amp_error *err) {
    if (!to || !from) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: to or from is NULL", call);
    AMP_TRY(amp_params_check_masters(to, call, err));
    AMP_TRY(amp_params_check_masters(from, call, err));
    const amp_model *m = to->model;
    for (int32_t i = 0; to != from && i < m->state_count; i++) {
        const amp_model_state *own = &m->states[i];
        if (!amp_state_is_param(own)) continue;
        const int32_t at = amp_model_state_index(from->model, own->name);
        const amp_model_state *other = at < 0 ? NULL : &from->model->states[at];
        if (!other || !same_tensor(own, other)) return differs(call, own, other, err);
    }
    return AMP_OK;
}

/* Two models may store a tensor in different layouts: then it goes by rows of f32, which integers never need. */
static void copy_tensor(const amp_params *to, int32_t i, const amp_params *from, float *rows) {
    const amp_model_state *s = &to->model->states[i];
    int32_t there = amp_model_state_index(from->model, s->name);
    const amp_model_state *other = &from->model->states[there];
    if (s->layout == other->layout && s->hwio == other->hwio) {
        memcpy(to->states[i], from->states[there], amp_state_bytes(s));
        return;
    }
    amp_state_get_f32(other, from->states[there], rows);
    amp_state_set_f32(s, to->states[i], rows);
}

amp_status amp_params_copy(amp_params *to, const amp_params *from, amp_error *err) {
    AMP_TRY(amp_params_check_pair(to, from, "amp_params_copy", err));
    if (to == from) return AMP_OK;
    AMP_TRY(amp_params_reach_host(from, err));
    size_t bytes = amp_states_largest(to->model) * sizeof(float);
    float *rows = amp_alloc_aligned(&to->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to copy its params", to->model->desc.name);
    for (int32_t i = 0; i < to->model->state_count; i++)
        if (amp_state_is_param(&to->model->states[i])) copy_tensor(to, i, from, rows);
    amp_free_aligned(&to->memory.allocator, rows, bytes, AMP_MEMORY_ALIGN);
    amp_params_changed_on_host(to);
    return AMP_OK;
}

amp_status amp_params_snapshot(const amp_params *params, amp_params **out, amp_error *err) {
    if (out) *out = NULL;
    if (!params || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_snapshot: params or out is NULL");
    amp_params_options zeros = {.struct_size = sizeof zeros, .zeros = 1};
    amp_params *copy;
    AMP_TRY(amp_params_create(params->model, &zeros, &copy, err));
    amp_status status = amp_params_copy(copy, params, err);
    if (status) amp_params_release(copy);
    else *out = copy;
    return status;
}

/* ---- are they numbers -------------------------------------------------------------------------------------------- */

static int64_t count_broken(const amp_model_state *s, const void *memory, float *rows) {
    int64_t count = amp_model_state_elements(s), broken = 0;
    if (amp_readable_dtype(s->storage) != AMP_DT_F32) return 0;
    amp_state_get_f32(s, memory, rows);
    for (int64_t i = 0; i < count; i++) broken += !isfinite(rows[i]);
    return broken;
}

amp_status amp_params_count_nonfinite(const amp_params *params, int64_t *count, const char **first, amp_error *err) {
    if (!params || !count)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_count_nonfinite: params or count is NULL");
    *count = 0;
    if (first) *first = NULL;
    AMP_TRY(amp_params_check_masters(params, "amp_params_count_nonfinite", err));
    AMP_TRY(amp_params_reach_host(params, err));
    const amp_model *m = params->model;
    size_t bytes = amp_states_largest(m) * sizeof(float);
    float *rows = amp_alloc_aligned(&m->allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to look at its params", m->desc.name);
    for (int32_t i = 0; i < m->state_count; i++) {
        int64_t broken = amp_state_is_param(&m->states[i]) ? count_broken(&m->states[i], params->states[i], rows) : 0;
        if (broken && first && !*first) *first = m->states[i].name;
        *count += broken;
    }
    amp_free_aligned(&m->allocator, rows, bytes, AMP_MEMORY_ALIGN);
    return AMP_OK;
}

/* ---- without masters --------------------------------------------------------------------------------------------- */

amp_status amp_params_check_masters(const amp_params *p, const char *call, amp_error *err) {
    if (p->away)
        return amp_fail(err, AMP_WRONG_STATE, "%s: the weights of %s are not here: %s", call, p->model->desc.name,
                        p->away);
    if (p->states) return AMP_OK;
    return amp_fail(
        err, AMP_WRONG_STATE,
        "%s: the params of %s have no masters any more (amp_params_drop_masters); sessions with published = "
        "1 are all that can use them",
        call, p->model->desc.name);
}

void amp_params_lend(amp_params *p, int32_t i, void *memory) {
    const size_t bytes = amp_state_bytes(&p->model->states[i]);
    if (!p->states) {
        p->memory.bytes -= bytes;
        return;
    }
    memcpy(memory, p->states[i], amp_state_content_bytes(&p->model->states[i]));
    amp_free_aligned(&p->memory.allocator, p->states[i], bytes, AMP_MEMORY_ALIGN);
    p->states[i] = memory;
    p->lent++;
}

void amp_params_take_back(amp_params *p, int32_t i) {
    const size_t bytes = amp_state_bytes(&p->model->states[i]);
    if (!p->states) return;
    p->lent--;
    void *own = p->away ? NULL : amp_alloc_zeroed_aligned(&p->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (own) memcpy(own, p->states[i], amp_state_content_bytes(&p->model->states[i]));
    p->states[i] = own;
    if (!own && !p->away) p->away = "no memory was left for them when a session ended";
}

void amp_params_lend_on_device(amp_params *p, int32_t i, void *memory) {
    amp_params_residency *r = p->residency;
    r->memory->type->release(r->memory, r->states[i]);
    r->states[i] = memory;
    r->bytes -= amp_state_bytes(&r->model->states[i]);
    p->lent++;
}

void amp_params_take_back_on_device(amp_params *p, int32_t i, void *memory) {
    amp_params_residency *r = p->residency;
    p->lent--;
    r->states[i] = memory;
    if (memory) r->bytes += amp_state_bytes(&r->model->states[i]);
    else if (!p->away) p->away = "no memory was left for them when a session ended";
}

static amp_status drop(amp_params *p, amp_error *err) {
    if (p->residency->users)
        return amp_fail(err, AMP_WRONG_STATE,
                        "amp_params_drop_masters: a session that reads the masters of %s is alive; release it before, "
                        "or create it with published = 1",
                        p->model->desc.name);
    amp_states_free(p->model, NULL, p->states, &p->memory.allocator);
    p->states = NULL;
    return AMP_OK;
}

amp_status amp_params_drop_masters(amp_params *params, amp_error *err) {
    if (!params) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_drop_masters: params is NULL");
    if (!params->states) return AMP_OK;
    if (!atomic_load(&params->published->number) || params->residency->memory)
        return amp_fail(err, AMP_WRONG_STATE,
                        "amp_params_drop_masters: nothing of %s was published, and nothing would be left; call "
                        "amp_params_publish before",
                        params->model->desc.name);
    pthread_mutex_lock(&params->refreshing);
    amp_status status = drop(params, err);
    pthread_mutex_unlock(&params->refreshing);
    return status;
}
