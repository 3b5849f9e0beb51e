/* expr.c: expressions. */
#include "frontend/elaborate.h"

static Item item_list(Elab *e, const Expr *x) {
    Item list = {.kind = x->kind == EXPR_TUPLE ? ITEM_TUPLE : ITEM_LIST};
    list.items.count = x->items.len;
    list.items.at = arena_array(e->a, Item, x->items.len + 1);
    bool good = true;
    for (int i = 0; i < x->items.len; i++) {
        Item *item = &list.items.at[i];
        *item = evaluate(e, x->items.data[i]);
        if (item->kind == ITEM_TENSOR)
            *item = report_item(e, x->items.data[i]->loc,
                                "a tensor does not stand in a list; concat and stack join tensors");
        good = good && item->kind != ITEM_ERROR;
    }
    return good ? list : ERROR_ITEM;
}

static Item unary(Elab *e, const Expr *x) {
    Item operand = evaluate(e, x->operation.left);
    if (operand.kind == ITEM_ERROR) return operand;
    return is_static(&operand) ? static_unary(e, x, operand) : tensor_operation(e, x, &operand, NULL);
}

/* A word that nothing is bound to is a symbol of its argument. */
static bool is_free_word(const Elab *e, const Expr *x) {
    return x->kind == EXPR_NAME && !find_binding(e, x->name->text);
}

/* Beside a symbol, `==` and `!=` take a free word for one too: `if approximate == tanh`. */
static Item operand_beside(Elab *e, const Expr *x, const Item *other) {
    if (other->kind == ITEM_SYMBOL && is_free_word(e, x)) return (Item){.kind = ITEM_SYMBOL, .s = x->name->text};
    return evaluate(e, x);
}

static Item binary(Elab *e, const Expr *x) {
    const Expr *first = x->operation.left, *second = x->operation.right;
    bool compares = x->operation.op == OPERATOR_EQ || x->operation.op == OPERATOR_NE;
    bool swapped = compares && is_free_word(e, first) && !is_free_word(e, second);
    Item left = evaluate(e, swapped ? second : first);
    Item right = compares ? operand_beside(e, swapped ? first : second, &left) : evaluate(e, second);
    if (left.kind == ITEM_ERROR || right.kind == ITEM_ERROR) return ERROR_ITEM;
    if (swapped) {
        Item was_second = left;
        left = right;
        right = was_second;
    }
    return is_static(&left) && is_static(&right) ? static_binary(e, x, left, right)
                                                 : tensor_operation(e, x, &left, &right);
}

static Item single_result(Elab *e, const Expr *x) {
    Item results[MAX_RESULTS];
    int count = elaborate_call(e, x, results);
    if (count == 1) return results[0];
    return report_item(e, x->loc, "%s returns %d values; bind them: a, b = %s(...)", x->call.callee->text, count,
                       x->call.callee->text);
}

static Item evaluate_kind(Elab *e, const Expr *x) {
    switch (x->kind) {
    case EXPR_ERROR: return ERROR_ITEM;
    case EXPR_INT: return item_int(x->i);
    case EXPR_FLOAT: return (Item){.kind = ITEM_FLOAT, .f = x->f};
    case EXPR_BOOL: return (Item){.kind = ITEM_BOOL, .b = x->b};
    case EXPR_STRING: return (Item){.kind = ITEM_STRING, .s = x->s};
    case EXPR_NONE: return (Item){.kind = ITEM_NONE};
    case EXPR_BATCH: return (Item){.kind = ITEM_INT, .i = dim_n(1, 1)};
    case EXPR_NAME: return read_name(e, x->name);
    case EXPR_UNARY: return unary(e, x);
    case EXPR_BINARY: return binary(e, x);
    case EXPR_CALL: return single_result(e, x);
    case EXPR_TUPLE:
    case EXPR_LIST: return item_list(e, x);
    }
    return ERROR_ITEM;
}

Item evaluate(Elab *e, const Expr *x) {
    if (!enter(e, x->loc)) return ERROR_ITEM;
    Item item = evaluate_kind(e, x);
    leave(e);
    return item;
}

int evaluate_results(Elab *e, const Expr *x, Item *out) {
    if (x->kind == EXPR_CALL) return elaborate_call(e, x, out);
    out[0] = evaluate(e, x);
    return 1;
}

Item evaluate_static(Elab *e, const Expr *x, const char *what, StaticType type) {
    if (type == STATIC_SYMBOL && is_free_word(e, x)) return (Item){.kind = ITEM_SYMBOL, .s = x->name->text};
    if (type == STATIC_DIMS && is_free_word(e, x) && !strcmp(x->name->text, "all")) return (Item){.kind = ITEM_TUPLE};
    Item item = evaluate(e, x);
    item_convert(e, x->loc, what, type, &item);
    return item;
}

Val as_tensor(Elab *e, Loc loc, const Item *item) {
    if (item->kind == ITEM_TENSOR) return item->tensor;
    if (item->kind == ITEM_FLOAT) return emit_const(e, loc, item->f);
    if (item->kind == ITEM_INT && !item->i.n) return emit_const(e, loc, (double)item->i.mul);
    if (item->kind != ITEM_ERROR) report(e, loc, "a tensor belongs here; this is %s", item_describe(e, item));
    return NO_VAL;
}
