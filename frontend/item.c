/* item.c: what items are, and what they become where a static type or a shape is expected. */
#include "frontend/elaborate.h"

Item item_int(int64_t v) { return (Item){.kind = ITEM_INT, .i = dim_const(v)}; }

Item item_tensor(Val v) { return v.id ? (Item){.kind = ITEM_TENSOR, .tensor = v} : ERROR_ITEM; }

bool item_is_static(const Item *item) { return item->kind >= ITEM_INT || item->kind == ITEM_NONE; }

/* ---- description ------------------------------------------------------------------------------------------ */

static void describe(Text *t, const Elab *e, const Item *item);

static void describe_all(Text *t, const Elab *e, const Item *item, char open, char close) {
    text_putc(t, open);
    for (int i = 0; i < item->items.count; i++) {
        if (i) text_puts(t, ", ");
        describe(t, e, &item->items.at[i]);
    }
    text_putc(t, close);
}

/* The bare number: printed as a shape of one dimension, without the brackets. */
static void describe_int(Text *t, Dim d) {
    const Shape s = shape_of(1, &d);
    const char *brackets = shape_text(t->arena, &s);
    text_write(t, brackets + 1, strlen(brackets) - 2);
}

static void describe(Text *t, const Elab *e, const Item *item) {
    switch (item->kind) {
    case ITEM_ERROR: text_puts(t, "an error"); break;
    case ITEM_NONE: text_puts(t, "none"); break;
    case ITEM_TENSOR: type_print(t, ir_dtype(e->f, item->tensor), ir_shape(e->f, item->tensor)); break;
    case ITEM_PARAM: type_print(t, item->param->dtype, &item->param->shape); break;
    case ITEM_AVERAGE: text_puts(t, "an average"); break;
    case ITEM_INT: describe_int(t, item->i); break;
    case ITEM_FLOAT: text_put_double(t, item->f); break;
    case ITEM_BOOL: text_puts(t, item->b ? "true" : "false"); break;
    case ITEM_SYMBOL: text_puts(t, item->s); break;
    case ITEM_STRING: text_put_quoted(t, item->s); break;
    case ITEM_TUPLE: describe_all(t, e, item, '(', ')'); break;
    case ITEM_LIST: describe_all(t, e, item, '[', ']'); break;
    }
}

const char *item_describe(Elab *e, const Item *item) {
    static const char *const nouns[] = {
        [ITEM_INT] = "the int ",       [ITEM_FLOAT] = "the float ", [ITEM_SYMBOL] = "the symbol ",
        [ITEM_STRING] = "the string ", [ITEM_LIST] = "the shape ",
    };
    Text t;
    text_init(&t, e->a);
    if ((size_t)item->kind < sizeof nouns / sizeof nouns[0] && nouns[item->kind]) text_puts(&t, nouns[item->kind]);
    describe(&t, e, item);
    return text_str(&t);
}

/* ---- conversion ------------------------------------------------------------------------------------------- */

const char *const static_type_names[STATIC_TYPE_COUNT] = {
    [STATIC_INT] = "int",       [STATIC_FLOAT] = "float", [STATIC_BOOL] = "bool", [STATIC_SYMBOL] = "symbol",
    [STATIC_STRING] = "string", [STATIC_PAIR] = "pair",   [STATIC_DIMS] = "dims", [STATIC_SHAPE] = "shape",
};

const char *const static_type_examples[STATIC_TYPE_COUNT] = {
    [STATIC_INT] = "3",           [STATIC_FLOAT] = "0.5",   [STATIC_BOOL] = "true",      [STATIC_SYMBOL] = "tanh",
    [STATIC_STRING] = "\"text\"", [STATIC_PAIR] = "(3, 5)", [STATIC_DIMS] = "(0, 2, 1)", [STATIC_SHAPE] = "[N, 4]",
};

static bool is_plain_int(const Item *item) { return item->kind == ITEM_INT && !dim_varies(item->i); }

static bool all_ints(const Item *item, bool may_vary) {
    for (int i = 0; i < item->items.count; i++)
        if (item->items.at[i].kind != ITEM_INT || (dim_varies(item->items.at[i].i) && !may_vary)) return false;
    return true;
}

static Item repeated(Elab *e, Item item, int count) {
    Item tuple = {.kind = ITEM_TUPLE};
    tuple.items.count = count;
    tuple.items.at = arena_array(e->a, Item, count);
    for (int i = 0; i < count; i++) tuple.items.at[i] = item;
    return tuple;
}

