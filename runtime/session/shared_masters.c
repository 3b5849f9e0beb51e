/* shared_masters.c: of weights that only updates and derived copies read, a rank keeps its share of the masters alone
 * (zero1).
 *
 *   own        the share: what apply_step reads and writes
 *   whole      the memory of the gradients: all masters, from when gather_step has brought the other ranks' to
 *              when the next micro_step writes gradients there
 *
 * So between steps params are whole, for whoever reads or sets them, and within one they are away.  When the session
 * ends they get memory of their own again.  On a device the same is true of the params there; the host's are whole.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

/* State |at| of a message that gathers weights in the memory of gradients. */
typedef struct Master {
    int32_t message;
    uint32_t at;
    int32_t param;
    amp_share share;
} Master;

typedef amp_status Visit(amp_session *s, const Master *master, amp_error *err);

static amp_status each_master(amp_session *s, const amp_comm *comm, Visit *visit, amp_error *err) {
    const amp_model *m = s->model;
    for (int32_t i = 0; i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        if (c->op != AMP_EXCHANGE_ALL_GATHER || !amp_collective_in_place(m, i)) continue;
        for (uint32_t j = 0; j < c->state_count; j++) {
            const Master master = {i, j, c->states[j], amp_collective_share(m, c, j, comm->rank, comm->size)};
            if (amp_master_can_be_shared(m, master.param)) AMP_TRY(visit(s, &master, err));
        }
    }
    return AMP_OK;
}

/* ---- in memory --------------------------------------------------------------------------------------------------- */

static size_t list_bytes(const amp_session *s) { return (size_t)s->model->state_count * sizeof(void *); }

static size_t own_bytes(amp_share share) {
    const size_t bytes = (size_t)(share.end - share.first) * sizeof(float), align = AMP_MEMORY_ALIGN;
    return (bytes + align - 1) / align * align;
}

static amp_status copy_share(const amp_session *s, int32_t param, bool to_own, amp_error *err) {
    const amp_share share = s->shares.of[param];
    float *own = (float *)s->shares.masters[param] + share.first,
          *whole = (float *)s->states.bound[param] + share.first;
    const size_t bytes = (size_t)(share.end - share.first) * sizeof(float);
    return bytes ? amp_session_copy_bytes(s, to_own ? own : whole, to_own ? whole : own, bytes, err) : AMP_OK;
}

static amp_device_memory *device_memory(const amp_session *s) { return s->params->residency->memory; }

static void *allocate(const amp_session *s, size_t bytes) {
    void *memory = NULL;
    amp_device_memory *m = device_memory(s);
    if (!m) return amp_alloc_zeroed_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    return m->type->allocate(m, bytes, &memory, NULL) ? NULL : memory;
}

static void release(const amp_session *s, void *memory, size_t bytes) {
    amp_device_memory *m = device_memory(s);
    if (m) m->type->release(m, memory);
    else amp_free_aligned(&s->memory.allocator, memory, bytes, AMP_MEMORY_ALIGN);
}

/* Before memory is given back that copies may still read. */
static void settle(const amp_session *s) {
    if (device_memory(s)) s->device->type->device_memory->settle(s->device);
}

/* Where all of it is between steps. */
static float *whole_of(const amp_session *s, const Master *m) {
    const amp_exchange *x = s->exchange;
    return (float *)x->messages[m->message].data +
           amp_collective_place(x->model, &x->model->collectives[m->message], m->at);
}

static amp_status copy_on_device(amp_session *s, const Master *m, amp_error *err) {
    const size_t bytes = amp_state_content_bytes(&s->model->states[m->param]);
    return amp_session_copy_bytes(s, whole_of(s, m), s->states.bound[m->param], bytes, err);
}

/* Bound to where all of it would begin, as shares.c binds moments; an empty share has no memory. */
static amp_status take_share(amp_session *s, const Master *m, amp_error *err) {
    const size_t bytes = own_bytes(m->share);
    float *own = bytes ? allocate(s, bytes) : NULL, *whole = whole_of(s, m);
    if (bytes && !own)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", s->model->desc.name, bytes,
                        s->model->states[m->param].name);
    s->shares.of[m->param] = m->share;
    s->shares.masters[m->param] = own ? own - m->share.first : NULL;
    if (device_memory(s)) amp_params_lend_on_device(s->params, m->param, whole);
    else amp_params_lend(s->params, m->param, whole);
    s->states.bound[m->param] = whole;
    return copy_share(s, m->param, true, err);
}

