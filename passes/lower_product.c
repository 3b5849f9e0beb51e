/* lower_product.c: products become `contract`, which accumulates in f32; bias and rounding follow in f32. */
#include "passes/lower.h"

static Val contract(Lowering *l, bool ta, bool tb) {
    Op *o = ir_op_new(l->f, OP_contract, l->op->in, 2);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

/* x w^T + b, or x w + b where the weight is stored transposed. */
void lower_linear(Lowering *l) {
    if (ir_shape(l->f, l->op->in[0])->rank != 2) {
        lower_unsupported(l, "x of a rank other than 2");
        return;
    }
    Val y = contract(l, false, !lower_bool(l, "transposed"));
    if (l->op->n_in == 3) y = lower_binary(l, OP_add, y, lower_operand(l, 2));
    lower_give(l, 0, y);
}

void lower_matmul(Lowering *l) { lower_give(l, 0, contract(l, lower_bool(l, "ta"), lower_bool(l, "tb"))); }
