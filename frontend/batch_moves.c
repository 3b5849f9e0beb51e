/* batch_moves.c: concat and slice along a dimension that depends on N or T.  Sizes there are multiples of a common part
 * of N, or of T, which becomes a dimension of its own, so that what is put together or cut is counted by numbers:
 *
 *     concat(a, b; dim = 0), [N, 4] and [2 * N, 4]
 *         reshape(a) : [1, N, 4]   reshape(b) : [2, N, 4]   concat(..; dim = 0) : [3, N, 4]   reshape : [3 * N, 4]
 */
#include "frontend/elaborate.h"

/* ---- parts of N or T --------------------------------------------------------------------------------------------- */

typedef struct Parts {
    Dim unit;       /* the largest part of N, of T, or of their product, that all sizes are multiples of */
    int64_t *count; /* by size */
} Parts;

/* T in place of its number, and back. */
static Dim with_t(Dim d) {
    Dim t = {.mul = d.mul, .div = dim_varies(d) ? d.div : 1, .n = d.n, .t = (uint8_t)(d.t + d.sized)};
    t.div *= dim_given(d);
    return dim_varies(t) ? dim_divided(t, 1) : d;
}

static Dim with_number(Dim d, Dim like) {
    Dim all = {.mul = d.mul, .div = d.div, .n = d.n};
    if (!like.sized) return d;
    all = dim_varies(all) ? all : dim_const(d.mul);
    for (int i = 0; i < d.t; i++) dim_mul(all, dim_sized(like.number), &all);
    return dim_varies(all) ? all : dim_divided(all, d.div);
}

