/* params.c: see params.h and amp/amp.h. */
#include "runtime/params/params.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

/* |o| NULL: without values. */
static amp_status fill(amp_params *p, const amp_params_options *o, amp_error *err) {
    AMP_TRY(amp_params_make_residency(p, err));
    AMP_TRY(amp_published_make(p->model, &p->published, err));
    if (!o) {
        amp_states_plan(p->model, NULL, amp_state_lives_in_params, NULL, &p->memory);
        return AMP_OK;
    }
    AMP_TRY(amp_states_alloc(p->model, NULL, amp_state_lives_in_params, NULL, &p->memory.allocator, &p->states, err));
    return o->zeros ? AMP_OK : amp_states_initialise(p->model, p->states, o->seed, &p->memory.allocator, err);
}

static amp_status make(amp_model *model, const amp_params_options *o, amp_params **out, amp_error *err) {
    amp_params *p = amp_alloc_zeroed(&model->allocator, sizeof *p);
    if (!p) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its params", model->desc.name);
    if (pthread_mutex_init(&p->refreshing, NULL)) {
        amp_free(&model->allocator, p, sizeof *p);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: the system gives no lock for its params", model->desc.name);
    }
    amp_counted_allocator_init(&p->memory, &model->allocator);
    atomic_init(&p->references, 1);
    atomic_init(&p->stale, true);
    p->model = model;
    amp_model_retain(model);
    amp_status status = fill(p, o, err);
    if (status) amp_params_release(p);
    else *out = p;
    return status;
}

amp_status amp_params_create(amp_model *model, const amp_params_options *options, amp_params **out, amp_error *err) {
    amp_params_options o;
    if (out) *out = NULL;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_create: model or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_params_options", err));
    return make(model, &o, out, err);
}

amp_status amp_params_create_sizes(amp_model *model, amp_params **out, amp_error *err) {
    return make(model, NULL, out, err);
}

void amp_params_retain(amp_params *params) {
    if (params) atomic_fetch_add_explicit(&params->references, 1, memory_order_relaxed);
}

void amp_params_release(amp_params *p) {
    if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
    amp_model *model = p->model;
    amp_published_free(p->published);
    amp_params_free_residency(p);
    amp_states_free(model, NULL, p->states, &p->memory.allocator);
    pthread_mutex_destroy(&p->refreshing);
    amp_free(&model->allocator, p, sizeof *p);
    amp_model_release(model);
}

/* ---- get and set ------------------------------------------------------------------------------------------------- */

static amp_status find(const amp_params *p, const char *name, const void *data, size_t count, int32_t *index,
                       amp_error *err) {
    if (!p || !name || !data) return amp_fail(err, AMP_INVALID_ARGUMENT, "params, name or data is NULL");
    AMP_TRY(amp_params_check_masters(p, "amp_params_get and _set", err));
    *index = amp_model_state_index(p->model, name);
    if (*index < 0 || !amp_state_is_param(&p->model->states[*index]))
        return amp_fail(err, AMP_NOT_FOUND, "%s has no parameter %s; amp_model_param_at lists those that it has",
                        p->model->desc.name, name);
    return amp_state_check_count(&p->model->states[*index], "parameter", count, err);
}

amp_status amp_params_get(const amp_params *params, const char *name, float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find(params, name, data, count, &i, err));
    AMP_TRY(amp_params_reach_host(params, err));
    amp_state_get_f32(&params->model->states[i], params->states[i], data);
    return AMP_OK;
}

amp_status amp_params_set(amp_params *params, const char *name, const float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find(params, name, data, count, &i, err));
    AMP_TRY(amp_state_check_range(&params->model->states[i], data, count, 0, err));
    AMP_TRY(amp_params_reach_host(params, err));
    amp_state_set_f32(&params->model->states[i], params->states[i], data);
    amp_params_changed_on_host(params);
    return AMP_OK;
}

/* ---- where they live: copying ------------------------------------------------------------------------------------ */

typedef struct Transfer { /* of one state after the other */
    const amp_params *params;
    char *memory; /* as it is stored on the device; then rows of f32 */
    float *rows;
    size_t bytes;
    amp_error *err;
} Transfer;

static size_t largest_bytes(const amp_model *m) {
    size_t largest = AMP_MEMORY_ALIGN;
    for (int32_t i = 0; i < m->state_count; i++)
        if (amp_state_bytes(&m->states[i]) > largest) largest = amp_state_bytes(&m->states[i]);
    return largest;
}

