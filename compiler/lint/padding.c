/* padding.c: what `pad = true` would make of a step: how its products would copy, and what it costs. */
#include "base/dtypes.h"
#include "compiler/casts.h"
#include "compiler/lint/lint.h"

static double elements_of(const Shape *s, int64_t batch) {
    double count = 1;
    for (int i = 0; i < s->rank; i++) count *= (double)dim_eval(s->d[i], batch);
    return count;
}

LintSizes lint_sizes(const Module *planned, int64_t batch) {
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    LintSizes out = {0};
    if (!planned) return out;
    for (int i = 0; i < planned->states.len; i++) {
        const State *s = planned->states.data[i];
        if (s->role != STATE_DERIVED) continue;
        Shape shape = ir_state_shape(s);
        if (s->pitch) shape.d[shape.rank - 1] = dim_const(s->pitch);
        out.bytes += elements_of(&shape, 1) * (double)amp_storage_size(s->storage);
    }
    casts_step_funcs(planned, funcs);
    for (int i = 0; funcs[i]; i++) {
        out.kernels += funcs[i]->kernels.len;
        for (int j = 0; j < funcs[i]->buffers.len; j++) {
            const Buffer *b = funcs[i]->buffers.data[j];
            const Shape shape = ir_buffer_shape(funcs[i], b);
            if (b->kind == BUFFER_TEMP) out.bytes += elements_of(&shape, batch) * (double)amp_storage_size(b->storage);
        }
    }
    return out;
}
