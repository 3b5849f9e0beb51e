/* types.c: types as they are written: of tensors (f32[N, 784]) and of static arguments (int). */
#include "frontend/elaborate.h"

/* Elements of a tensor with N = 1; more is surely a slip, and sizes in bytes stay far from overflow. */
static const int64_t MAX_ELEMENTS = (int64_t)1 << 48;

typedef struct TensorType {
    const char *word;
    Dtype dtype;
} TensorType;

static const TensorType tensor_types[] = {
    {"f32", AMP_DT_F32}, {"f16", AMP_DT_F16}, {"i32", AMP_DT_I32}, {"u8", AMP_DT_U8}, {"i64", AMP_DT_I64},
};

static bool find_dtype(Elab *e, const TypeExpr *type, Dtype *dtype) {
    const char *words[sizeof tensor_types / sizeof tensor_types[0]];
    int count = 0;
    for (size_t i = 0; i < sizeof tensor_types / sizeof tensor_types[0]; i++) {
        const TensorType *t = &tensor_types[i];
        words[count++] = t->word;
        if (strcmp(t->word, type->word->text)) continue;
        *dtype = t->dtype;
        return true;
    }
    Diag *diag = report(e, type->word->loc, "'%s' is no type of a tensor", type->word->text);
    help_choice(e, diag, type->word->text, words, count);
    return false;
}

static bool dim_of_item(Elab *e, Loc loc, const Item *item, Dim *out) {
    if (item->kind == ITEM_ERROR) return false;
    if (item->kind == ITEM_INT && item->i.mul > 0) {
        *out = item->i;
        return true;
    }
    report(e, loc, "a dimension is a positive int; this is %s", item_describe(e, item));
    return false;
}

bool shape_is_small(const Shape *shape) {
    Dim elements;
    return shape_count(shape, &elements) && elements.mul <= MAX_ELEMENTS;
}

static bool check_size(Elab *e, Loc loc, const Shape *shape) {
    int batches = 0;
    for (int i = 0; i < shape->rank; i++) batches += shape->d[i].n;
    if (batches > 1) {
        report(e, loc, "only one dimension of a tensor may depend on N");
        return false;
    }
    if (shape_is_small(shape)) return true;
    report(e, loc, "a tensor of more than %lld elements is too large", (long long)MAX_ELEMENTS);
    return false;
}

bool elaborate_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape) {
    bool good = find_dtype(e, type, dtype);
    *shape = shape_scalar();
    if (type->dims.len > MAX_RANK) {
        report(e, type->loc, "a tensor has at most %d dimensions; this has %d", MAX_RANK, type->dims.len);
        return false;
    }
    for (int i = 0; i < type->dims.len; i++) {
        Dim dim = dim_const(1);
        Item item = evaluate(e, type->dims.data[i]);
        good = dim_of_item(e, type->dims.data[i]->loc, &item, &dim) && good;
        shape->d[shape->rank++] = dim;
    }
    return good && check_size(e, type->loc, shape);
}

bool elaborate_input_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape) {
    if (!elaborate_type(e, type, dtype, shape)) return false;
    if (*dtype != AMP_DT_I64) return true;
    report(e, type->loc, "an input is f32, f16, i32 or u8; i64 is for states that count");
    return false;
}

bool shape_of_list(Elab *e, Loc loc, const Item *list, Shape *shape) {
    *shape = shape_scalar();
    for (int i = 0; i < list->items.count; i++)
        if (!dim_of_item(e, loc, &list->items.at[i], &shape->d[shape->rank++])) return false;
    return check_size(e, loc, shape);
}

bool find_static_type(Elab *e, const TypeExpr *type, StaticType *out) {
    for (int i = 0; i < STATIC_TYPE_COUNT && !type->has_dims; i++) {
        if (strcmp(static_type_names[i], type->word->text)) continue;
        *out = (StaticType)i;
        return true;
    }
    Diag *diag = report(e, type->loc, "'%s' is no type of a static argument", loc_text(e->a, type->loc));
    help_choice(e, diag, type->word->text, static_type_names, STATIC_TYPE_COUNT);
    return false;
}
