/* published.c: see published.h. */
#include "runtime/params/published.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

/* ---- memory, which any thread may give back ---------------------------------------------------------------------- */

static void *take(amp_published *p, size_t bytes) {
    void *memory = amp_alloc_zeroed_aligned(&p->model->allocator, bytes, AMP_MEMORY_ALIGN);
    if (memory) atomic_fetch_add(&p->bytes, bytes);
    return memory;
}

static void give_back(amp_published *p, void *memory, size_t bytes) {
    if (!memory) return;
    atomic_fetch_sub(&p->bytes, bytes);
    amp_free_aligned(&p->model->allocator, memory, bytes, AMP_MEMORY_ALIGN);
}

static size_t list_bytes(const amp_model *m) {
    return (size_t)(m->state_count ? m->state_count : 1) * sizeof(amp_published_tensor *);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void drop_tensor(amp_published *p, amp_published_tensor *t, int32_t state) {
    if (!t || atomic_fetch_sub_explicit(&t->versions, 1, memory_order_acq_rel) != 1) return;
    give_back(p, t->memory, amp_state_bytes(&p->model->states[state]));
    give_back(p, t, sizeof *t);
}

static amp_published_tensor *copy_tensor(amp_published *p, const void *values, size_t bytes) {
    amp_published_tensor *t = take(p, sizeof *t);
    if (!t) return NULL;
    atomic_init(&t->versions, 1);
    t->memory = take(p, bytes);
    if (!t->memory) {
        give_back(p, t, sizeof *t);
        return NULL;
    }
    memcpy(t->memory, values, bytes);
    return t;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

void amp_published_drop(amp_published *p, amp_params_version *v) {
    if (!v || atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1) return;
    for (int32_t i = 0; i < p->model->state_count; i++) drop_tensor(p, v->tensors[i], i);
    give_back(p, v->tensors, list_bytes(p->model));
    give_back(p, v, sizeof *v);
    atomic_fetch_sub(&p->alive, 1);
}

static amp_params_version *make_version(amp_published *p) {
    amp_params_version *v = take(p, sizeof *v);
    if (!v) return NULL;
    v->tensors = take(p, list_bytes(p->model));
    if (!v->tensors) {
        give_back(p, v, sizeof *v);
        return NULL;
    }
    atomic_init(&v->references, 1);
    atomic_fetch_add(&p->alive, 1);
    return v;
}

/* Comparing finds any way by which values change, and ends at the first difference: it costs a pass over memory only
 * where copying is saved. */
static amp_status fill_tensor(amp_published *p, amp_params_version *v, int32_t i, const void *values,
                              amp_publish_report *report, amp_error *err) {
    size_t bytes = amp_state_bytes(&p->model->states[i]);
    amp_published_tensor *before = p->newest ? p->newest->tensors[i] : NULL;
    if (before && !memcmp(before->memory, values, bytes)) {
        atomic_fetch_add_explicit(&before->versions, 1, memory_order_relaxed);
        v->tensors[i] = before;
        report->shared_bytes += bytes;
        return AMP_OK;
    }
    v->tensors[i] = copy_tensor(p, values, bytes);
    report->copied_bytes += bytes;
    if (v->tensors[i]) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s to publish; the version before stays",
                    p->model->desc.name, bytes, p->model->states[i].name);
}

/* The params that |program| (may be NULL) reads and the version has not yet.  Masters of weights that products read in
 * another form are not among them. */
static amp_status fill_from_program(amp_published *p, amp_params_version *v, const amp_program *program,
                                    void *const *states, amp_publish_report *report, amp_error *err) {
    for (int32_t i = 0; program && i < program->buffer_count; i++) {
        int32_t state = program->buffers[i].index;
        if (program->buffers[i].kind != AMP_BUFFER_STATE || v->tensors[state]) continue;
        if (!amp_state_lives_in_params(p->model, state, NULL)) continue;
        AMP_TRY(fill_tensor(p, v, state, states[state], report, err));
    }
    return AMP_OK;
}

static void replace_newest(amp_published *p, amp_params_version *v) {
    pthread_mutex_lock(&p->lock);
    amp_params_version *before = p->newest;
    p->newest = v;
    atomic_store_explicit(&p->number, v->number, memory_order_release);
    pthread_mutex_unlock(&p->lock);
    amp_published_drop(p, before);
}

amp_status amp_published_add(amp_published *p, void *const *states, amp_publish_report *report, amp_error *err) {
    amp_publish_report made = {.version = atomic_load(&p->number) + 1};
    amp_params_version *v = make_version(p);
    if (!v) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a version", p->model->desc.name);
    v->number = made.version;
    const amp_model *m = p->model;
    const amp_program *const readers[] = {m->eval, m->infer, m->eval_fp32, m->infer_fp32};
    amp_status status = AMP_OK;
    for (size_t i = 0; !status && i < sizeof readers / sizeof *readers; i++)
        status = fill_from_program(p, v, readers[i], states, &made, err);
    if (status) {
        amp_published_drop(p, v);
        return status;
    }
    replace_newest(p, v);
    made.versions_alive = atomic_load(&p->alive);
    made.bytes_alive = atomic_load(&p->bytes);
    if (report) *report = made;
    return AMP_OK;
}

amp_params_version *amp_published_newest(amp_published *p, amp_params_version *held) {
    if (held && held->number == atomic_load_explicit(&p->number, memory_order_acquire)) return held;
    amp_published_drop(p, held); /* first, so that no caller holds two */
    pthread_mutex_lock(&p->lock);
    amp_params_version *newest = p->newest;
    if (newest) atomic_fetch_add_explicit(&newest->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&p->lock);
    return newest;
}

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

amp_status amp_published_make(const amp_model *model, amp_published **out, amp_error *err) {
    amp_published *p = amp_alloc_zeroed(&model->allocator, sizeof *p);
    *out = NULL;
    if (!p) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its params", model->desc.name);
    if (pthread_mutex_init(&p->lock, NULL)) {
        amp_free(&model->allocator, p, sizeof *p);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: the system gives no lock for its params", model->desc.name);
    }
    p->model = model;
    *out = p;
    return AMP_OK;
}

void amp_published_free(amp_published *p) {
    if (!p) return;
    amp_published_drop(p, p->newest);
    pthread_mutex_destroy(&p->lock);
    amp_free(&p->model->allocator, p, sizeof *p);
}
