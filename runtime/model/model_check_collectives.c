/* model_check_collectives.c: the table of what ranks exchange. */
#include "runtime/model/model_check.h"

#include "base/alloc.h"

bool amp_is_exchanged_type(uint32_t t) {
    return t == AMP_DT_F32 || t == AMP_DT_F64 || t == AMP_DT_BF16 || t == AMP_DT_F16;
}

/* Sets |seen| by state, to the op and 1: a second collective would add what the first has added up already. */
static amp_status check_state(const amp_check *x, int32_t collective, int32_t index, uint8_t *seen) {
    const amp_model *m = x->m;
    if (!amp_check_index(index, m->state_count))
        return amp_check_fail(x, "collective %d exchanges a state that does not exist", collective);
    const amp_model_state *s = &m->states[index];
    const bool gathers = m->collectives[collective].op == AMP_EXCHANGE_ALL_GATHER;
    const bool has_role =
        gathers ? s->role == AMP_STATE_PARAM : s->role == AMP_STATE_ACCUMULATOR || s->role == AMP_STATE_STAGED;
    if (!has_role || (!gathers && s->storage != m->collectives[collective].dtype))
        return amp_check_fail(x, "collective %d cannot exchange the state %s", collective, s->name);
    if (seen[index]) return amp_check_fail(x, "collective %d exchanges the state %s again", collective, s->name);
    seen[index] = (uint8_t)(m->collectives[collective].op + 1);
    return AMP_OK;
}

static amp_status check_collective(const amp_check *x, int32_t i, uint8_t *seen) {
    const amp_model_collective *c = &x->m->collectives[i];
    if (c->op > AMP_EXCHANGE_ALL_GATHER) return amp_check_fail(x, "collective %d has the unknown op %u", i, c->op);
    if (!amp_is_exchanged_type(c->dtype))
        return amp_check_fail(x, "collective %d adds numbers of the unknown type %u", i, c->dtype);
    if (!c->state_count || c->state_count > (uint32_t)x->m->state_count || !c->states || !c->what)
        return amp_check_fail(x, "collective %d has no states, or no text that says what they are", i);
    if (c->op == AMP_EXCHANGE_GATHER_BATCHES && !amp_model_program_of(x->m, AMP_PROGRAM_STATISTICS_STEP))
        return amp_check_fail(x, "collective %d is for statistics_step, which is not there", i);
    for (uint32_t j = 0; j < c->state_count; j++) AMP_TRY(check_state(x, i, c->states[j], seen));
    return AMP_OK;
}

static amp_status check_one_gather(const amp_check *x) {
    int32_t gathers = 0;
    for (int32_t i = 0; i < x->m->collective_count; i++)
        if (x->m->collectives[i].op == AMP_EXCHANGE_GATHER_BATCHES && gathers++)
            return amp_check_fail(x, "collective %d gathers what micro-batches leave, as another one does", i);
    return AMP_OK;
}

/* A form for a device has the collectives of its model, but for their order and their sizes. */
static amp_status check_same_states(const amp_check *x, const uint8_t *seen) {
    const amp_model *m = x->m, *owner = m->owner;
    int32_t left = 0;
    for (int32_t i = 0; i < m->state_count; i++) left += seen[i] != 0;
    for (int32_t i = 0; i < owner->collective_count; i++)
        for (uint32_t j = 0; j < owner->collectives[i].state_count; j++, left--) {
            const char *name = owner->states[owner->collectives[i].states[j]].name;
            const int32_t state = amp_model_state_index(m, name);
            if (state < 0 || seen[state] != owner->collectives[i].op + 1)
                return amp_check_fail(x, "its collectives leave out the state %s, or exchange it otherwise", name);
        }
    return left ? amp_check_fail(x, "its collectives exchange %d states that the CPU's do not", left) : AMP_OK;
}

static amp_status check_each(const amp_check *x) {
    const amp_model *m = x->m;
    const size_t bytes = (size_t)m->state_count * sizeof(uint8_t);
    uint8_t *seen = amp_alloc_zeroed(&m->allocator, bytes);
    if (!seen) return amp_fail(x->err, AMP_OUT_OF_MEMORY, "%s: no memory to check its collectives", x->where);
    amp_status status = AMP_OK;
    for (int32_t i = 0; i < m->collective_count && !status; i++) status = check_collective(x, i, seen);
    if (!status && m->owner) status = check_same_states(x, seen);
    amp_free(&m->allocator, seen, bytes);
    return status;
}

amp_status amp_check_collectives(const amp_check *x) {
    static const struct {
        uint32_t counter;
        const char *name;
    } needed[] = {
        {AMP_COUNTER_RANKS, "ranks"}, {AMP_COUNTER_FIRST_MICRO, "first_micro"}, {AMP_COUNTER_FULL_BATCH, "full_batch"}};
    const amp_model *m = x->m;
    if (!m->collective_count && !(m->owner && m->owner->collective_count)) return AMP_OK;
    AMP_TRY(check_one_gather(x));
    AMP_TRY(check_each(x));
    AMP_TRY(amp_check_shares(x));
    if (!amp_model_program_of(m, AMP_PROGRAM_MICRO_STEP))
        return amp_check_fail(x, "it has collectives, but no program micro_step before them");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (amp_model_counter(m, needed[i].counter) < 0)
            return amp_check_fail(x, "it has collectives, but no counter %s", needed[i].name);
    return AMP_OK;
}
