/* operators.c: operators on tensors. */
#include "frontend/graph_ops.h"

static const Opcode operator_ops[OPERATOR_COUNT] = {
    [OPERATOR_ADD] = OP_add, [OPERATOR_SUB] = OP_sub, [OPERATOR_MUL] = OP_mul, [OPERATOR_DIV] = OP_div,
    [OPERATOR_NEG] = OP_neg, [OPERATOR_EQ] = OP_eq,   [OPERATOR_NE] = OP_ne,   [OPERATOR_LT] = OP_lt,
    [OPERATOR_LE] = OP_le,   [OPERATOR_GT] = OP_gt,   [OPERATOR_GE] = OP_ge,
};

static bool is_counter(const Elab *e, const Item *item) {
    return item && item->kind == ITEM_TENSOR && ir_dtype(e->f, item->tensor) == AMP_DT_I64;
}

/* Of 64-bit integers there are only counters: COUNTER + 1. */
static Item count_up(Elab *e, const Expr *x, const Item *left, const Item *right) {
    bool is_one = right && right->kind == ITEM_INT && !right->i.n && right->i.mul == 1;
    if (x->operation.op == OPERATOR_ADD && is_counter(e, left) && is_one) {
        Val v = left->tensor;
        return emit_op(e, x->loc, ir_op_new(e->f, OP_increment, &v, 1), &x->operation.left->loc);
    }
    Diag *diag = report(e, x->loc, "an i64 is a counter; all it does is `counter + 1`");
    diag_help(e->d, diag, "to_f32(...) makes it a float");
    return ERROR_ITEM;
}

static bool refuse_logic(Elab *e, const Expr *x) {
    const char *spelling = operator_spelling[x->operation.op];
    Diag *diag = report(e, x->loc, "'%s' joins conditions that are known at compile time, not tensors", spelling);
    diag_help(e->d, diag, "where(c, a, b) chooses by element");
    return false;
}

/* A quotient of integers would need rounding: nobody says which. */
static bool refuse_integers(Elab *e, const Expr *x, const Val *in) {
    if (x->operation.op != OPERATOR_DIV || ir_dtype(e->f, in[0]) != AMP_DT_I32) return true;
    Diag *diag = report(e, x->loc, "'/' takes floats; this is i32");
    diag_help(e->d, diag, "convert it: to_f32(%s)", loc_text(e->a, x->operation.left->loc));
    return false;
}

Item tensor_operation(Elab *e, const Expr *x, const Item *left, const Item *right) {
    Opcode code = operator_ops[x->operation.op];
    int count = right ? 2 : 1;
    if (!code) {
        refuse_logic(e, x);
        return ERROR_ITEM;
    }
    if (is_counter(e, left) || is_counter(e, right)) return count_up(e, x, left, right);
    Loc locs[2] = {x->operation.left->loc, right ? x->operation.right->loc : x->loc};
    Item items[2] = {*left, right ? *right : ERROR_ITEM};
    Val in[2];
    if (!take_operands(e, code, "v", items, locs, count, in) || !refuse_integers(e, x, in)) return ERROR_ITEM;
    return emit_op(e, x->loc, ir_op_new(e->f, code, in, count), locs);
}