static amp_status begin(Transfer *t, const amp_params *p, amp_error *err) {
    size_t in_memory = largest_bytes(p->residency->model);
    *t = (Transfer){
        .params = p, .bytes = in_memory + amp_states_largest(p->residency->model) * sizeof(float), .err = err};
    t->memory = amp_alloc_aligned(&p->memory.allocator, t->bytes, AMP_MEMORY_ALIGN);
    if (!t->memory) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to copy its params", p->model->desc.name);
    t->rows = (float *)(void *)(t->memory + in_memory);
    return AMP_OK;
}

static void end(Transfer *t) { amp_free_aligned(&t->params->memory.allocator, t->memory, t->bytes, AMP_MEMORY_ALIGN); }

/* Integers are stored as rows in both. */
static bool stored_alike(const amp_model_state *a, const amp_model_state *b) {
    return amp_state_stored_alike(a, b) && a->layout == AMP_LAYOUT_ROWS;
}

static amp_status copy_to_host(const Transfer *t, int32_t there, int32_t here) {
    const amp_params *p = t->params;
    const amp_model_state *from = &p->residency->model->states[there], *to = &p->model->states[here];
    amp_device_memory *m = p->residency->memory;
    void *direct = stored_alike(from, to) ? p->states[here] : t->memory;
    AMP_TRY(m->type->copy_out(m, direct, p->residency->states[there], amp_state_content_bytes(from), t->err));
    if (direct == p->states[here]) return AMP_OK;
    amp_state_get_f32(from, t->memory, t->rows);
    amp_state_set_f32(to, p->states[here], t->rows);
    return AMP_OK;
}

static amp_status copy_to_device(const Transfer *t, int32_t there, int32_t here) {
    const amp_params *p = t->params;
    const amp_model_state *to = &p->residency->model->states[there], *from = &p->model->states[here];
    amp_device_memory *m = p->residency->memory;
    const void *direct = p->states[here];
    if (!stored_alike(from, to)) {
        amp_state_get_f32(from, p->states[here], t->rows);
        amp_state_set_f32(to, t->memory, t->rows);
        direct = t->memory;
    }
    return m->type->copy_in(m, p->residency->states[there], direct, amp_state_content_bytes(to), t->err);
}

static amp_status copy_all(const amp_params *p, amp_status (*copy)(const Transfer *, int32_t, int32_t),
                           amp_error *err) {
    Transfer t;
    const amp_model *m = p->residency->model;
    AMP_TRY(begin(&t, p, err));
    amp_status status = AMP_OK;
    for (int32_t i = 0; !status && i < m->state_count; i++)
        if (amp_state_is_param(&m->states[i])) status = copy(&t, i, amp_model_state_index(p->model, m->states[i].name));
    end(&t);
    return status;
}

amp_status amp_params_reach_host(const amp_params *p, amp_error *err) {
    if (!p->residency->memory || !atomic_load(&p->residency->host_outdated)) return AMP_OK;
    AMP_TRY(copy_all(p, copy_to_host, err));
    atomic_store(&p->residency->host_outdated, false);
    return AMP_OK;
}

amp_status amp_params_reach_device(amp_params *p, amp_error *err) {
    if (!p->residency->memory || !atomic_load(&p->residency->device_outdated)) return AMP_OK;
    AMP_TRY(copy_all(p, copy_to_device, err));
    atomic_store(&p->residency->device_outdated, false);
    return AMP_OK;
}

bool amp_params_set_on_host(const amp_params *p) { return atomic_load(&p->residency->device_outdated); }

void amp_params_changed_on_host(amp_params *p) {
    atomic_store(&p->residency->host_outdated, false);
    atomic_store(&p->residency->device_outdated, true);
    amp_params_make_stale(p);
}

void amp_params_changed_on_device(amp_params *p) {
    atomic_store(&p->residency->host_outdated, true);
    atomic_store(&p->residency->device_outdated, false);
}

/* ---- where they live: moving ------------------------------------------------------------------------------------- */

static size_t list_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(void *); }

