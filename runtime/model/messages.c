/* messages.c: see messages.h. */
#include "runtime/model/messages.h"

#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

/* ---- shares ------------------------------------------------------------------------------------------------------ */

bool amp_collective_is_scattered(const amp_model_collective *c) {
    return c->op == AMP_EXCHANGE_REDUCE_SCATTER || c->op == AMP_EXCHANGE_REDUCE_SCATTER_TREE;
}

bool amp_collective_is_shared(const amp_model_collective *c) {
    return amp_collective_is_scattered(c) || c->op == AMP_EXCHANGE_ALL_GATHER;
}

const amp_model_collective *amp_collective_scattering(const amp_model *m, int32_t param, uint32_t *at) {
    for (int32_t i = 0; i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        for (*at = 0; amp_collective_is_scattered(c) && *at < c->state_count; ++*at)
            if (m->states[c->states[*at]].of == param) return c;
    }
    return NULL;
}

/* What is gathered travels in elements of 4 bytes, the size of gradients that are not rounded. */
static size_t element_bytes(const amp_model_collective *c) {
    return c->op == AMP_EXCHANGE_ALL_GATHER ? sizeof(float) : amp_storage_size(c->dtype);
}

int64_t amp_state_slots(const amp_model_state *s) {
    return (int64_t)(amp_state_content_bytes(s) / amp_storage_size(s->storage));
}

static int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

int64_t amp_collective_place(const amp_model *m, const amp_model_collective *c, uint32_t i) {
    int64_t at = 0;
    for (uint32_t j = 0; j < i; j++) at += round_up(amp_state_slots(&m->states[c->states[j]]), AMP_SHARE_UNIT);
    return at;
}

static int64_t part_of(const amp_model *m, const amp_model_collective *c, int32_t ranks) {
    const int64_t units = amp_collective_place(m, c, c->state_count) / AMP_SHARE_UNIT;
    return (units + ranks - 1) / ranks * AMP_SHARE_UNIT;
}

static int64_t within(int64_t at, int64_t end) { return at < 0 ? 0 : at > end ? end : at; }

amp_share amp_collective_share(const amp_model *m, const amp_model_collective *c, uint32_t i, int32_t rank,
                               int32_t ranks) {
    const int64_t part = part_of(m, c, ranks), place = amp_collective_place(m, c, i),
                  slots = amp_state_slots(&m->states[c->states[i]]);
    return (amp_share){within(part * rank - place, slots), within(part * (rank + 1) - place, slots)};
}

int32_t amp_collective_of_gradients(const amp_model *m, int32_t gather) {
    int32_t before = 0;
    for (int32_t i = 0; i < gather; i++) before += m->collectives[i].op == AMP_EXCHANGE_ALL_GATHER;
    for (int32_t i = 0; i < m->collective_count; i++)
        if (amp_collective_is_scattered(&m->collectives[i]) && !before--) return i;
    return -1;
}

bool amp_collective_in_place(const amp_model *m, int32_t gather) {
    const int32_t of = amp_collective_of_gradients(m, gather);
    return of >= 0 && element_bytes(&m->collectives[of]) == element_bytes(&m->collectives[gather]);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

size_t amp_collective_block_bytes(const amp_model *model, const amp_model_collective *c) {
    size_t bytes = 0;
    if (amp_collective_is_shared(c)) return (size_t)amp_collective_place(model, c, c->state_count) * element_bytes(c);
    for (uint32_t i = 0; i < c->state_count; i++) bytes += amp_state_bytes(&model->states[c->states[i]]);
    return bytes;
}

size_t amp_collective_bytes(const amp_model *model, const amp_model_collective *c, int32_t ranks) {
    const size_t block = amp_collective_block_bytes(model, c);
    if (amp_collective_is_shared(c)) return (size_t)(part_of(model, c, ranks) * ranks) * element_bytes(c);
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

int32_t amp_collective_last_use(const amp_model *model, const amp_model_collective *c) {
    int32_t last = -1;
    for (uint32_t i = 0; i < c->state_count; i++) {
        const int32_t of = amp_state_last_use(model, c->states[i]);
        if (of > last) last = of;
    }
    return last;
}

bool amp_program_sums_on_device(const amp_program *p) {
    for (int32_t i = 0; p->cuda_kernels && i < p->kernel_count; i++)
        if (p->cuda_kernels[i].parts.at->kind == AMP_KERNEL_COLLECTIVE) return true;
    return false;
}
