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
#include "runtime/ranks/rank_exchange.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

/* State |at| of a message that gathers weights in the memory of gradients. */
typedef struct Master {
    int32_t message;
    uint32_t at;
    int32_t param;
    amp_share share;
} Master;

typedef amp_status Visit(amp_ranks *r, const Master *master, amp_error *err);

static amp_status each_master(amp_ranks *r, Visit *visit, amp_error *err) {
    const amp_model *m = r->session.model;
    for (int32_t i = 0; i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        if (c->op != AMP_EXCHANGE_ALL_GATHER || !amp_collective_in_place(m, i)) continue;
        for (uint32_t j = 0; j < c->state_count; j++) {
            const Master master = {i, j, c->states[j], amp_collective_share(m, c, j, r->comm->rank, r->comm->size)};
            if (amp_master_can_be_shared(m, master.param)) AMP_TRY(visit(r, &master, err));
        }
    }
    return AMP_OK;
}

/* ---- in memory --------------------------------------------------------------------------------------------------- */

static size_t list_bytes(const amp_ranks *r) { return (size_t)r->session.model->state_count * sizeof(void *); }

static amp_status copy_share(const amp_ranks *r, int32_t param, bool to_own, amp_error *err) {
    const amp_share share = r->shares[param];
    float *own = (float *)r->masters[param] + share.first,
          *whole = (float *)r->session.states->bound[param] + share.first;
    const size_t bytes = (size_t)(share.end - share.first) * sizeof(float);
    return bytes ? amp_ranks_copy_bytes(r, to_own ? own : whole, to_own ? whole : own, bytes, err) : AMP_OK;
}

static amp_device_memory *device_memory(const amp_ranks *r) { return r->session.params->residency->memory; }

static void *allocate(const amp_ranks *r, size_t bytes) {
    void *memory = NULL;
    amp_device_memory *m = device_memory(r);
    if (!m) return amp_alloc_zeroed_aligned(&r->session.memory->allocator, bytes, AMP_MEMORY_ALIGN);
    return m->type->allocate(m, bytes, &memory, NULL) ? NULL : memory;
}

static void release(const amp_ranks *r, void *memory, size_t bytes) {
    amp_device_memory *m = device_memory(r);
    if (m) m->type->release(m, memory);
    else amp_free_aligned(&r->session.memory->allocator, memory, bytes, AMP_MEMORY_ALIGN);
}

/* Before memory is given back that copies may still read. */
static void settle(const amp_ranks *r) {
    if (device_memory(r)) r->session.device->type->device_memory->settle(r->session.device);
}

/* Where all of it is between steps. */
static float *whole_of(const amp_ranks *r, const Master *m) {
    const amp_exchange *x = r->exchange;
    return (float *)x->messages[m->message].data +
           amp_collective_place(x->model, &x->model->collectives[m->message], m->at);
}

static amp_status copy_on_device(amp_ranks *r, const Master *m, amp_error *err) {
    const size_t bytes = amp_state_content_bytes(&r->session.model->states[m->param]);
    return amp_ranks_copy_bytes(r, whole_of(r, m), r->session.states->bound[m->param], bytes, err);
}

/* Bound to where all of it would begin, as shares.c binds moments; an empty share has no memory. */
static amp_status take_share(amp_ranks *r, const Master *m, amp_error *err) {
    const size_t bytes = amp_master_bytes(m->share);
    float *own = bytes ? allocate(r, bytes) : NULL, *whole = whole_of(r, m);
    if (bytes && !own)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", r->session.model->desc.name, bytes,
                        r->session.model->states[m->param].name);
    r->shares[m->param] = m->share;
    r->masters[m->param] = own ? own - m->share.first : NULL;
    if (device_memory(r)) amp_params_lend_on_device(r->session.params, m->param, whole);
    else amp_params_lend(r->session.params, m->param, whole);
    r->session.states->bound[m->param] = whole;
    return copy_share(r, m->param, true, err);
}

/* Of a session that is only planned. */
static amp_status count_share(amp_ranks *r, const Master *m, amp_error *err) {
    const size_t bytes = amp_master_bytes(m->share);
    (void)err;
    r->shares[m->param] = m->share;
    amp_params_lend(r->session.params, m->param, NULL);
    if (bytes) amp_counted_allocator_plan(r->session.memory, bytes);
    return AMP_OK;
}

