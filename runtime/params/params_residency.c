/* params_residency.c: see params_residency.h. */
#include "runtime/params/params_residency.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/layout.h"
#include "runtime/model/state.h"
#include "runtime/params/params.h"

/* ---- copying ----------------------------------------------------------------------------------------------------- */

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
    return a->storage == b->storage && a->layout == b->layout && a->layout == AMP_LAYOUT_ROWS;
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

void amp_params_changed_on_host(amp_params *p) {
    atomic_store(&p->residency->host_outdated, false);
    atomic_store(&p->residency->device_outdated, true);
    atomic_store(&p->stale, true);
}

void amp_params_changed_on_device(amp_params *p) {
    atomic_store(&p->residency->host_outdated, true);
    atomic_store(&p->residency->device_outdated, false);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static size_t list_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(void *); }

static void free_states(amp_params *p) {
    amp_params_residency *r = p->residency;
    if (!r->memory) return;
    for (int32_t i = 0; r->states && i < r->model->state_count; i++)
        if (r->states[i]) r->memory->type->release(r->memory, r->states[i]);
    amp_free(&p->memory.allocator, r->states, list_bytes(r->model));
    amp_device_memory_release(r->memory);
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
static amp_status move(amp_params *p, amp_device_memory *memory, const amp_model *model, amp_error *err) {
    AMP_TRY(amp_params_reach_host(p, err));
    free_states(p);
    amp_params_changed_on_host(p);
    if (!memory) return AMP_OK;
    amp_device_memory_retain(p->residency->memory = memory);
    p->residency->model = model;
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

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

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

static amp_status enter(amp_params *p, amp_params_user *user, amp_device_memory *memory, const amp_model *model,
                        amp_error *err) {
    if (!amp_device_memory_same(p->residency->memory, memory)) {
        if (p->residency->users) return refuse(p, memory, err);
        AMP_TRY(move(p, memory, model, err));
    }
    user->next = p->residency->users;
    p->residency->users = user;
    user->entered = true;
    return AMP_OK;
}

amp_status amp_params_enter(amp_params *p, amp_params_user *user, amp_device_memory *memory, const amp_model *model,
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
    pthread_mutex_unlock(&p->refreshing);
}