static void free_states(amp_params *p) {
    amp_params_residency *r = p->residency;
    if (!r->memory) return;
    for (int32_t i = 0; r->states && i < r->model->state_count; i++)
        if (r->states[i]) r->memory->type->release(r->memory, r->states[i]);
    amp_free(&p->memory.allocator, r->states, list_bytes(r->model));
    amp_device_memory_release(r->memory);
    amp_model_release(r->model);
    r->memory = NULL;
    r->states = NULL;
    r->model = NULL;
    r->bytes = 0;
}

static amp_status allocate(amp_params *p, amp_error *err) {
    amp_params_residency *r = p->residency;
    r->states = amp_alloc_zeroed(&p->memory.allocator, list_bytes(r->model));
    if (!r->states) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its params", p->model->desc.name);
    for (int32_t i = 0; i < r->model->state_count; i++) {
        size_t bytes = amp_state_bytes(&r->model->states[i]);
        if (!amp_state_lives_in_params(r->model, i, NULL)) continue;
        AMP_TRY(r->memory->type->allocate(r->memory, bytes, &r->states[i], err));
        r->bytes += bytes;
        if (r->model->states[i].layout == AMP_LAYOUT_ROWS) continue;
        AMP_TRY(r->memory->type->clear(r->memory, r->states[i], bytes, err)); /* kernels read the padding as zeros */
    }
    return AMP_OK;
}

/* In any case the host has the newest values afterwards, or nothing was moved. */
static amp_status move(amp_params *p, amp_device_memory *memory, amp_model *model, amp_error *err) {
    AMP_TRY(amp_params_reach_host(p, err));
    free_states(p);
    amp_params_changed_on_host(p);
    if (!memory) return AMP_OK;
    amp_device_memory_retain(p->residency->memory = memory);
    amp_model_retain(p->residency->model = model);
    amp_status status = allocate(p, err);
    if (status) free_states(p);
    return status;
}

amp_status amp_params_make_residency(amp_params *p, amp_error *err) {
    p->residency = amp_alloc_zeroed(&p->memory.allocator, sizeof *p->residency);
    if (!p->residency) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its params", p->model->desc.name);
    atomic_init(&p->residency->host_outdated, false);
    atomic_init(&p->residency->device_outdated, false);
    return AMP_OK;
}

void amp_params_free_residency(amp_params *p) {
    if (!p->residency) return;
    free_states(p);
    amp_free(&p->memory.allocator, p->residency, sizeof *p->residency);
}

/* ---- where they live: sessions ----------------------------------------------------------------------------------- */

static amp_status refuse(const amp_params *p, const amp_device_memory *memory, amp_error *err) {
    const amp_params_user *user = p->residency->users;
    int others = 0;
    for (const amp_params_user *i = user->next; i; i = i->next) others++;
    char more[48] = "";
    if (others) snprintf(more, sizeof more, " (and %d more)", others);
    return amp_fail(err, AMP_WRONG_STATE,
                    "%s: its params live in %s, where a session for %s with capacity %lld is alive%s; release it "
                    "before making one in %s, or give that one params of its own",
                    p->model->desc.name, amp_device_memory_name(p->residency->memory),
                    user->trains ? "training" : "inference", (long long)user->capacity, more,
                    amp_device_memory_name(memory));
}

static amp_status enter(amp_params *p, amp_params_user *user, amp_device_memory *memory, amp_model *model,
                        amp_error *err) {
    const bool elsewhere = !amp_device_memory_same(p->residency->memory, memory);
    if (elsewhere && p->residency->users) return refuse(p, memory, err);
    if (elsewhere || (memory && !p->residency->users && p->residency->model != model))
        AMP_TRY(move(p, memory, model, err));
    AMP_TRY(amp_params_take_form(p, user, model, err));
    user->next = p->residency->users;
    p->residency->users = user;
    user->entered = true;
    return AMP_OK;
}

amp_status amp_params_enter(amp_params *p, amp_params_user *user, amp_device_memory *memory, amp_model *model,
                            amp_error *err) {
    pthread_mutex_lock(&p->refreshing);
    amp_status status = enter(p, user, memory, model, err);
    pthread_mutex_unlock(&p->refreshing);
    return status;
}

void amp_params_leave(amp_params *p, amp_params_user *user) {
    if (!user->entered) return;
    pthread_mutex_lock(&p->refreshing);
    amp_params_user **at = &p->residency->users;
    while (*at != user) at = &(*at)->next;
    *at = user->next;
    amp_params_drop_form(p, user);
    pthread_mutex_unlock(&p->refreshing);
}
