/* gradient_move.c: gradients of ops that move elements: each element of dy goes back to where it came from. */
#include "passes/training/gradient.h"

static int64_t resolved_dim(const Backward *b, const char *attr, int rank) {
    int64_t dim = ir_attr(b->op, attr)->i;
    return dim < 0 ? dim + rank : dim;
}

/* ---- the same elements in another order or shape ----------------------------------------------------------------- */

static bool gradient_reshape(Backward *b) {
    backward_give(b, 0, backward_reshape(b, b->dy, *grad_shape(b, grad_operand(b, 0))));
    return true;
}

static bool gradient_transpose(Backward *b) {
    Op *o = backward_op(b, OP_transpose, b->dy, NO_VAL);
    grad_copy_attr(b, o, "a");
    grad_copy_attr(b, o, "b");
    return grad_give_first(b, o, grad_type(b, b->dy));
}

static bool gradient_permute(Backward *b) {
    const Dims *forth = &ir_attr(b->op, "dims")->dims;
    Op *o = backward_op(b, OP_permute, b->dy, NO_VAL);
    Dims *back = &ir_attr(o, "dims")->dims;
    back->count = forth->count;
    for (int i = 0; i < forth->count; i++) back->at[forth->at[i] < 0 ? forth->at[i] + forth->count : forth->at[i]] = i;
    return grad_give_first(b, o, grad_type(b, b->dy));
}

/* backward_give sums what was repeated. */
static bool gradient_expand(Backward *b) {
    backward_give(b, 0, b->dy);
    return true;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static Val slice(Backward *b, Val v, int64_t dim, int64_t from, int64_t to) {
    Op *o = backward_op(b, OP_slice, v, NO_VAL);
    ir_attr(o, "dim")->i = dim;
    ir_attr(o, "from")->i = from;
    ir_attr(o, "to")->i = to;
    return backward_result(b, o, grad_type(b, v));
}

/* Zeros where x was cut off. */
static bool gradient_slice(Backward *b) {
    const Shape *x = grad_shape(b, grad_operand(b, 0));
    int64_t dim = resolved_dim(b, "dim", x->rank), size = x->d[dim].mul, from = ir_attr(b->op, "from")->i;
    if (from < 0) from += size;
    Op *o = backward_op(b, OP_pad, b->dy, NO_VAL);
    ir_attr(o, "dim")->i = dim;
    ir_attr(o, "before")->i = from;
    ir_attr(o, "after")->i = size - from - grad_shape(b, grad_y(b))->d[dim].mul;
    return grad_give_first(b, o, grad_type(b, b->dy));
}

static bool gradient_pad(Backward *b) {
    const Shape *x = grad_shape(b, grad_operand(b, 0));
    int64_t dim = resolved_dim(b, "dim", x->rank), from = ir_attr(b->op, "before")->i;
    backward_give(b, 0, slice(b, b->dy, dim, from, from + x->d[dim].mul));
    return true;
}

static bool gradient_concat(Backward *b) {
    int64_t dim = resolved_dim(b, "dim", grad_shape(b, grad_y(b))->rank), from = 0;
    for (int i = 0; i < b->op->n_in; i++) {
        int64_t to = from + grad_shape(b, grad_operand(b, i))->d[dim].mul;
        if (backward_wants(b, i)) backward_give(b, i, slice(b, b->dy, dim, from, to));
        from = to;
    }
    return true;
}

static bool gradient_stack(Backward *b) {
    int64_t dim = resolved_dim(b, "dim", grad_shape(b, grad_y(b))->rank);
    for (int i = 0; i < b->op->n_in; i++) {
        if (!backward_wants(b, i)) continue;
        Val part = slice(b, b->dy, dim, i, i + 1);
        backward_give(b, i, backward_reshape(b, part, *grad_shape(b, grad_operand(b, i))));
    }
    return true;
}

/* Rows of dy are added up by id. */
static bool gradient_embedding(Backward *b) {
    Val ids = grad_operand(b, 0), table = grad_operand(b, 1);
    if (backward_wants(b, 1))
        backward_give(b, 1, backward_emit(b, OP_embedding_grad, grad_type_of(b, 1), 3, b->dy, ids, table));
    return true;
}

const Gradient gradient_move_ops[OP_COUNT] = {
    [OP_reshape] = {gradient_reshape},
    [OP_flatten] = {gradient_reshape},
    [OP_transpose] = {gradient_transpose},
    [OP_permute] = {gradient_permute},
    [OP_expand] = {gradient_expand},
    [OP_slice] = {gradient_slice},
    [OP_pad] = {gradient_pad},
    [OP_concat] = {gradient_concat},
    [OP_stack] = {gradient_stack},
    [OP_embedding] = {gradient_embedding, {"ids", "table"}},
};
