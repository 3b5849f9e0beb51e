/* fuse_moves.c: movement that together does nothing.
 *
 *     %a = reshape(%m) : f32[N, T, 4, 24]
 *     %h = permute(%a; dims = (0, 2, 1, 3))     heads as attention gives them
 *     %b = permute(%h; dims = (0, 2, 1, 3))                                       =>     %m
 *     %z = reshape(%b) : f32[N, T, 96]
 *
 * A value that is dense and in the order of what it was moved from is a reshape of that, or the same value; but not
 * across a barrier, after which movement was asked for again.
 */
#include "passes/kernels/fuse.h"

typedef struct Moves {
    Func *f;
    const Op **barriers; /* by op id: what it waits for */
    Strided *at;         /* by value id: of what movement makes; source 0: it was not moved, or by no strides */
    Val *is;             /* by value id: what it has become; NO_VAL: itself */
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
    const bool moved = m->at[from.id].source.id != 0 && !m->barriers[o->id.id];
    if ((!moved && !ir_strided_dense(m->f, from, &dense)) ||
        !ir_strided_result(m->f, o, moved ? &m->at[from.id] : &dense, x)) {
        *x = (Strided){0};
        return;
    }
    if (!moved || is_result[to.id] || !is_dense(m->f, to, x)) return;
    if (shape_equal(&x->shape, ir_shape(m->f, x->source))) m->is[to.id] = x->source;
    else if (o->code == OP_permute || o->code == OP_reshape) { /* neither has operands but this one */
        o->code = OP_reshape;
        o->attr = NULL;
        o->in[0] = x->source;
    }
}

/* Movement that nothing reads is gone. */
static void drop_unread(Func *f, bool *read) {
    int kept = f->body.len;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        if (ir_moves_by_stride(o) && !read[o->out[0].id]) continue;
        for (int n = 0; n < o->n_in; n++) read[o->in[n].id] = true;
        read[o->pred.id] = true;
        f->body.data[--kept] = o->id;
    }
    f->body.len -= kept;
    for (int i = 0; i < f->body.len; i++) f->body.data[i] = f->body.data[kept + i];
}

void fuse_cancel_moves(Func *f, const Op **barriers) {
    if (!target_of(f->module)->reads_strides) return;
    Arena *a = arena_child(f->module->arena);
    Moves m = {f, barriers, arena_array(a, Strided, f->values.len + 1), arena_array(a, Val, f->values.len + 1)};
    bool *is_result = arena_array(a, bool, f->values.len + 1), any = false;
    for (int i = 0; i < f->results.len; i++) is_result[f->results.data[i].value.id] = true;
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) o->in[n] = current(&m, o->in[n]);
        o->pred = current(&m, o->pred);
        if (ir_moves_by_stride(o)) see_move(&m, o, is_result);
        any = any || ir_moves_by_stride(o);
    }
    if (any) drop_unread(f, is_result);
    arena_free(a);
}

/* ---- views in front of products ---------------------------------------------------------------------------------- */

/* A product that sums over rows takes them in any number of dimensions: it needs no other view of them. */
static bool read_behind_views(const Func *f, const Op **barriers, Op *o) {
    bool any = false;
    if (o->code != OP_contract || !ir_attr(o, "ta")->b || ir_attr(o, "tb")->b) return false;
    for (int n = 0; n < 2; n++)
        for (const Op *view; (view = ir_def(f, o->in[n])) && view->code == OP_reshape && ir_is_view(f, view) &&
                             ir_shape(f, view->in[0])->rank > 1 && !barriers[view->id.id];) {
            o->in[n] = view->in[0];
            any = true;
        }
    return any;
}

void fuse_read_behind_views(Func *f, const Op **barriers) {
    bool any = false;
    if (!target_of(f->module)->reads_strides) return;
    for (int i = 0; i < f->body.len; i++) any |= read_behind_views(f, barriers, ir_op_at(f, i));
    if (!any) return;
    bool *is_result = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) is_result[f->results.data[i].value.id] = true;
    drop_unread(f, is_result);
}
