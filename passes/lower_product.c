/* lower_product.c: products become `contract`, which accumulates in f32; bias and rounding follow in f32. */
#include "passes/lower.h"

static Val contract(Lowering *l, Val a, bool ta, Val b, bool tb) {
    Op *o = ir_op_new(l->f, OP_contract, (Val[]){a, b}, 2);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

/* x w^T + b, or x w + b where the weight is stored transposed; x [..., in] is a matrix of rows. */
void lower_linear(Lowering *l) {
    Val y = contract(l, l->op->in[0], false, l->op->in[1], !lower_bool(l, "transposed"));
    if (l->op->n_in == 3) y = lower_add(l, y, lower_operand(l, 2));
    lower_give(l, 0, y);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

static Val transposed(Lowering *l, Val v) {
    int rank = ir_shape(l->f, v)->rank;
    Dims dims = {.count = rank};
    for (int i = 0; i < rank; i++) dims.at[i] = i;
    dims.at[rank - 2] = rank - 1;
    dims.at[rank - 1] = rank - 2;
    return lower_permute(l, v, &dims);
}

/* The operand as [B..., rows, cols] with the result's leading dims B. */
static Val batched(Lowering *l, Val v, bool is_transposed, const Shape *result) {
    if (is_transposed) v = transposed(l, v);
    const Shape *own = ir_shape(l->f, v);
    Shape s = *result;
    s.d[s.rank - 2] = own->d[own->rank - 2];
    s.d[s.rank - 1] = own->d[own->rank - 1];
    return lower_expand(l, v, &s);
}

static Val batch_contract(Lowering *l, bool ta, bool tb) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    Val a = batched(l, l->op->in[0], ta, &s), b = batched(l, l->op->in[1], tb, &s);
    return ir_emit(l->f, OP_batch_contract, AMP_DT_F32, NULL, 2, a, b);
}

/* Matrices, or rows of any rank times one matrix, are one product; else one for each of the leading dims. */
void lower_matmul(Lowering *l) {
    bool ta = lower_bool(l, "ta"), tb = lower_bool(l, "tb");
    int rank_a = ir_shape(l->f, l->op->in[0])->rank, rank_b = ir_shape(l->f, l->op->in[1])->rank;
    bool one_product = rank_b == 2 && (rank_a == 2 || !ta);
    Val y = one_product ? contract(l, l->op->in[0], ta, l->op->in[1], tb) : batch_contract(l, ta, tb);
    lower_give(l, 0, y);
}
