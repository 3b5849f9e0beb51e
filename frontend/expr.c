/* expr.c: expressions, and what is written with them: types of tensors, and paths. */
#include "frontend/elaborate.h"

static Item item_list(Elab *e, const Expr *x) {
    Item list = {.kind = x->kind == EXPR_TUPLE ? ITEM_TUPLE : ITEM_LIST};
    list.items.count = x->items.len;
    list.items.at = arena_array(e->a, Item, x->items.len + 1);
    bool good = true;
    for (int i = 0; i < x->items.len; i++) {
        Item *item = &list.items.at[i];
        *item = elab_eval(e, x->items.data[i]);
        if (item->kind == ITEM_TENSOR)
            *item =
                elab_error_item(e, x->items.data[i]->loc, "a list cannot hold a tensor; concat and stack join tensors");
        good = good && item->kind != ITEM_ERROR;
    }
    return good ? list : ERROR_ITEM;
}

static Item unary(Elab *e, const Expr *x) {
    Item operand = elab_eval(e, x->operation.left);
    if (operand.kind == ITEM_ERROR) return operand;
    return item_is_static(&operand) ? elab_static_unary(e, x, operand) : elab_tensor_operation(e, x, &operand, NULL);
}

/* A word that is not bound to anything can be a symbol, the value of a static argument. */
static bool is_free_word(const Elab *e, const Expr *x) { return x->kind == EXPR_NAME && !elab_find(e, x->name->text); }

/* Compared with a symbol by `==` or `!=`, a free word is a symbol too: `if approximate == tanh`. */
static Item operand_next_to(Elab *e, const Expr *x, const Item *other) {
    if (other->kind == ITEM_SYMBOL && is_free_word(e, x)) return (Item){.kind = ITEM_SYMBOL, .s = x->name->text};
    if (other->kind == ITEM_ERROR && is_free_word(e, x)) return ERROR_ITEM; /* which may have been a symbol */
    return elab_eval(e, x);
}

static Item binary(Elab *e, const Expr *x) {
    const Expr *first = x->operation.left, *second = x->operation.right;
    bool compares = x->operation.op == OPERATOR_EQ || x->operation.op == OPERATOR_NE;
    bool swapped = compares && is_free_word(e, first) && !is_free_word(e, second);
    Item left = elab_eval(e, swapped ? second : first);
    Item right = compares ? operand_next_to(e, swapped ? first : second, &left) : elab_eval(e, second);
    if (left.kind == ITEM_ERROR || right.kind == ITEM_ERROR) return ERROR_ITEM;
    if (swapped) {
        Item was_second = left;
        left = right;
        right = was_second;
    }
    return item_is_static(&left) && item_is_static(&right) ? elab_static_binary(e, x, left, right)
                                                           : elab_tensor_operation(e, x, &left, &right);
}

static Item single_result(Elab *e, const Expr *x) {
    Item results[MAX_RESULTS];
    int count = elab_call(e, x, results);
    if (count == 1) return results[0];
    return elab_error_item(e, x->loc, "%s returns %d values; bind them: a, b = %s(...)", x->call.callee->text, count,
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
    case EXPR_NAME: return elab_read(e, x->name);
    case EXPR_UNARY: return unary(e, x);
    case EXPR_BINARY: return binary(e, x);
    case EXPR_CALL: return single_result(e, x);
    case EXPR_TUPLE:
    case EXPR_LIST: return item_list(e, x);
    }
    return ERROR_ITEM;
}

Item elab_eval(Elab *e, const Expr *x) {
    if (!elab_enter(e, x->loc)) return ERROR_ITEM;
    Item item = evaluate_kind(e, x);
    elab_leave(e);
    return item;
}

int elab_eval_results(Elab *e, const Expr *x, Item *out) {
    if (x->kind == EXPR_CALL) return elab_call(e, x, out);
    out[0] = elab_eval(e, x);
    return 1;
}

