/* inspect_ranks.c: what ranks send in a step and hold, by the numbers by which sessions make their messages
 * (runtime/model/messages.h), and the memory of a rank's session. */
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/inspect/inspect_tables.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/messages.h"
#include "runtime/model/state.h"
#include "runtime/ranks/rank_exchange.h"
#include "runtime/session/session.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static amp_message_kind kind_of(const amp_model *m, const amp_model_collective *c) {
    const amp_model_state *first = &m->states[c->states[0]];
    if (c->op == AMP_EXCHANGE_GATHER_BATCHES) return AMP_MESSAGE_STATISTICS;
    if (c->op == AMP_EXCHANGE_ALL_GATHER) return AMP_MESSAGE_WEIGHTS;
    if (first->role == AMP_STATE_STAGED) return AMP_MESSAGE_BUFFERS;
    return first->of == AMP_MODEL_NONE ? AMP_MESSAGE_MEASURES : AMP_MESSAGE_GRADIENTS;
}

/* The kernel after which collective |index| is complete, and so are those before it in the table. */
static int32_t complete_after(const amp_model *m, int32_t index) {
    int32_t last = -1;
    if (amp_program_sums_on_device(m->train_step)) return m->train_step->kernel_count - 1;
    for (int32_t i = 0; i <= index; i++) {
        const amp_model_collective *c = &m->collectives[i];
        const int32_t used = amp_collective_last_use(m, c);
        if ((c->op == AMP_EXCHANGE_ALL_GATHER) == (m->collectives[index].op == AMP_EXCHANGE_ALL_GATHER) && used > last)
            last = used;
    }
    return last;
}

static void describe(const amp_model *m, int32_t index, int32_t ranks, amp_rank_message *out) {
    const amp_model_collective *c = &m->collectives[index];
    const amp_message_kind kind = kind_of(m, c);
    const bool gathers = kind == AMP_MESSAGE_STATISTICS || kind == AMP_MESSAGE_WEIGHTS;
    *out = (amp_rank_message){.kind = kind,
                              .op = gathers                       ? AMP_MESSAGE_ALL_GATHER
                                    : amp_collective_is_shared(c) ? AMP_MESSAGE_REDUCE_SCATTER
                                                                  : AMP_MESSAGE_ALL_REDUCE,
                              .dtype = (amp_dtype)c->dtype,
                              .what = c->what,
                              .bytes = amp_collective_bytes(m, c, ranks),
                              .memory = amp_exchange_bytes(m, index, ranks),
                              .complete = complete_after(m, index),
                              .state_count = (int32_t)c->state_count,
                              .states = c->states};
}

/* What sessions add to the table (drift.c). */
static void describe_agreement(const amp_model *m, int32_t ranks, amp_rank_message *out) {
    *out = (amp_rank_message){.kind = AMP_MESSAGE_AGREEMENT,
                              .op = AMP_MESSAGE_ALL_GATHER,
                              .dtype = AMP_DT_U8,
                              .what = "what ranks have in common",
                              .bytes = amp_fingerprints_bytes(ranks),
                              .memory = amp_exchange_bytes(m, -1, ranks),
                              .complete = m->train_step->kernel_count - 1};
}

/* The collective that is sent as number |index|: weights are last; -1: the agreement, before them; -2: none.
 */
static int32_t collective_at(const amp_model *m, int32_t index) {
    int32_t before = 0, seen = 0;
    for (int32_t i = 0; i < m->collective_count; i++) before += m->collectives[i].op != AMP_EXCHANGE_ALL_GATHER;
    if (!m->train_step || !m->collective_count || index < 0 || index > m->collective_count) return -2;
    if (index == before) return -1;
    const bool after = index > before;
    if (after) index -= before + 1;
    for (int32_t i = 0; i < m->collective_count; i++)
        if ((m->collectives[i].op == AMP_EXCHANGE_ALL_GATHER) == after && seen++ == index) return i;
    return -2;
}

