/* shared_master.c: see amp_master_can_be_shared (messages.h). */
#include "runtime/model/messages.h"

static bool has_operand(const amp_program *p, const uint32_t *operands, uint32_t count, int32_t state) {
    for (uint32_t i = 0; i < count; i++) {
        const amp_model_buffer *b = &p->buffers[operands[i]];
        if (b->kind == AMP_BUFFER_STATE && b->index == state) return true;
    }
    return false;
}

/* All states among the operands belong to the param, which it updates, or are numbers. */
static bool has_it_alone(const amp_model *m, const amp_program *p, const uint32_t *operands, uint32_t count,
                         int32_t param) {
    for (uint32_t i = 0; i < count; i++) {
        const amp_model_buffer *b = &p->buffers[operands[i]];
        const amp_model_state *s = b->kind == AMP_BUFFER_STATE ? &m->states[b->index] : NULL;
        if (s && !s->counter && b->index != param && s->of != param) return false;
    }
    return true;
}

/* Of a batch, each member for itself. */
static bool updates_alone_on_device(const amp_model *m, const amp_program *p, const amp_model_cuda_kernel *k,
                                    int32_t param) {
    const uint32_t members = amp_cuda_share_members(k), each = k->operands.count / members;
    for (uint32_t i = 0; i < members; i++)
        if (has_operand(p, k->operands.at + i * each, each, param) &&
            !(k->shares && has_it_alone(m, p, k->operands.at + i * each, each, param)))
            return false;
    return true;
}

static bool kernel_allows(const amp_model *m, const amp_program *p, int32_t kernel, int32_t param) {
    if (p->cuda_kernels) return updates_alone_on_device(m, p, &p->cuda_kernels[kernel], param);
    const amp_model_kernel *k = &p->kernels[kernel];
    if (!has_operand(p, k->operands, k->operand_count, param)) return true;
    return k->kind == AMP_KERNEL_TILE && has_it_alone(m, p, k->operands, k->operand_count, param);
}

bool amp_master_can_be_shared(const amp_model *m, int32_t param) {
    for (int32_t i = 0; i < m->program_count; i++) {
        const amp_program *p = &m->programs[i];
        if (p->kind == AMP_PROGRAM_REFRESH || !amp_program_uses_state(p, param)) continue;
        if (p->kind != AMP_PROGRAM_APPLY_STEP) return false;
        for (int32_t j = 0; j < p->kernel_count; j++)
            if (!kernel_allows(m, p, j, param)) return false;
    }
    return m->states[param].storage == AMP_DT_F32;
}
