/* layout: decides how every value that crosses kernels is stored (docs/design/kernels.md), and puts kernels
 * into the order that needs less memory (postpone.c, sequence.c) and fewer launches (merge_columns.c, gather.c,
 * merge_scalars.c), and for a device messages of ranks into the order of its kernels (bucket_order.c).
 * needs: fuse.  breaks: nothing.
 *
 *   kernel k02 product {                              kernel k02 product {
 *     %3 = contract(%x.h, %fc1.w.h; tb = true)   =>     %3 = contract(%x.h, %"fc1.weight/f16.panels_t"; tb = true)
 *                                                       reads (b1, b2)  writes (b5)
 *                                                     buffer b1 temp %x.h panels f32 ...
 *
 * With --no-pass=layout everything stays row-major, and a copy kernel packs each operand of a product just before it:
 * the same bits.  On a target without tiles everything is row-major in its own type; --no-pass=layout then leaves out
 * the rounded copies of weights (weight_copies.c).
 */
#include "passes/kernels/layout.h"
#include "passes/passes.h"

/* By value id: whether its kernel makes one number per row or column, or is attention: it cannot store tiles.  (Kernels
 * with segments can.)  Of a target without tiles nobody asks. */
static bool *find_lines(const KernelList *l) {
    const Func *f = l->f;
    bool *lines = arena_array(f->module->arena, bool, f->values.len + 1);
    if (!target_of(f->module)->has_tiles) return lines;
    for (int i = 0; i < l->at.len; i++) {
        const KernelOps *k = &l->at.data[i];
        Val space = NO_VAL;
        for (int j = 0; j < k->ops.len; j++) { /* which writes rows */
            const Op *o = ir_op(f, k->ops.data[j]);
            for (int r = 0; r < o->n_out && ir_is_attention(o); r++) lines[o->out[r].id] = true;
        }
        if ((k->kernel->kind != KERNEL_ROW && k->kernel->kind != KERNEL_COLUMN) || k->kernel->segment) continue;
        for (int j = 0; j < k->ops.len; j++) {
            const Op *o = ir_op(f, k->ops.data[j]);
            if (ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or && !space.id) space = o->in[0];
        }
        for (int j = 0; j < k->ops.len && space.id; j++) {
            const Op *o = ir_op(f, k->ops.data[j]);
            for (int r = 0; r < o->n_out; r++)
                lines[o->out[r].id] = !shape_same_matrix(ir_shape(f, o->out[r]), ir_shape(f, space));
        }
    }
    return lines;
}

/* By index of a state: whether a kernel makes its next value as one number per row or column. */
static const bool *find_line_states(const Module *m, const KernelList *lists) {
    bool *found = arena_array(m->arena, bool, m->states.len + 1);
    const Table numbers = number_states(m);
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        const bool *lines = find_lines(&lists[i]);
        for (int j = 0; j < f->body.len; j++) {
            const Op *o = ir_op_at(f, j);
            if (o->code != OP_assign || !lines[o->in[1].id]) continue;
            found[*(const uint32_t *)table_get(&numbers, ir_state_of(f, o->in[0])->name) - 1] = true;
        }
    }
    return found;
}

/* A rank's share of a weight is that of its gradient and its moments. */
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

/* Masters of matrices, and their moments, are stored in panels: a tile of the weight gradient is a tile of its
 * optimizer state. */
static void choose_master_layouts(Module *m, const KernelList *lists) {
    const bool has_tiles = target_of(m)->has_tiles, *lines = find_line_states(m, lists);
    for (int i = 0; i < m->states.len; i++) {
        State *s = m->states.data[i];
        bool trained = s->role == STATE_PARAM || s->role == STATE_MOMENT || s->role == STATE_ACCUMULATOR;
        s->storage = plain_storage(s->dtype);
        bool matrix = s->shape.rank == 2 || s->hwio;
        s->layout = trained && matrix && has_tiles && !lines[i] ? LAYOUT_PANELS : LAYOUT_ROWS;
    }
    store_shares_alike(m);
}

typedef struct Pack { /* a copy of |of| that a product reads in |form| */
    Val of, copy;
    Form form;
} Pack;
typedef VEC(Pack) PackVec;

static Val find_pack(const PackVec *packs, Val of, Form form) {
    for (int i = 0; i < packs->len; i++)
        if (packs->data[i].of.id == of.id && form_equal(packs->data[i].form, form)) return packs->data[i].copy;
    return NO_VAL;
}

/* A copy kernel before kernel |at|; the copy is a cast to the same dtype. */
static Val insert_copy(KernelList *l, int at, Val of, const char *title) {
    Func *f = l->f;
    Kernel *reader = at < l->at.len ? l->at.data[at].kernel : NULL;
    KernelOps *k = kernel_list_insert(l, at, KERNEL_TILE, title, reader ? reader->pos : (Pos){0});
    const char *name = ir_value(f, of)->name;
    Op *o = kernel_list_unary(l, k, 0, OP_cast, of, ir_dtype(f, of), arena_printf(f->module->arena, "%s.packed", name));
    o->path = name;
    o->reason = ir_reason(f->module, "copy");
    return o->out[0];
}

