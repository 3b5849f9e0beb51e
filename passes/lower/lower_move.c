/* lower_move.c: ops that move elements and compute nothing, and ops that make tensors from a number or a table. */
#include "passes/lower/lower.h"

/* ---- reshape, expand, permute, slice, pad, concat: the same at both levels --------------------------------------- */

static void move_plain(Lowering *l) {
    Val x = lower_plain(l, l->op->in[0]);
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    lower_give_as(l, 0, l->op->code == OP_expand ? lower_expand(l, x, &s) : lower_reshape(l, x, &s), FORM_PLAIN);
}

/* Dimension i of the result is dims[i] of the graph's x, at its position in x's form. */
static void permute(Lowering *l) {
    Dims dims = ir_attr(l->op, "dims")->dims;
    Val x = lower_given(l, 0);
    for (int i = 0; i < dims.count; i++) dims.at[i] = lower_place_of(l, (int)dims.at[i], dims.count);
    lower_give_as(l, 0, lower_permute(l, x, &dims), FORM_PLAIN);
}

/* Along one dim, in the form that the operands have. */
static void along_dim(Lowering *l) {
    int n = l->op->n_in, rank = ir_shape(l->f, l->op->out[0])->rank;
    Val *in = arena_array(l->f->module->arena, Val, n + 1);
    for (int i = 0; i < n; i++) in[i] = lower_given(l, i);
    Op *o = lower_op_of(l, l->op->code, in, n);
    lower_copy_attrs(l, o);
    ir_attr(o, "dim")->i = lower_place_of(l, ir_dim_attr(l->op, "dim", rank), rank);
    lower_give(l, 0, ir_make_results(l->f, o, ir_dtype(l->f, in[0]), NULL));
}

static void lower_move(Lowering *l) {
    switch (l->op->code) {
    case OP_reshape:
    case OP_expand: move_plain(l); break;
    case OP_permute: permute(l); break;
    default: along_dim(l); break;
    }
}

/* ---- what is a case of those ------------------------------------------------------------------------------------- */

static void give_reshaped(Lowering *l, Val v) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    lower_give(l, 0, lower_reshape(l, v, &s));
}

static void lower_flatten(Lowering *l) { give_reshaped(l, l->op->in[0]); }

static void lower_transpose(Lowering *l) {
    Val x = l->op->in[0], product = NO_VAL;
    int rank = ir_shape(l->f, x)->rank, a = ir_dim_attr(l->op, "a", rank), b = ir_dim_attr(l->op, "b", rank);
    if (a != b) product = lower_transposed_product(l, x);
    if (product.id) {
        lower_give(l, 0, product);
        return;
    }
    Dims dims = {.count = rank};
    for (int i = 0; i < rank; i++) dims.at[i] = i == a ? b : i == b ? a : i;
    lower_give(l, 0, lower_permute(l, x, &dims));
}

/* The operands get a dimension of size 1 and follow one another along it. */
static void lower_stack(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    int dim = ir_dim_attr(l->op, "dim", s.rank), n = l->op->n_in;
    Shape one = s;
    one.d[dim] = dim_const(1);
    Val *in = arena_array(l->f->module->arena, Val, n + 1);
    for (int i = 0; i < n; i++) in[i] = lower_reshape(l, l->op->in[i], &one);
    Op *o = lower_op_of(l, OP_concat, in, n);
    ir_attr(o, "dim")->i = dim;
    lower_give(l, 0, ir_make_results(l->f, o, ir_dtype(l->f, in[0]), NULL));
}

/* ---- from a number or a table ------------------------------------------------------------------------------------ */

static void lower_full(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    Dtype t = ir_dtype(l->f, l->op->out[0]);
    double value = lower_float(l, "value");
    Val v = is_float(t) ? lower_cast(l, lower_number(l, value), t) : lower_number_of(l, value, t);
    lower_give(l, 0, lower_expand(l, v, &s));
}

static void lower_arange(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    lower_give(l, 0, lower_iota(l, lower_expand(l, lower_number_of(l, 0, AMP_DT_I32), &s)));
}

/* The number of |index|, from |from| on and before |to|: halves are chosen by comparisons, equal numbers by none. */
static Val number_at(Lowering *l, Val index, const Numbers *numbers, int from, int to) {
    const Dtype t = ir_dtype(l->f, l->op->out[0]);
    bool same = true;
    for (int i = from + 1; i < to; i++) same = same && !memcmp(&numbers->at[i], &numbers->at[from], sizeof(double));
    if (same) return lower_number_of(l, numbers->at[from], is_float(t) ? AMP_DT_F32 : t);
    const int middle = from + (to - from) / 2;
    Val before = number_at(l, index, numbers, from, middle), after = number_at(l, index, numbers, middle, to);
    return lower_select(l, lower_binary(l, OP_lt, index, lower_number_of(l, middle, AMP_DT_I32)), before, after);
}

static void lower_tensor(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    const Numbers *numbers = ir_attr(l->op, "values")->numbers;
    const Dim count = dim_const(numbers->count);
    const Shape line = shape_of(1, &count);
    const Dtype t = ir_dtype(l->f, l->op->out[0]);
    Val index = lower_iota(l, lower_expand(l, lower_number_of(l, 0, AMP_DT_I32), &line));
    Val v = number_at(l, index, numbers, 0, numbers->count);
    if (is_float(t)) v = lower_cast(l, v, t);
    lower_give(l, 0, lower_reshape(l, lower_expand(l, v, &line), &s));
}

static void lower_embedding(Lowering *l) {
    Val ids = l->op->in[0], table = l->op->in[1];
    lower_give(l, 0, ir_emit(l->f, OP_gather, ir_dtype(l->f, table), NULL, 2, table, ids));
}

static void lower_embedding_grad(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    Val dy = lower_operand(l, 0), ids = l->op->in[1];
    Op *o = lower_op_of(l, OP_scatter, (Val[]){dy, ids}, 2);
    lower_give(l, 0, lower_result_of(l, o, AMP_DT_F32, &s));
}

/* Its operand: what the op is for is over after autodiff. */
static void lower_detach(Lowering *l) { lower_give(l, 0, lower_given(l, 0)); }

const LowerRow lower_move_ops[OP_COUNT] = {
    [OP_reshape] = {lower_move, TAKES_EITHER},       [OP_permute] = {lower_move, TAKES_EITHER},
    [OP_slice] = {lower_move, TAKES_EITHER},         [OP_pad] = {lower_move, TAKES_EITHER},
    [OP_concat] = {lower_move, TAKES_EITHER},        [OP_expand] = {lower_move, TAKES_EITHER},
    [OP_detach] = {lower_detach, TAKES_EITHER},      [OP_flatten] = {lower_flatten, TAKES_PLAIN},
    [OP_barrier] = {lower_detach, .stays = true},    [OP_transpose] = {lower_transpose, TAKES_PLAIN},
    [OP_stack] = {lower_stack, TAKES_PLAIN},         [OP_full] = {lower_full, TAKES_PLAIN},
    [OP_arange] = {lower_arange, TAKES_PLAIN},       [OP_tensor] = {lower_tensor, TAKES_PLAIN},
    [OP_embedding] = {lower_embedding, TAKES_PLAIN}, [OP_embedding_grad] = {lower_embedding_grad, TAKES_PLAIN},
};