Item elab_eval_static(Elab *e, const Expr *x, const char *what, StaticType type) {
    if (type == STATIC_SYMBOL && is_free_word(e, x)) return (Item){.kind = ITEM_SYMBOL, .s = x->name->text};
    if (type == STATIC_DIMS && is_free_word(e, x) && !strcmp(x->name->text, "all")) return (Item){.kind = ITEM_TUPLE};
    Item item = elab_eval(e, x);
    item_convert(e, x->loc, what, type, &item);
    return item;
}

/* ---- types of tensors ------------------------------------------------------------------------------------- */

static const Dtype tensor_types[] = {AMP_DT_F32, AMP_DT_F16, AMP_DT_BF16, AMP_DT_I32, AMP_DT_U8, AMP_DT_I64};

enum { TENSOR_TYPE_COUNT = sizeof tensor_types / sizeof tensor_types[0] };

static bool find_dtype(Elab *e, const TypeExpr *type, Dtype *dtype) {
    const char *words[TENSOR_TYPE_COUNT];
    for (int i = 0; i < TENSOR_TYPE_COUNT; i++) {
        words[i] = amp_dtype_name(tensor_types[i]);
        if (strcmp(words[i], type->word->text)) continue;
        *dtype = tensor_types[i];
        return true;
    }
    Diag *diag = elab_error(e, type->word->loc, "'%s' is not a tensor type", type->word->text);
    if (!strcmp(type->word->text, "f64")) diag_help(e->d, diag, "models compute in f32 at most: write f32");
    else if (text_nearest(type->word->text, words, TENSOR_TYPE_COUNT))
        elab_help_nearest(e, diag, type->word->text, words, TENSOR_TYPE_COUNT);
    else diag_help(e->d, diag, "the choices are f32, f16, bf16, i32 and u8; i64 for states that count");
    return false;
}

bool elab_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape) {
    bool good = find_dtype(e, type, dtype);
    *shape = shape_scalar();
    if (type->dims.len > MAX_RANK) {
        elab_error(e, type->loc, "a tensor has at most %d dimensions; this has %d", MAX_RANK, type->dims.len);
        return false;
    }
    for (int i = 0; i < type->dims.len; i++) {
        Dim dim = dim_const(1);
        Item item = elab_eval(e, type->dims.data[i]);
        good = elab_dim_of_item(e, type->dims.data[i]->loc, &item, &dim) && good;
        shape->d[shape->rank++] = dim;
    }
    if (good && shape_batch_dims(shape) > 1) {
        elab_error(e, type->loc, "only one dimension of an input may depend on N");
        return false;
    }
    for (int i = 0; i < shape->rank && good; i++) {
        if (shape->d[i].n + shape->d[i].t < 2) continue;
        elab_error(e, type->dims.data[i]->loc, "a dimension of an input depends on N or on T, and once: reshape it");
        return false;
    }
    return good && elab_check_shape(e, type->loc, shape);
}

bool elab_input_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape) {
    if (!elab_type(e, type, dtype, shape)) return false;
    if (*dtype != AMP_DT_I64) return true;
    elab_error(e, type->loc, "an input is f32, f16, bf16, i32 or u8; i64 is for states that count");
    return false;
}

/* ---- paths ------------------------------------------------------------------------------------------------ */

static bool put_index(Elab *e, Text *t, const Expr *index, const char *dot) {
    Item item = elab_eval(e, index);
    if (item.kind == ITEM_ERROR) return false;
    if (item.kind == ITEM_INT && !dim_varies(item.i) && item.i.mul >= 0) {
        text_printf(t, "%s%lld", dot, (long long)item.i.mul);
        return true;
    }
    elab_error(e, index->loc, "an index in a path is an int of at least 0; this is %s", item_describe(e, &item));
    return false;
}

const char *elab_path(Elab *e, const Path *path) {
    Text t;
    text_init(&t, e->a);
    bool good = true;
    for (int i = 0; i < path->parts.len; i++) {
        const PathPart *part = &path->parts.data[i];
        const char *dot = i && !part->joined ? "." : "";
        if (part->word) text_printf(&t, "%s%s", dot, part->word->text);
        else good = put_index(e, &t, part->index, dot) && good;
    }
    return good ? text_str(&t) : NULL;
}