static bool must_pack(const Func *f, Val v, Form form, bool panels, bool is_line) {
    const Value *value = ir_value(f, v);
    bool tiled = target_of(f->module)->has_tiles;
    if (value->kind == VAL_RESULT) /* else its kernel writes the form itself */
        return tiled && form.layout != LAYOUT_ROWS && (!panels || is_line);
    if (value->kind == VAL_INPUT) return !form_equal((Form){LAYOUT_ROWS, value->dtype}, form);
    const State *s = ir_state_of(f, v);
    return !form_equal((Form){s->layout, s->storage}, form);
}

static bool has_op(const KernelOps *k, const Op *o) {
    for (int i = 0; i < k->ops.len; i++)
        if (k->ops.data[i].id == o->id.id) return true;
    return false;
}

/* Where operand |n| of the product is named: by itself, or by the op of its kernel through which it is read first. */
static Val *find_source(const Func *f, const KernelOps *k, const Op *product, int n) {
    Val *from = &product->in[n];
    for (const Op *o = ir_def(f, *from); o && target_moves_on_load(f, o) && has_op(k, o); o = ir_def(f, *from))
        from = &o->in[0];
    return from;
}

/* Attention writes rows: what a product reads is a copy, and from there on everything else reads that, too. */
static void read_copy(KernelList *l, int from, Val v, Val copy) {
    const Op *maker = ir_def(l->f, v);
    if (!maker || !ir_is_attention(maker)) return;
    for (int i = from; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            Op *o = ir_op(l->f, l->at.data[i].ops.data[j]);
            for (int n = 0; n < o->n_in; n++)
                if (o->in[n].id == v.id) o->in[n] = copy;
        }
}

/* Makes the operands of every product available in the form that it reads. */
static void pack_operands(KernelList *l, bool panels) {
    Func *f = l->f;
    PackVec packs = {0};
    bool *lines = find_lines(l);
    const int known = f->values.len;
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            Op *o = ir_op(f, l->at.data[i].ops.data[j]);
            for (int n = 0; n < o->n_in; n++) {
                Form form;
                if (!reads_form(f, o, n, &form)) continue;
                Val *from = find_source(f, &l->at.data[i], o, n), v = *from;
                if (!must_pack(f, v, form, panels, (int)v.id < known && lines[v.id])) continue;
                /* one copy serves all forms: its kernel writes each of them */
                Form key = panels ? (Form){0} : form;
                Val copy = find_pack(&packs, v, key);
                if (!copy.id) {
                    const char *title = arena_printf(f->module->arena, "pack %s", ir_value(f, v)->name);
                    copy = insert_copy(l, i++, v, title);
                    vec_push(f->module->arena, &packs, ((Pack){v, copy, key}));
                }
                *from = copy;
                read_copy(l, i, v, copy);
            }
        }
}

/* A result that is an unchanged input or state needs memory of its own. */
static void copy_plain_results(KernelList *l) {
    Func *f = l->f;
    for (int i = 0; i < f->results.len; i++) {
        Result *r = &f->results.data[i];
        if (ir_value(f, r->value)->kind == VAL_RESULT) continue;
        r->value = insert_copy(l, l->at.len, r->value, arena_printf(f->module->arena, "result %s", r->name));
    }
}

static void order_kernels(Func *f, const Table *state_numbers, bool tiled) {
    make_buffers(f, state_numbers, tiled);
    bool changed = postpone_kernels(f);
    changed |= sequence_kernels(f);
    changed |= merge_columns(f, false);
    changed |= gather_kernels(f);
    changed |= merge_columns(f, true);
    changed |= gather_sums(f);
    changed |= gather_chains(f);
    changed |= merge_scalars(f);
    if (!changed) return;
    f->buffers.len = 0; /* they are numbered in the order of the kernels */
    make_buffers(f, state_numbers, tiled);
}

bool pass_layout(PassContext *c) {
    Module *m = c->m;
    bool panels = !c->options->no_layout;
    int count = m->funcs.len;
    KernelList *lists = arena_array(m->arena, KernelList, count + 1);
    for (int i = 0; i < count; i++) lists[i] = kernel_list_open(m->funcs.data[i]);
    if (panels) {
        choose_master_layouts(m, lists);
        derive_weight_copies(m, lists);
    }
    for (int i = 0; i < count; i++) {
        copy_plain_results(&lists[i]);
        pack_operands(&lists[i], panels);
        kernel_list_drop_dead(&lists[i]);
        kernel_list_close(&lists[i]);
    }
    Table state_numbers = number_states(m);
    bool tiled = panels && target_of(m)->has_tiles;
    for (int i = 0; i < m->funcs.len; i++)
        if (!ir_is_exchange(m->funcs.data[i])) order_kernels(m->funcs.data[i], &state_numbers, tiled);
    order_buckets(m);
    for (int i = 0; i < m->funcs.len; i++)
        if (ir_is_exchange(m->funcs.data[i])) make_buffers(m->funcs.data[i], &state_numbers, tiled);
    return true;
}
