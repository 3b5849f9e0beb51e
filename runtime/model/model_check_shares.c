/* model_check_shares.c: that ranks can have shares of what a REDUCE_SCATTER says: elements are where they are in whole
 * states, and each kernel that updates some runs tile by tile. */
#include "runtime/model/messages.h"
#include "runtime/model/model_check.h"
#include "runtime/model/state.h"

enum { TILE = 32 };

/* Rows are cut between runs of 32 elements, and no run may continue in the next row; CUDA's rows are cut anywhere. */
static bool can_be_cut(const amp_model *m, const amp_model_state *s) {
    if (m->owner) return true;
    if (s->layout != AMP_LAYOUT_ROWS) return s->layout == AMP_LAYOUT_PANELS;
    const int64_t columns = s->rank ? s->dims[s->rank - 1] : 1;
    return columns == amp_model_state_elements(s) || (!s->hwio && columns % TILE == 0);
}

static bool is_alike(const amp_model_state *a, const amp_model_state *b) {
    return a->layout == b->layout && a->hwio == b->hwio && amp_state_slots(a) == amp_state_slots(b);
}

static amp_status check_state(const amp_check *x, int32_t index) {
    const amp_model *m = x->m;
    const amp_model_state *s = &m->states[index];
    if (s->role != AMP_STATE_ACCUMULATOR || s->of == AMP_MODEL_NONE)
        return amp_check_fail(x, "ranks cannot have shares of the state %s", s->name);
    if (!can_be_cut(m, s)) return amp_check_fail(x, "the state %s cannot be divided among ranks", s->name);
    for (int32_t i = 0; i < m->state_count; i++) {
        const amp_model_state *other = &m->states[i];
        const bool shared = i == s->of || (other->role == AMP_STATE_MOMENT && other->of == s->of);
        if (shared && !is_alike(s, other)) return amp_check_fail(x, "shares of %s and %s differ", other->name, s->name);
    }
    return AMP_OK;
}

static amp_status check_gather(const amp_check *x, int32_t i) {
    const amp_model *m = x->m;
    const amp_model_collective *gather = &m->collectives[i];
    const int32_t of = amp_collective_of_gradients(m, i);
    if (of < 0) return amp_check_fail(x, "collective %d gathers weights that no REDUCE_SCATTER has shares of", i);
    const amp_model_collective *gradients = &m->collectives[of];
    bool same = gather->state_count == gradients->state_count;
    for (uint32_t j = 0; same && j < gather->state_count; j++)
        same = m->states[gradients->states[j]].of == gather->states[j];
    return same ? AMP_OK : amp_check_fail(x, "collective %d gathers other weights than those of collective %d", i, of);
}

/* The param whose moment the operand is, if ranks have shares of it. */
static int32_t shared_param(const amp_model *m, const amp_program *p, uint32_t operand) {
    const amp_model_buffer *b = &p->buffers[operand];
    if (b->kind != AMP_BUFFER_STATE || m->states[b->index].role != AMP_STATE_MOMENT) return AMP_MODEL_NONE;
    uint32_t at;
    const int32_t param = m->states[b->index].of;
    return amp_collective_scattering(m, param, &at) ? param : AMP_MODEL_NONE;
}

/* |updates|: the kernel can run for a share.  All of these operands are of one param. */
static amp_status check_operands(const amp_check *x, const amp_program *p, const uint32_t *operands, uint32_t count,
                                 bool updates, const char *kernel) {
    int32_t of = AMP_MODEL_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const int32_t param = shared_param(x->m, p, operands[i]);
        if (param == AMP_MODEL_NONE) continue;
        if (!updates || p->kind != AMP_PROGRAM_APPLY_STEP || (of != AMP_MODEL_NONE && of != param))
            return amp_check_fail(x, "%s: kernel %s cannot run for a share of %s", p->name, kernel,
                                  x->m->states[param].name);
        of = param;
    }
    return AMP_OK;
}

/* Member by member. */
static amp_status check_cuda_kernel(const amp_check *x, const amp_program *p, const amp_model_cuda_kernel *k) {
    const amp_model_cuda_part *part = k->parts.at;
    const bool counts = (k->elements.count || k->sizes.count >= 2) && k->parts.count == 1 && k->choices.count == 1;
    if (k->shares && (part->kind != AMP_KERNEL_TILE || part->grids->per[0] <= 0 || !counts))
        return amp_check_fail(x, "%s: kernel %s cannot run for a share", p->name, k->name);
    const uint32_t members = amp_cuda_share_members(k), each = k->operands.count / members;
    for (uint32_t i = 0; i < members; i++)
        AMP_TRY(check_operands(x, p, k->operands.at + i * each, each, k->shares, k->name));
    return AMP_OK;
}

static amp_status check_kernel(const amp_check *x, const amp_program *p, int32_t index) {
    if (p->cuda_kernels) return check_cuda_kernel(x, p, &p->cuda_kernels[index]);
    const amp_model_kernel *k = &p->kernels[index];
    return check_operands(x, p, k->operands, k->operand_count, k->kind == AMP_KERNEL_TILE, k->name);
}

static amp_status check_kernels(const amp_check *x) {
    const amp_model *m = x->m;
    for (int32_t i = 0; i < m->program_count; i++)
        for (int32_t j = 0; j < m->programs[i].kernel_count; j++) AMP_TRY(check_kernel(x, &m->programs[i], j));
    return AMP_OK;
}

amp_status amp_check_shares(const amp_check *x) {
    const amp_model *m = x->m;
    int32_t scattered = 0, gathered = 0;
    for (int32_t i = 0; i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        scattered += amp_collective_is_scattered(c);
        for (uint32_t j = 0; amp_collective_is_scattered(c) && j < c->state_count; j++)
            AMP_TRY(check_state(x, c->states[j]));
    }
    for (int32_t i = 0; i < m->collective_count; i++) {
        if (m->collectives[i].op != AMP_EXCHANGE_ALL_GATHER) continue;
        gathered++;
        AMP_TRY(check_gather(x, i));
    }
    if (scattered != gathered)
        return amp_check_fail(x, "it has %d REDUCE_SCATTER and %d ALL_GATHER", scattered, gathered);
    return scattered ? check_kernels(x) : AMP_OK;
}
