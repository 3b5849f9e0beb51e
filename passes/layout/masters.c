/* masters.c: how states are stored.
 *
 *   state %fc1.weight : f32[512, 784] param   =>   state %fc1.weight : f32[512, 784] param stored f32 panels
 *
 * On a target without tiles everything is row-major in its own type.
 */
#include "passes/layout/layout.h"
#include "passes/passes.h"

/* By index of a state: whether a kernel makes its next value as one number per row or column. */
static const bool *find_line_states(const Module *m) {
    bool *found = arena_array(m->arena, bool, m->states.len + 1);
    const Table numbers = number_states(m);
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        const KernelList list = kernel_list_open(m->funcs.data[i]);
        const bool *lines = find_lines(&list);
        for (int j = 0; j < f->body.len; j++) {
            const Op *o = ir_op_at(f, j);
            if (o->code != OP_assign || !lines[o->in[1].id]) continue;
            found[*(const uint32_t *)table_get(&numbers, ir_state_of(f, o->in[0])->name) - 1] = true;
        }
    }
    return found;
}

/* A weight, its gradient and its moments are divided into the same shares. */
static void store_shares_alike(Module *m) {
    for (int i = 0; i < m->states.len && m->distribution == DISTRIBUTE_ZERO1; i++) {
        const State *s = m->states.data[i];
        State *param = s->of ? ir_state_find(m, s->of) : NULL;
        if (param && s->role == STATE_ACCUMULATOR && s->layout == LAYOUT_ROWS) param->layout = LAYOUT_ROWS;
    }
    for (int i = 0; i < m->states.len && m->distribution == DISTRIBUTE_ZERO1; i++) {
        State *s = m->states.data[i];
        const State *param = s->of ? ir_state_find(m, s->of) : NULL;
        if (param && s->role == STATE_MOMENT) s->layout = param->layout;
    }
}

/* Its rows are taken out and written back by themselves: each is in one place. */
static bool goes_by_row(const Module *m, const State *s) {
    const State *param = s->of ? ir_state_find(m, s->of) : s;
    return param && param->role == STATE_PARAM && ir_lazy_group(m, param->name);
}

/* Masters of matrices, and their moments, are stored in panels: a tile of the weight gradient is a tile of its
 * optimizer state. */
bool pass_masters(PassContext *c) {
    Module *m = c->m;
    const bool has_tiles = target_of(m)->has_tiles, *lines = find_line_states(m);
    for (int i = 0; i < m->states.len; i++) {
        State *s = m->states.data[i];
        bool trained = s->role == STATE_PARAM || s->role == STATE_MOMENT || s->role == STATE_ACCUMULATOR;
        s->storage = plain_storage(s->dtype);
        bool matrix = s->shape.rank == 2 || s->hwio;
        const bool panels = trained && matrix && has_tiles && !lines[i] && !goes_by_row(m, s);
        s->layout = panels ? LAYOUT_PANELS : LAYOUT_ROWS;
    }
    store_shares_alike(m);
    return true;
}