amp_status amp_model_message_at(const amp_model *model, const char *device, int32_t ranks, int32_t index,
                                amp_rank_message *out, amp_error *err) {
    const amp_model *m;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_message_at: out is NULL");
    *out = (amp_rank_message){0};
    AMP_TRY(amp_inspect_target("amp_model_message_at", model, device, &m, err));
    if (ranks < 1) return amp_fail(err, AMP_INVALID_ARGUMENT, "%d ranks: there is at least one", ranks);
    const int32_t collective = collective_at(m, index);
    if (collective == -2)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: its ranks send no message %d in a step", m->desc.name, index);
    if (collective == -1) describe_agreement(m, ranks, out);
    else describe(m, collective, ranks, out);
    if (ranks == 1) out->memory = 0;
    return AMP_OK;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static uint64_t moment_held(const amp_model *m, int32_t index, int32_t rank, int32_t ranks) {
    const amp_model_state *s = &m->states[index];
    uint32_t at;
    const amp_model_collective *c = ranks > 1 ? amp_collective_scattering(m, s->of, &at) : NULL;
    const amp_share share = c ? amp_collective_share(m, c, at, rank, ranks) : (amp_share){0, amp_state_slots(s)};
    return (uint64_t)(share.end - share.first) * amp_storage_size(s->storage);
}

/* Shares of masters travel and stay as elements of 4 bytes (shared_masters.c). */
static uint64_t param_held(const amp_model *m, int32_t index, int32_t rank, int32_t ranks) {
    for (int32_t i = 0; ranks > 1 && i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        if (c->op != AMP_EXCHANGE_ALL_GATHER || !amp_collective_in_place(m, i)) continue;
        for (uint32_t j = 0; j < c->state_count; j++) {
            if (c->states[j] != index || !amp_master_can_be_shared(m, index)) continue;
            const amp_share share = amp_collective_share(m, c, j, rank, ranks);
            return (uint64_t)(share.end - share.first) * sizeof(float);
        }
    }
    return amp_state_bytes(&m->states[index]);
}

amp_status amp_model_rank_state(const amp_model *model, const char *device, int32_t index, int32_t rank, int32_t ranks,
                                amp_rank_state *out, amp_error *err) {
    const amp_model *m;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_rank_state: out is NULL");
    *out = (amp_rank_state){0};
    AMP_TRY(amp_inspect_target("amp_model_rank_state", model, device, &m, err));
    if (index < 0 || index >= m->state_count)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: there is no state %d of %d", m->desc.name, index,
                        m->state_count);
    if (rank < 0 || rank >= ranks) return amp_fail(err, AMP_INVALID_ARGUMENT, "there is no rank %d of %d", rank, ranks);
    const uint64_t bytes = amp_state_bytes(&m->states[index]);
    const uint32_t role = m->states[index].role;
    *out = (amp_rank_state){bytes, role == AMP_STATE_MOMENT  ? moment_held(m, index, rank, ranks)
                                   : role == AMP_STATE_PARAM ? param_held(m, index, rank, ranks)
                                                             : bytes};
    return AMP_OK;
}

/* ---- a session --------------------------------------------------------------------------------------------------- */

amp_status amp_session_plan_rank(amp_model *model, const amp_session_options *options, int32_t rank, int32_t ranks,
                                 amp_memory_info *out, amp_error *err) {
    const amp_comm_calls none = {0};
    amp_comm comm = {.calls = &none, .rank = rank, .size = ranks};
    amp_session_options o;
    if (!out || !model) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_plan_rank: model or out is NULL");
    *out = (amp_memory_info){0};
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_session_options", err));
    const amp_device_type *type;
    AMP_TRY(amp_device_type_find(o.device, &type, err));
    if (rank < 0 || rank >= ranks) return amp_fail(err, AMP_INVALID_ARGUMENT, "there is no rank %d of %d", rank, ranks);
    if (type->device_memory)
        return amp_fail(err, AMP_UNSUPPORTED, "device %s: memory of a rank is planned for the device cpu alone",
                        o.device);
    o.struct_size = sizeof o;
    o.comm = &comm;
    return amp_session_plan(model, NULL, &o, out, err);
}
