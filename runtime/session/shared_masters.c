/* shared_masters.c: of weights that only updates and derived copies read, a rank keeps its share of the masters alone
 * (zero1).
 *
 *   own        the share: what apply_step reads and writes
 *   whole      the memory of the gradients: all masters, from when gather_step has brought those of the other ranks to
 *              when the next micro_step writes gradients there
 *
 * So between steps params are whole, for whoever reads or sets them, and within one they are away.  When the session
 * ends they get memory of their own again.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

static bool has_operand(const amp_program *p, const amp_model_kernel *k, int32_t state) {
    for (uint32_t i = 0; i < k->operand_count; i++) {
        const amp_model_buffer *b = &p->buffers[k->operands[i]];
        if (b->kind == AMP_BUFFER_STATE && b->index == state) return true;
    }
    return false;
}

/* Of all states it has those of the param, which it updates, and numbers. */
static bool updates_alone(const amp_model *m, const amp_program *p, const amp_model_kernel *k, int32_t param) {
    for (uint32_t i = 0; i < k->operand_count; i++) {
        const amp_model_buffer *b = &p->buffers[k->operands[i]];
        const amp_model_state *s = b->kind == AMP_BUFFER_STATE ? &m->states[b->index] : NULL;
        if (s && !s->counter && b->index != param && s->of != param) return false;
    }
    return k->kind == AMP_KERNEL_TILE;
}

static bool can_be_shared(const amp_model *m, int32_t param) {
    for (int32_t i = 0; i < m->program_count; i++) {
        const amp_program *p = &m->programs[i];
        if (p->kind == AMP_PROGRAM_REFRESH || !amp_program_uses_state(p, param)) continue;
        if (p->kind != AMP_PROGRAM_APPLY_STEP) return false;
        for (int32_t j = 0; j < p->kernel_count; j++)
            if (has_operand(p, &p->kernels[j], param) && !updates_alone(m, p, &p->kernels[j], param)) return false;
    }
    return m->states[param].storage == AMP_DT_F32;
}

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
            if (can_be_shared(m, master.param)) AMP_TRY(visit(s, &master, err));
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

static void copy_share(const amp_session *s, int32_t param, bool to_own) {
    const amp_share share = s->shares.of[param];
    float *own = (float *)s->shares.masters[param] + share.first,
          *whole = (float *)s->states.bound[param] + share.first;
    const size_t bytes = (size_t)(share.end - share.first) * sizeof(float);
    if (bytes) memcpy(to_own ? own : whole, to_own ? whole : own, bytes);
}

/* Bound to where all of it would begin, as shares.c binds moments; an empty share has no memory. */
static amp_status take_share(amp_session *s, const Master *m, amp_error *err) {
    const amp_exchange *x = s->exchange;
    const size_t bytes = own_bytes(m->share);
    float *own = bytes ? amp_alloc_zeroed_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN) : NULL;
    if (bytes && !own)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", s->model->desc.name, bytes,
                        s->model->states[m->param].name);
    float *whole = (float *)x->messages[m->message].data +
                   amp_collective_place(x->model, &x->model->collectives[m->message], m->at);
    s->shares.of[m->param] = m->share;
    s->shares.masters[m->param] = own ? own - m->share.first : NULL;
    amp_params_lend(s->params, m->param, whole);
    s->states.bound[m->param] = whole;
    copy_share(s, m->param, true);
    return AMP_OK;
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
    if (!s->shares.of || !is_alone(s) || amp_session_has_device_memory(s)) return AMP_OK;
    s->shares.masters = amp_alloc_zeroed(&s->memory.allocator, list_bytes(s));
    if (!s->shares.masters)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to divide it among ranks", s->model->desc.name);
    AMP_TRY(each_master(s, comm, s->sizes_only ? count_share : take_share, err));
    if (!s->sizes_only) bind_masters(s);
    return AMP_OK;
}

uint64_t amp_session_master_bytes(const amp_session *s, int32_t param) { return own_bytes(s->shares.of[param]); }

void amp_session_return_masters(amp_session *s) {
    for (int32_t i = 0; s->shares.masters && i < s->model->state_count; i++) {
        if (!is_shared(s, i)) continue;
        const amp_share share = s->shares.of[i];
        float *own = s->shares.masters[i] ? (float *)s->shares.masters[i] + share.first : NULL;
        if (!s->sizes_only) amp_params_take_back(s->params, i);
        amp_free_aligned(&s->memory.allocator, own, own_bytes(share), AMP_MEMORY_ALIGN);
    }
    amp_free(&s->memory.allocator, s->shares.masters, s->shares.masters ? list_bytes(s) : 0);
    s->shares.masters = NULL;
}

/* ---- in a step --------------------------------------------------------------------------------------------------- */

void amp_session_masters_leave(const amp_session *s) {
    if (s->shares.masters && s->params->lent)
        s->params->away = "a step of ranks with shares of them has begun, and is not complete or has failed";
}

void amp_session_masters_come(amp_session *s) {
    if (s->shares.masters) s->params->away = NULL;
}

/* What somebody has set. */
void amp_session_take_masters(const amp_session *s) {
    for (int32_t i = 0; s->shares.masters && i < s->model->state_count; i++)
        if (is_shared(s, i)) copy_share(s, i, true);
}

void amp_session_give_master(const amp_session *s, int32_t param) { copy_share(s, param, false); }
