/* messages.c: see messages.h. */
#include "runtime/model/messages.h"

#include "runtime/model/state.h"

int32_t amp_collective_state(const amp_model *table, const amp_model *model, const amp_model_collective *c,
                             uint32_t i) {
    const int32_t of_table = c->states[i];
    return model == table ? of_table : amp_model_state_index(model, table->states[of_table].name);
}

size_t amp_collective_block_bytes(const amp_model *table, const amp_model *model, const amp_model_collective *c) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->state_count; i++) {
        const int32_t state = amp_collective_state(table, model, c, i);
        if (state >= 0) bytes += amp_state_bytes(&model->states[state]);
    }
    return bytes;
}

size_t amp_collective_bytes(const amp_model *table, const amp_model *model, const amp_model_collective *c,
                            int32_t ranks) {
    const size_t block = amp_collective_block_bytes(table, model, c);
    return c->op == AMP_EXCHANGE_GATHER_BATCHES ? block * (size_t)(ranks * model->accumulate) : block;
}

int32_t amp_state_last_use(const amp_model *model, int32_t state) {
    const amp_program *p = model->train_step;
    int32_t last = -1;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *b = &p->buffers[i];
        if (b->kind == AMP_BUFFER_STATE && b->index == state && b->last_kernel > last) last = b->last_kernel;
    }
    return last;
}

int32_t amp_collective_last_use(const amp_model *table, const amp_model *model, const amp_model_collective *c) {
    int32_t last = -1;
    for (uint32_t i = 0; i < c->state_count; i++) {
        const int32_t of = amp_state_last_use(model, amp_collective_state(table, model, c, i));
        if (of > last) last = of;
    }
    return last;
}