static void bind_masters(amp_ranks *r) {
    for (int32_t i = 0; i < r->session.program_count; i++) {
        amp_bound_program *b = &r->session.programs[i];
        for (int32_t j = 0; b->program && j < b->program->buffer_count; j++) {
            const amp_model_buffer *buffer = &b->program->buffers[j];
            if (buffer->kind != AMP_BUFFER_STATE || !amp_ranks_share_master(r, (int32_t)buffer->index)) continue;
            b->buffers[j] = b->program == r->session.model->apply_step ? r->masters[buffer->index]
                                                                       : r->session.states->bound[buffer->index];
        }
    }
}

/* Another session on the params, or what sessions of another model bind, knows masters where they are. */
static bool is_alone(const amp_ranks *r) {
    const amp_params_residency *where = r->session.params->residency;
    return !where->users->next && !where->forms;
}

amp_status amp_ranks_share_masters(amp_ranks *r, amp_error *err) {
    if (!r->shares || !is_alone(r)) return AMP_OK;
    AMP_TRY(amp_params_reach_device(r->session.params, err));
    r->masters = amp_alloc_zeroed(&r->session.memory->allocator, list_bytes(r));
    if (!r->masters)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to divide it among ranks", r->session.model->desc.name);
    if (device_memory(r)) AMP_TRY(each_master(r, copy_on_device, err));
    settle(r);
    AMP_TRY(each_master(r, r->session.sizes_only ? count_share : take_share, err));
    if (!r->session.sizes_only) bind_masters(r);
    return AMP_OK;
}

static void take_back_on_device(const amp_ranks *r, int32_t param) {
    const amp_model_state *state = &r->session.model->states[param];
    void *own = r->session.params->away ? NULL : allocate(r, amp_state_bytes(state));
    if (own && amp_ranks_copy_bytes(r, own, r->session.states->bound[param], amp_state_content_bytes(state), NULL)) {
        release(r, own, amp_state_bytes(state));
        own = NULL;
    }
    amp_params_take_back_on_device(r->session.params, param, own);
}

static void take_back(const amp_ranks *r, int32_t param) {
    if (device_memory(r)) take_back_on_device(r, param);
    else amp_params_take_back(r->session.params, param);
}

static void release_share(const amp_ranks *r, int32_t param) {
    const amp_share share = r->shares[param];
    if (r->masters[param]) release(r, (float *)r->masters[param] + share.first, amp_master_bytes(share));
}

void amp_ranks_return_masters(amp_ranks *r) {
    const int32_t count = r->session.model->state_count;
    if (!r->masters) return; /* a session that was refused may have no device */
    for (int32_t i = 0; i < count && !r->session.sizes_only; i++)
        if (amp_ranks_share_master(r, i)) take_back(r, i);
    settle(r);
    for (int32_t i = 0; i < count; i++)
        if (amp_ranks_share_master(r, i)) release_share(r, i);
    amp_free(&r->session.memory->allocator, r->masters, list_bytes(r));
    r->masters = NULL;
}

/* ---- in a step --------------------------------------------------------------------------------------------------- */

void amp_ranks_masters_leave(const amp_ranks *r) {
    if (r->masters && r->session.params->lent)
        r->session.params->away = "a step of ranks with shares of them has begun, and is not complete or has failed";
}

void amp_ranks_masters_come(amp_ranks *r) {
    if (r->masters) r->session.params->away = NULL;
    r->are_current = false;
}

amp_status amp_ranks_take_params(amp_ranks *r, amp_error *err) {
    const bool are_current = r->are_current && !amp_params_set_on_host(r->session.params);
    AMP_TRY(amp_params_reach_device(r->session.params, err));
    r->are_current = false;
    for (int32_t i = 0; r->masters && !are_current && i < r->session.model->state_count; i++)
        if (amp_ranks_share_master(r, i)) AMP_TRY(copy_share(r, i, true, err));
    return AMP_OK;
}

amp_status amp_ranks_give_master(const amp_ranks *r, int32_t param, amp_error *err) {
    return copy_share(r, param, false, err);
}