/* Of sizes that vary, or are 0; false on overflow, and where they depend on different ones. */
static bool find_parts(Elab *e, const Dim *sizes, int n, Parts *out) {
    int64_t all = 1, common = 0;
    out->count = arena_array(e->a, int64_t, n + 1);
    out->unit = sizes[0];
    for (int i = 0; i < n; i++) {
        if (!dim_varies(sizes[i])) continue;
        if (sizes[i].n != sizes[0].n || sizes[i].t != sizes[0].t) return false;
        if (__builtin_mul_overflow(all / greatest_common_divisor(all, sizes[i].div), sizes[i].div, &all)) return false;
    }
    for (int i = 0; i < n; i++) {
        if (!dim_varies(sizes[i])) continue;
        if (__builtin_mul_overflow(sizes[i].mul, all / sizes[i].div, &out->count[i])) return false;
        common = greatest_common_divisor(out->count[i], common);
    }
    for (int i = 0; i < n && common; i++) out->count[i] /= common;
    out->unit.mul = common;
    out->unit.div = 1;
    if (common) out->unit = dim_divided(out->unit, all);
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

static bool is_along_t(const Elab *e, const BatchMove *m);

static Item wrong(Elab *e, const BatchMove *m, const char *what) {
    Diag *diag = elab_error(e, m->loc, "%s: %s", ir_op_info[m->o->code].name, what);
    if (is_along_t(e, m)) elab_help_one_length(e, diag);
    for (int i = 0; i < m->o->n_in; i++) elab_note_operand(e, diag, m->o->in[i], m->operands[i]);
    elab_note_calls(e, diag);
    return ERROR_ITEM;
}

static bool is_along_t(const Elab *e, const BatchMove *m) {
    for (int i = 0; i < m->o->n_in; i++) {
        const Shape *s = ir_shape(e->f, m->o->in[i]);
        if (s->rank > m->dim && dim_varies(s->d[m->dim])) return !s->d[m->dim].n;
    }
    return false;
}

/* NULL where all is well. */
static const char *find_misfit(const Elab *e, const BatchMove *m) {
    const Shape *first = ir_shape(e->f, m->o->in[0]);
    const bool along_t = is_along_t(e, m);
    if (first->rank == MAX_RANK)
        return along_t ? "along T tensors may have at most 7 dimensions"
                       : "along the batch tensors may have at most 7 dimensions";
    for (int i = 0; i < m->o->n_in; i++) {
        const Shape *s = ir_shape(e->f, m->o->in[i]);
        if (s->rank != first->rank) return "ranks differ";
        if (!dim_is_sized(s->d[m->dim]))
            return along_t ? "the dimension depends on the size T in some of the tensors, but not in all"
                           : "the dimension depends on the batch N in some of the tensors, but not in all";
        for (int d = 0; d < s->rank; d++)
            if (d != m->dim && !dim_equal(s->d[d], first->d[d]))
                return "the dimensions must be equal, except the one along which tensors are joined";
    }
    return NULL;
}

static const char *misfit_of_sizes(const Elab *e, Dim size, const char *what) {
    return arena_printf(e->a, "%s not multiples of one part of %s", what, size.n ? "N" : "T");
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
    for (int i = 0; i < n; i++) sizes[i] = with_t(ir_shape(e->f, m->o->in[i])->d[m->dim]);
    if (!find_parts(e, sizes, n, &parts)) return wrong(e, m, misfit_of_sizes(e, sizes[0], "the sizes are"));
    parts.unit = with_number(parts.unit, ir_shape(e->f, m->o->in[0])->d[m->dim]);
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
    const Dim sizes[] = {with_t(s.d[m->dim]), with_t(from), with_t(to)};
    Parts parts;
    const char *misfit = find_misfit(e, m);
    if (misfit) return wrong(e, m, misfit);
    if (!find_parts(e, sizes, 3, &parts)) return wrong(e, m, misfit_of_sizes(e, s.d[m->dim], "from and to are"));
    parts.unit = with_number(parts.unit, s.d[m->dim]);
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

/* A slice from 0 to a size, of a dimension that is a number: its first elements are rows of a table. */
Item elab_slice_to_size(Elab *e, const BatchMove *m, Dim to) {
    const Shape s = *ir_shape(e->f, m->o->in[0]);
    Shape flat = shape_of(2, (Dim[]){s.d[0], dim_const(1)}), part = s;
    for (int i = 1; i < s.rank; i++)
        if (dim_varies(s.d[i]) || !dim_mul(flat.d[1], s.d[i], &flat.d[1]))
            return wrong(e, m, "the other dimensions must be numbers");
    part.d[0] = to;
    Op *places = ir_op_new(e->f, OP_arange, NULL, 0);
    ir_result(e->f, places, NULL, AMP_DT_I32, shape_of(1, &to));
    const Item at = elab_emit(e, m->loc, places, m->operands);
    const Val table = s.rank == 2 ? m->o->in[0] : reshaped(e, m->loc, m->o->in[0], flat);
    if (at.kind != ITEM_TENSOR || !table.id) return ERROR_ITEM;
    Op *taken = ir_op_new(e->f, OP_embedding, (Val[]){at.tensor, table}, 2);
    const Item rows = elab_emit(e, m->loc, taken, m->operands);
    if (rows.kind != ITEM_TENSOR || s.rank == 2) return rows;
    const Val shaped = reshaped(e, m->loc, rows.tensor, part);
    return shaped.id ? item_tensor(shaped) : ERROR_ITEM;
}

/* |x| where |places| is |at|, and 0 elsewhere, summed along the dimension. */
static Item element_at(Elab *e, const BatchMove *m, Val places, int64_t at) {
    const Item index = item_int(at), zero = {.kind = ITEM_FLOAT};
    Val in[3] = {places}, x = m->o->in[0];
    const Item items[] = {item_tensor(places), index};
    if (!elab_take_operands(e, OP_eq, "v", items, (Loc[]){m->loc, m->loc}, 2, in)) return ERROR_ITEM;
    const Item here = elab_emit(e, m->loc, ir_op_new(e->f, OP_eq, in, 2), m->operands);
    in[0] = here.tensor, in[1] = x, in[2] = elab_as_tensor(e, m->loc, &zero);
    if (here.kind != ITEM_TENSOR || !in[2].id) return ERROR_ITEM;
    const Item chosen = elab_emit(e, m->loc, ir_op_new(e->f, OP_where, in, 3), m->operands);
    if (chosen.kind != ITEM_TENSOR) return ERROR_ITEM;
    Op *sum = ir_op_new(e->f, OP_sum, &chosen.tensor, 1);
    ir_attr(sum, "dims")->dims = (Dims){1, {m->dim}};
    ir_attr(sum, "keep")->b = true;
    return elab_emit(e, m->loc, sum, m->operands);
}

Item elab_slice_places(Elab *e, const BatchMove *m, int64_t from, int64_t to) {
    const Shape *s = ir_shape(e->f, m->o->in[0]);
    Shape along = {.rank = s->rank - m->dim, .d = {s->d[m->dim]}};
    for (int i = 1; i < along.rank; i++) along.d[i] = dim_const(1);
    Op *arange = ir_op_new(e->f, OP_arange, NULL, 0);
    ir_result(e->f, arange, NULL, AMP_DT_I32, shape_of(1, &s->d[m->dim]));
    const Item numbers = elab_emit(e, m->loc, arange, m->operands);
    const Val places = numbers.kind == ITEM_TENSOR ? reshaped(e, m->loc, numbers.tensor, along) : NO_VAL;
    Val *in = arena_array(e->a, Val, to - from);
    for (int64_t i = from; i < to; i++) {
        const Item item = places.id ? element_at(e, m, places, i) : ERROR_ITEM;
        if (item.kind != ITEM_TENSOR) return ERROR_ITEM;
        in[i - from] = item.tensor;
    }
    if (to - from == 1) return item_tensor(in[0]);
    Op *all = ir_op_new(e->f, OP_concat, in, (int)(to - from));
    ir_attr(all, "dim")->i = m->dim;
    return elab_emit(e, m->loc, all, m->operands);
}
