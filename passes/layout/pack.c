/* pack.c: copies of what is not stored in the form in which it is read (docs/design/kernels.md): the passes
 * copy_results and pack.
 *
 *   kernel k02 product {                              kernel k02 tile "pack x.h" {
 *     %3 = contract(%x.h, %w; tb = true)                %x.h.packed = cast(%x.h)
 *                                                =>   kernel k03 product {
 *                                                       %3 = contract(%x.h.packed, %w; tb = true)
 *
 * In its plain form pack copies each operand of a product just before it, in rows: no other kernel writes tiles.  The
 * bits are the same.
 */
#include "passes/common/common.h"
#include "passes/layout/layout.h"

bool *find_lines(const KernelList *l) {
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
        if ((k->kernel->kind != KERNEL_ROW && k->kernel->kind != KERNEL_COLUMN) || k->kernel->segment.mul) continue;
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
static void pack_operands(Func *f) {
    KernelList list = kernel_list_open(f), *l = &list;
    const bool panels = !f->module->plain[STAGE_PACK];
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
    kernel_list_close(l);
}

bool pass_pack(PassContext *c) { return each_func(c, pack_operands); }

/* The first kernel that assigns |state|, which is read as it was before; the number of kernels: none does. */
static int first_assign(const KernelList *l, Val state) {
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            const Op *o = ir_op(l->f, l->at.data[i].ops.data[j]);
            if (o->code == OP_assign && o->in[0].id == state.id) return i;
        }
    return l->at.len;
}

/* A result that is an unchanged input or state needs memory of its own. */
static void copy_results(Func *f) {
    KernelList list = kernel_list_open(f);
    for (int i = 0; i < f->results.len; i++) {
        Result *r = &f->results.data[i];
        if (ir_value(f, r->value)->kind == VAL_RESULT) continue;
        const char *title = arena_printf(f->module->arena, "result %s", r->name);
        r->value = insert_copy(&list, first_assign(&list, r->value), r->value, title);
    }
    kernel_list_close(&list);
}

bool pass_copy_results(PassContext *c) { return each_func(c, copy_results); }
