/* batch_moves.c: concat and slice along a dimension that depends on N.  Sizes there are multiples of a common part of
 * N, which becomes a dimension of its own, so that what is put together or cut is counted by numbers:
 *
 *     concat(a, b; dim = 0), [N, 4] and [2 * N, 4]
 *         reshape(a) : [1, N, 4]   reshape(b) : [2, N, 4]   concat(..; dim = 0) : [3, N, 4]   reshape : [3 * N, 4]
 */
#include "frontend/elaborate.h"

/* ---- parts of N -------------------------------------------------------------------------------------------------- */

typedef struct Parts {
    Dim unit;       /* the largest part of N that all sizes are multiples of */
    int64_t *count; /* by size */
} Parts;

/* Of sizes that depend on N, or are 0; false on overflow. */
static bool find_parts(Elab *e, const Dim *sizes, int n, Parts *out) {
    int64_t all = 1, common = 0;
    out->count = arena_array(e->a, int64_t, n + 1);
    for (int i = 0; i < n; i++)
        if (sizes[i].n && __builtin_mul_overflow(all / greatest_common_divisor(all, sizes[i].div), sizes[i].div, &all))
            return false;
    for (int i = 0; i < n; i++) {
        if (!sizes[i].n) continue;
        if (__builtin_mul_overflow(sizes[i].mul, all / sizes[i].div, &out->count[i])) return false;
        common = greatest_common_divisor(out->count[i], common);
    }
    for (int i = 0; i < n && common; i++) out->count[i] /= common;
    out->unit = dim_n(common, all);
    return common > 0;
}

/* [.., k * unit, ..] as [.., k, unit, ..] */
static Shape split_shape(const Shape *s, int dim, int64_t count, Dim unit) {
    Shape out = *s;
    for (int i = out.rank++; i > dim; i--) out.d[i] = out.d[i - 1];
    out.d[dim] = dim_const(count);
    out.d[dim + 1] = unit;
    return out;
}

static Val reshaped(Elab *e, Loc loc, Val v, Shape s) {
    Op *o = ir_op_new(e->f, OP_reshape, &v, 1);
    ir_result(e->f, o, NULL, ir_dtype(e->f, v), s);
    Item item = elab_emit(e, loc, o, &loc);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

/* |v| has the shape |s| but for the dimensions |dim| and the next one, which become one again. */
static Item joined(Elab *e, Loc loc, const Item *v, Shape s, int dim, int64_t count, Dim unit) {
    if (v->kind != ITEM_TENSOR || !dim_mul(unit, dim_const(count), &s.d[dim])) return ERROR_ITEM;
    Val whole = reshaped(e, loc, v->tensor, s);
    return whole.id ? item_tensor(whole) : ERROR_ITEM;
}

/* ---- what is wrong ----------------------------------------------------------------------------------------------- */

static Item wrong(Elab *e, const BatchMove *m, const char *what) {
    Diag *diag = elab_error(e, m->loc, "%s: %s", ir_op_info[m->o->code].name, what);
    for (int i = 0; i < m->o->n_in; i++) elab_note_operand(e, diag, m->o->in[i], m->operands[i]);
    elab_note_calls(e, diag);
    return ERROR_ITEM;
}

/* NULL where all is well. */
static const char *find_misfit(const Elab *e, const BatchMove *m) {
    const Shape *first = ir_shape(e->f, m->o->in[0]);
    if (first->rank == MAX_RANK) return "along the batch tensors may have at most 7 dimensions";
    for (int i = 0; i < m->o->n_in; i++) {
        const Shape *s = ir_shape(e->f, m->o->in[i]);
        if (s->rank != first->rank) return "ranks differ";
        if (!s->d[m->dim].n) return "the dimension depends on the batch N in some of the tensors, but not in all";
        for (int d = 0; d < s->rank; d++)
            if (d != m->dim && !dim_equal(s->d[d], first->d[d]))
                return "the dimensions must be equal, except the one along which tensors are joined";
    }
    return NULL;
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

Item elab_concat_batch(Elab *e, const BatchMove *m) {
    const char *misfit = find_misfit(e, m);
    if (misfit) return wrong(e, m, misfit);
    int n = m->o->n_in;
    Dim *sizes = arena_array(e->a, Dim, n + 1);
    Val *in = arena_array(e->a, Val, n + 1);
    Parts parts;
    int64_t count = 0;
    for (int i = 0; i < n; i++) sizes[i] = ir_shape(e->f, m->o->in[i])->d[m->dim];
    if (!find_parts(e, sizes, n, &parts)) return wrong(e, m, "the sizes are not multiples of one part of N");
    for (int i = 0; i < n; i++) {
        in[i] = reshaped(e, m->loc, m->o->in[i],
                         split_shape(ir_shape(e->f, m->o->in[i]), m->dim, parts.count[i], parts.unit));
        if (!in[i].id) return ERROR_ITEM;
        count += parts.count[i];
    }
    Op *o = ir_op_new(e->f, OP_concat, in, n);
    ir_attr(o, "dim")->i = m->dim;
    Item all = elab_emit(e, m->loc, o, m->operands);
    return joined(e, m->loc, &all, *ir_shape(e->f, m->o->in[0]), m->dim, count, parts.unit);
}

Item elab_slice_batch(Elab *e, const BatchMove *m, Dim from, Dim to) {
    const Shape s = *ir_shape(e->f, m->o->in[0]);
    Dim sizes[] = {s.d[m->dim], from, to};
    Parts parts;
    const char *misfit = find_misfit(e, m);
    if (misfit) return wrong(e, m, misfit);
    if (!find_parts(e, sizes, 3, &parts)) return wrong(e, m, "from and to are not multiples of one part of N");
    if (parts.count[1] >= parts.count[2] || parts.count[2] > parts.count[0])
        return wrong(e, m, "from..to is not within the dimension");
    Val x = reshaped(e, m->loc, m->o->in[0], split_shape(&s, m->dim, parts.count[0], parts.unit));
    if (!x.id) return ERROR_ITEM;
    Op *o = ir_op_new(e->f, OP_slice, &x, 1);
    ir_attr(o, "dim")->i = m->dim;
    ir_attr(o, "from")->i = parts.count[1];
    ir_attr(o, "to")->i = parts.count[2];
    Item part = elab_emit(e, m->loc, o, m->operands);
    return joined(e, m->loc, &part, s, m->dim, parts.count[2] - parts.count[1], parts.unit);
}
