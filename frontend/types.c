/* types.c: types as they are written: of tensors (f32[N, 784]) and of static arguments (int). */
#include "frontend/elaborate.h"

/* Elements of a tensor with N = 1; more is surely a slip, and sizes in bytes stay far from overflow. */
static const int64_t MAX_ELEMENTS = (int64_t)1 << 48;

typedef struct TensorType {
    const char *word;
    Dtype dtype;
    bool is_built;
} TensorType;

static const TensorType tensor_types[] = {
    {"f32", AMP_DT_F32, true}, {"i32", AMP_DT_I32, true},  {"f16", AMP_DT_F16, false},
    {"u8", AMP_DT_U8, false},  {"i64", AMP_DT_I64, false},
};

static bool find_dtype(Elab *e, const TypeExpr *type, Dtype *dtype) {
    const char *words[sizeof tensor_types / sizeof tensor_types[0]];
    int count = 0;
    for (size_t i = 0; i < sizeof tensor_types / sizeof tensor_types[0]; i++) {
        const TensorType *t = &tensor_types[i];
        words[count++] = t->word;
        if (strcmp(t->word, type->word->text)) continue;
        *dtype = t->dtype;
        if (!t->is_built) report_not_built(e, type->loc, arena_printf(e->a, "a tensor of type %s", t->word));
        return t->is_built;
    }
    Diag *diag = report(e, type->word->loc, "'%s' is no type of a tensor", type->word->text);
    help_nearest(e, diag, type->word->text, words, count);
    return false;
}

static bool find_dim(Elab *e, const Expr *x, Dim *out) {
    Item item = evaluate(e, x);
    if (item.kind == ITEM_ERROR) return false;
    if (item.kind == ITEM_INT && item.i.mul > 0) {
        *out = item.i;
        return true;
    }
    report(e, x->loc, "a dimension is a positive int; this is %s", item_describe(e, &item));
    return false;
}

static bool check_size(Elab *e, Loc loc, const Shape *shape) {
    int batches = 0;
    for (int i = 0; i < shape->rank; i++) batches += shape->d[i].n;
    Dim elements;
    if (batches > 1) {
        report(e, loc, "only one dimension of a tensor may depend on N");
        return false;
    }
    if (shape_count(shape, &elements) && elements.mul <= MAX_ELEMENTS) return true;
    report(e, loc, "a tensor of that many elements is too large");
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
        good = find_dim(e, type->dims.data[i], &dim) && good;
        shape->d[shape->rank++] = dim;
    }
    return good && check_size(e, type->loc, shape);
}

bool find_static_type(Elab *e, const TypeExpr *type, StaticType *out) {
    for (int i = 0; i < STATIC_TYPE_COUNT && !type->has_dims; i++) {
        if (strcmp(static_type_names[i], type->word->text)) continue;
        *out = (StaticType)i;
        return true;
    }
    Diag *diag = report(e, type->loc, "'%s' is no type of a static argument", loc_text(e->a, type->loc));
    help_nearest(e, diag, type->word->text, static_type_names, STATIC_TYPE_COUNT);
    return false;
}
