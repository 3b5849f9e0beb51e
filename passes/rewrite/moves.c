/* moves.c: movement that together does nothing: the passes cancel_moves and drop_views.
 *
 *     %a = reshape(%m) : f32[N, T, 4, 24]
 *     %h = permute(%a; dims = (0, 2, 1, 3))     heads as attention gives them
 *     %b = permute(%h; dims = (0, 2, 1, 3))                                       =>     %m
 *     %z = reshape(%b) : f32[N, T, 96]
 *
 * A value that is dense and in the order of what it was moved from is a reshape of that, or the same value; but not
 * across a barrier, after which movement was asked for again.  Nor does a product need views around it:
 *
 *     %r = reshape(%x) : f16[128 * N, 768]
 *     %y = contract(%r, %w) : f32[128 * N, 96]          =>     %y = contract(%x, %w) : f32[N, 128, 96]
 *     %z = reshape(%y) : f32[N, 128, 96]
 */
#include "ir/strided.h"
#include "passes/common/common.h"
#include "targets/target.h"

typedef struct Moves {
    Func *f;
    Strided *at; /* by value id: of what movement makes; source 0: it was not moved, or by no strides */
    Val *is;     /* by value id: what it has become; NO_VAL: itself */
} Moves;

static Val current(const Moves *m, Val v) { return m->is[v.id].id ? m->is[v.id] : v; }

/* |x| is in the order of its source. */
static bool is_dense(const Func *f, Val v, const Strided *x) {
    Strided dense;
    if (x->offset || !ir_strided_dense(f, v, &dense)) return false;
    Dim count, whole;
    bool same =
        shape_count(&x->shape, &count) && shape_count(ir_shape(f, x->source), &whole) && dim_equal(count, whole);
    for (int i = 0; i < x->shape.rank && same; i++)
        same = dim_is_one(x->shape.d[i]) || dim_equal(x->stride[i], dense.stride[i]);
    return same;
}

static void see_move(Moves *m, Op *o, const bool *is_result) {
    const Val from = o->in[0], to = o->out[0];
    Strided dense, *x = &m->at[to.id];
    const bool moved = m->at[from.id].source.id != 0 && !o->after;
    if ((!moved && !ir_strided_dense(m->f, from, &dense)) ||
        !ir_strided_result(m->f, o, moved ? &m->at[from.id] : &dense, x)) {
        *x = (Strided){0};
        return;
    }
    if (!moved || is_result[to.id] || !is_dense(m->f, to, x)) return;
    if (shape_same(&x->shape, ir_shape(m->f, x->source))) m->is[to.id] = x->source;
    else if (o->code == OP_permute || o->code == OP_reshape) { /* neither has operands but this one */
        o->code = OP_reshape;
        o->attr = NULL;
        o->in[0] = x->source;
    }
}

static void cancel_moves(Func *f) {
    Arena *a = arena_child(f->module->arena);
    Moves m = {f, arena_array(a, Strided, f->values.len + 1), arena_array(a, Val, f->values.len + 1)};
    const bool *is_result = ir_results(f, a);
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) o->in[n] = current(&m, o->in[n]);
        o->pred = current(&m, o->pred);
        if (ir_moves_by_stride(o)) see_move(&m, o, is_result);
    }
    arena_free(a);
}

bool pass_cancel_moves(PassContext *c) { return each_func(c, cancel_moves); }

/* ---- views around products --------------------------------------------------------------------------------------- */

/* The op that makes |v| as other dims of the same rows; NULL: none does. */
static const Op *view_of_rows(const Moves *m, Val v) {
    const Op *o = ir_def(m->f, v);
    bool is_view = o && o->code == OP_reshape && ir_is_view(m->f, o) && !o->after;
    return is_view && ir_shape(m->f, o->in[0])->rank > 1 ? o : NULL;
}

/* A product that sums over rows takes them in any number of dimensions: it needs no other view of them. */
static void sum_without_views(const Moves *m, Op *o) {
    if (o->code != OP_contract || !ir_attr(o, "ta")->b || ir_attr(o, "tb")->b) return;
    for (int n = 0; n < 2; n++)
        for (const Op *view; (view = view_of_rows(m, o->in[n]));) o->in[n] = view->in[0];
}

/* The product of rows that makes |v|, seen through casts, where each value on the way has one reader; or NULL. */
static Op *product_behind(const Moves *m, const int *uses, Val v) {
    Op *o = ir_def(m->f, v);
    for (; o && o->code == OP_cast && uses[v.id] == 1; o = ir_def(m->f, v)) v = o->in[0];
    return o && o->code == OP_contract && !ir_attr(o, "ta")->b && uses[v.id] == 1 ? o : NULL;
}

/* Rows in dims that a view makes of them, and a view that gives the result the dims which they had: neither is needed,
 * for a product has its rows' dims.  The last one may be of casts of the result. */
static void multiply_without_views(Moves *m, const int *uses, const bool *is_result, const Op *last) {
    if (!last->n_out || is_result[last->out[0].id] || view_of_rows(m, last->out[0]) != last) return;
    Op *product = product_behind(m, uses, last->in[0]);
    const Op *first = product ? view_of_rows(m, product->in[0]) : NULL;
    if (!first) return;
    const Shape *made = ir_shape(m->f, product->out[0]);
    Shape s = *ir_shape(m->f, first->in[0]);
    s.d[s.rank - 1] = made->d[made->rank - 1];
    if (!shape_equal(&s, ir_shape(m->f, last->out[0]))) return;
    for (Val v = last->in[0]; v.id != product->out[0].id; v = ir_def(m->f, v)->in[0]) ir_value(m->f, v)->shape = s;
    ir_value(m->f, product->out[0])->shape = s;
    product->in[0] = first->in[0];
    m->is[last->out[0].id] = last->in[0];
}

static void drop_views(Func *f) {
    Arena *a = arena_child(f->module->arena);
    Moves m = {.f = f, .is = arena_array(a, Val, f->values.len + 1)};
    const bool *is_result = ir_results(f, a);
    const int *uses = ir_use_counts(f, a);
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) o->in[n] = current(&m, o->in[n]);
        o->pred = current(&m, o->pred);
        sum_without_views(&m, o);
        multiply_without_views(&m, uses, is_result, o);
    }
    arena_free(a);
}

bool pass_drop_views(PassContext *c) { return each_func(c, drop_views); }