/* Of a session that is only planned. */
static amp_status count_share(amp_session *s, const Master *m, amp_error *err) {
    const size_t bytes = own_bytes(m->share);
    (void)err;
    s->shares.of[m->param] = m->share;
    amp_params_lend(s->params, m->param, NULL);
    if (bytes) amp_counted_allocator_plan(&s->memory, bytes);
    return AMP_OK;
}

static bool is_shared(const amp_session *s, int32_t state) {
    return s->shares.of && s->model->states[state].role == AMP_STATE_PARAM && s->shares.of[state].end >= 0;
}

bool amp_session_shares_master(const amp_session *s, int32_t state) { return is_shared(s, state); }

static void bind_masters(amp_session *s) {
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        amp_bound_program *b = &s->programs[i];
        for (int32_t j = 0; b->program && j < b->program->buffer_count; j++) {
            const amp_model_buffer *buffer = &b->program->buffers[j];
            if (buffer->kind != AMP_BUFFER_STATE || !is_shared(s, (int32_t)buffer->index)) continue;
            b->buffers[j] = i == AMP_RUN_APPLY_STEP ? s->shares.masters[buffer->index] : s->states.bound[buffer->index];
        }
    }
}

/* Another session on the params knows masters where they are. */
static bool is_alone(const amp_session *s) { return !s->params->residency->users->next; }

amp_status amp_session_share_masters(amp_session *s, const amp_comm *comm, amp_error *err) {
    if (!s->shares.of || !is_alone(s)) return AMP_OK;
    AMP_TRY(amp_params_reach_device(s->params, err));
    s->shares.masters = amp_alloc_zeroed(&s->memory.allocator, list_bytes(s));
    if (!s->shares.masters)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to divide it among ranks", s->model->desc.name);
    if (device_memory(s)) AMP_TRY(each_master(s, comm, copy_on_device, err));
    settle(s);
    AMP_TRY(each_master(s, comm, s->sizes_only ? count_share : take_share, err));
    if (!s->sizes_only) bind_masters(s);
    return AMP_OK;
}

uint64_t amp_session_master_bytes(const amp_session *s, int32_t param) { return own_bytes(s->shares.of[param]); }

uint64_t amp_session_device_masters(const amp_session *s) {
    uint64_t bytes = 0;
    for (int32_t i = 0; s->shares.masters && device_memory(s) && i < s->model->state_count; i++)
        if (is_shared(s, i)) bytes += own_bytes(s->shares.of[i]);
    return bytes;
}

static void take_back_on_device(const amp_session *s, int32_t param) {
    const amp_model_state *state = &s->model->states[param];
    void *own = s->params->away ? NULL : allocate(s, amp_state_bytes(state));
    if (own && amp_session_copy_bytes(s, own, s->states.bound[param], amp_state_content_bytes(state), NULL)) {
        release(s, own, amp_state_bytes(state));
        own = NULL;
    }
    amp_params_take_back_on_device(s->params, param, own);
}

static void take_back(const amp_session *s, int32_t param) {
    if (device_memory(s)) take_back_on_device(s, param);
    else amp_params_take_back(s->params, param);
}

static void release_share(const amp_session *s, int32_t param) {
    const amp_share share = s->shares.of[param];
    if (s->shares.masters[param]) release(s, (float *)s->shares.masters[param] + share.first, own_bytes(share));
}

void amp_session_return_masters(amp_session *s) {
    const int32_t count = s->model->state_count;
    if (!s->shares.masters) return; /* a session that was refused may have no device */
    for (int32_t i = 0; i < count && !s->sizes_only; i++)
        if (is_shared(s, i)) take_back(s, i);
    settle(s);
    for (int32_t i = 0; i < count; i++)
        if (is_shared(s, i)) release_share(s, i);
    amp_free(&s->memory.allocator, s->shares.masters, list_bytes(s));
    s->shares.masters = NULL;
}

/* ---- in a step --------------------------------------------------------------------------------------------------- */

void amp_session_masters_leave(const amp_session *s) {
    if (s->shares.masters && s->params->lent)
        s->params->away = "a step of ranks with shares of them has begun, and is not complete or has failed";
}

void amp_session_masters_come(amp_session *s) {
    if (s->shares.masters) s->params->away = NULL;
    s->shares.current = false;
}

/* What somebody has set. */
amp_status amp_session_take_masters(amp_session *s, amp_error *err) {
    const bool are_current = s->shares.current;
    s->shares.current = false;
    for (int32_t i = 0; s->shares.masters && !are_current && i < s->model->state_count; i++)
        if (is_shared(s, i)) AMP_TRY(copy_share(s, i, true, err));
    return AMP_OK;
}

amp_status amp_session_give_master(const amp_session *s, int32_t param, amp_error *err) {
    return copy_share(s, param, false, err);
}
