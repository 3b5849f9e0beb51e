/* lower_product.c: products become `contract`, which accumulates in f32; bias and rounding follow in f32. */
#include "passes/lower/lower.h"

static Val contract(Lowering *l, Val a, bool ta, Val b, bool tb) {
    Op *o = ir_op_new(l->f, OP_contract, (Val[]){a, b}, 2);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

/* x w^T + b, or x w + b where the weight is stored transposed; x [..., in] is a matrix of rows. */
static void lower_linear(Lowering *l) {
    Val y = contract(l, l->op->in[0], false, l->op->in[1], !lower_bool(l, "transposed"));
    if (l->op->n_in == 3) y = lower_add(l, y, lower_operand(l, 2));
    lower_give(l, 0, y);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

/* The op that made v by exchanging the dimensions of a matrix, or NULL. */
static const Op *exchange_behind(const Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    bool is_exchange = o && o->code == OP_permute && ir_shape(l->f, v)->rank == 2;
    return is_exchange ? o : NULL;
}

/* A product reads a transposed matrix where it lies, also through a cast: the matrix, and whether it is transposed. */
static Val untransposed(Lowering *l, Val v, bool *is_transposed) {
    const Op *o = ir_def(l->f, v), *cast = o && o->code == OP_cast ? o : NULL;
    const Op *exchange = exchange_behind(l, cast ? cast->in[0] : v);
    if (!exchange) return v;
    *is_transposed = !*is_transposed;
    if (!cast) return exchange->in[0];
    Val *shared = lower_memo(l, "cast %u of %u", cast->out[0].id, exchange->in[0].id);
    if (!shared->id) {
        *shared = lower_cast(l, exchange->in[0], ir_dtype(l->f, v));
        Op *made = ir_def(l->f, *shared);
        if (made) made->reason = cast->reason;
    }
    return *shared;
}

/* (A B)^T = B^T A^T: the transpose of a product that nobody else reads is a product, with the same sums in the same
 * order. NO_VAL where it cannot be. */
Val lower_transposed_product(Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    if (o && o->code == OP_cast) o = ir_def(l->f, o->in[0]);
    if (!o || o->code != OP_contract || ir_shape(l->f, v)->rank != 2) return NO_VAL;
    if (lower_readers(l, v) > 1 || lower_readers(l, o->out[0]) > 1) return NO_VAL;
    bool ta = !ir_attr(o, "tb")->b, tb = !ir_attr(o, "ta")->b;
    bool matrices = ir_shape(l->f, o->in[0])->rank == 2 && ir_shape(l->f, o->in[1])->rank == 2;
    return matrices || (ta && !tb) ? contract(l, o->in[1], ta, o->in[0], tb) : NO_VAL;
}

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
static void lower_matmul(Lowering *l) {
    bool ta = lower_bool(l, "ta"), tb = lower_bool(l, "tb");
    int rank_a = ir_shape(l->f, l->op->in[0])->rank, rank_b = ir_shape(l->f, l->op->in[1])->rank;
    if (rank_b > 2 || (rank_a > 2 && ta)) {
        lower_give(l, 0, batch_contract(l, ta, tb));
        return;
    }
    Val a = rank_a == 2 ? untransposed(l, l->op->in[0], &ta) : l->op->in[0];
    Val b = untransposed(l, l->op->in[1], &tb);
    lower_give(l, 0, contract(l, a, ta, b, tb));
}

const LowerRow lower_product_ops[OP_COUNT] = {
    [OP_linear] = {lower_linear, TAKES_PLAIN},
    [OP_matmul] = {lower_matmul, TAKES_PLAIN},
};