/* An int is also a float, a pair of two and a list of one dim. */
static bool becomes(Elab *e, StaticType type, Item *item) {
    if (is_plain_int(item) && type == STATIC_FLOAT) *item = (Item){.kind = ITEM_FLOAT, .f = (double)item->i.mul};
    if (is_plain_int(item) && type == STATIC_PAIR) *item = repeated(e, *item, 2);
    if (is_plain_int(item) && type == STATIC_DIMS) *item = repeated(e, *item, 1);
    if (item->kind == ITEM_NONE && type == STATIC_SYMBOL) *item = (Item){.kind = ITEM_SYMBOL, .s = "none"};
    switch (type) {
    case STATIC_INT: return is_plain_int(item);
    case STATIC_FLOAT: return item->kind == ITEM_FLOAT;
    case STATIC_BOOL: return item->kind == ITEM_BOOL;
    case STATIC_SYMBOL: return item->kind == ITEM_SYMBOL;
    case STATIC_STRING: return item->kind == ITEM_STRING;
    case STATIC_PAIR: return item->kind == ITEM_TUPLE && item->items.count == 2 && all_ints(item, false);
    case STATIC_DIMS: return item->kind == ITEM_TUPLE && item->items.count <= MAX_RANK && all_ints(item, false);
    case STATIC_SHAPE: return item->kind == ITEM_LIST && item->items.count <= MAX_RANK && all_ints(item, true);
    case STATIC_TYPE_COUNT: break;
    }
    return false;
}

bool item_convert(Elab *e, Loc loc, const char *what, StaticType type, Item *item) {
    if (item->kind == ITEM_ERROR) return false;
    Item given = *item;
    if (becomes(e, type, item)) return true;
    if (given.kind == ITEM_INT && dim_varies(given.i)) elab_error_varies(e, loc, given.i, what);
    else {
        Diag *diag = elab_error(e, loc, "%s must be of type %s; this is %s", what, static_type_names[type],
                                item_describe(e, &given));
        if (type == STATIC_PAIR) diag_help(e->d, diag, "a pair is (3, 5), or an int for both");
        if (type == STATIC_DIMS) diag_help(e->d, diag, "dims are (0, 2), an int, or all");
        if (type == STATIC_SHAPE) diag_help(e->d, diag, "a shape is [N, 4]: ints, and k * N or N / k");
    }
    *item = ERROR_ITEM;
    return false;
}

bool elab_static_type(Elab *e, const TypeExpr *type, StaticType *out) {
    for (int i = 0; i < STATIC_TYPE_COUNT && !type->has_dims; i++) {
        if (strcmp(static_type_names[i], type->word->text)) continue;
        *out = (StaticType)i;
        return true;
    }
    Diag *diag = elab_error(e, type->loc, "'%s' is not a static argument type", loc_text(e->a, type->loc));
    elab_help_choice(e, diag, type->word->text, static_type_names, STATIC_TYPE_COUNT);
    return false;
}

/* ---- shapes ----------------------------------------------------------------------------------------------- */

/* Elements of a tensor with N = 1.  More is surely a mistake; this many cannot overflow a size in bytes. */
static const int64_t MAX_ELEMENTS = (int64_t)1 << 48;

bool elab_dim_of_item(Elab *e, Loc loc, const Item *item, Dim *out) {
    if (item->kind == ITEM_ERROR) return false;
    if (item->kind == ITEM_INT && item->i.mul > 0) {
        *out = item->i;
        return true;
    }
    elab_error(e, loc, "a dimension is a positive int; this is %s", item_describe(e, item));
    return false;
}

bool elab_shape_is_small(const Shape *shape) {
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(elements, shape->d[i].mul, &elements)) return false;
    return elements <= MAX_ELEMENTS;
}

bool elab_shape_is_matrix(const Shape *shape) {
    int batches = 0, lengths = 0;
    for (int i = 0; i + 1 < shape->rank; i++) batches += shape->d[i].n, lengths += shape->d[i].t;
    return batches <= 1 && lengths <= LARGEST_POWER && (!shape->rank || shape->d[shape->rank - 1].n <= 1);
}

const char *elab_too_many_sizes(const Shape *shape) {
    return shape_batch_dims(shape) > 1 ? "only the last dimension of a tensor and one other may depend on N"
                                       : "only the last dimension of a tensor and two others may depend on T";
}

bool elab_check_shape(Elab *e, Loc loc, const Shape *shape) {
    if (!elab_shape_is_matrix(shape)) {
        elab_error(e, loc, "%s", elab_too_many_sizes(shape));
        return false;
    }
    if (elab_shape_is_small(shape)) return true;
    elab_error(e, loc, "a tensor of more than %lld elements is too large", (long long)MAX_ELEMENTS);
    return false;
}

bool elab_shape_of_list(Elab *e, Loc loc, const Item *list, Shape *shape) {
    *shape = shape_scalar();
    for (int i = 0; i < list->items.count; i++)
        if (!elab_dim_of_item(e, loc, &list->items.at[i], &shape->d[shape->rank++])) return false;
    return elab_check_shape(e, loc, shape);
}
