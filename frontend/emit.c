/* emit.c: making ops: which types their operands have, what their results are, and the names and paths they get. */
#include "frontend/elaborate.h"

#include <math.h>

/* ---- names and paths -------------------------------------------------------------------------------------- */

const char *elab_join_path(Elab *e, const char *scope, const char *name) {
    return *scope ? arena_printf(e->a, "%s.%s", scope, name) : name;
}

/* How often a name was requested: the number at which the search for a free one starts. */
typedef struct NameCount {
    int next;
} NameCount;

/* The name; if it is taken, the name, the separator and the first free number. */
static const char *take_name(Elab *e, Table *taken, const char *name, char separator) {
    NameCount *count = table_get(taken, name);
    if (count) {
        const char *base = name;
        do name = arena_printf(e->a, "%s%c%d", base, separator, count->next++);
        while (table_get(taken, name));
    }
    NameCount *first = arena_new(e->a, NameCount);
    first->next = 1;
    table_set(e->a, taken, name, first);
    return name;
}

const char *elab_scope_path(Elab *e, const char *scope, const char *name) {
    Table *taken = e->sharing ? &e->sharing->paths : &e->paths;
    return take_name(e, taken, elab_join_path(e, scope, name), '_');
}

/* Each op has a path of its own.  In a call by `sharing` it takes a number among the scopes, too, as it did in the
 * first call. */
const char *elab_op_path(Elab *e, const char *scope, const char *name) {
    if (e->sharing) elab_scope_path(e, scope, name);
    return take_name(e, &e->paths, elab_join_path(e, scope, name), '_');
}

const char *elab_unique_value_name(Elab *e, const char *name) {
    return take_name(e, &e->value_names, elab_join_path(e, e->frame->scope, name), '.');
}

/* ---- results ---------------------------------------------------------------------------------------------- */

static Item report_shapes(Elab *e, Loc loc, const Op *o, const Loc *operands, const char *wrong) {
    Diag *diag = elab_error_text(e, loc, wrong);
    for (int i = 0; i < o->n_in; i++) {
        bool again = false;
        for (int k = 0; k < i; k++) again = again || o->in[k].id == o->in[i].id;
        if (!again) elab_note_operand(e, diag, o->in[i], operands[i]);
    }
    if (strstr(wrong, " depend on T") || strstr(wrong, " depends on T")) elab_help_one_length(e, diag);
    elab_note_calls(e, diag);
    return ERROR_ITEM;
}

/* Replaces the op's name in "conv2d: ..." by the name of the layer, which is what the user called. */
static const char *in_layers_name(Elab *e, const Op *o, const char *wrong) {
    const char *name = ir_op_info[o->code].name;
    size_t n = strlen(name);
    if (!e->frame->layer || strncmp(wrong, name, n) || wrong[n] != ':') return wrong;
    return arena_printf(e->a, "%s%s", e->frame->layer, wrong + n);
}

static const char *too_large(Elab *e, const Op *o, const InferredTypes *types) {
    const char *name = ir_op_info[o->code].name;
    for (int i = 0; i < types->count; i++) {
        if (!elab_shape_is_matrix(&types->shape[i]))
            return arena_printf(e->a,
                                "%s: the result would be %s; %s: transpose or reshape the operands, or sum over a "
                                "dimension before",
                                name, shape_text(e->a, &types->shape[i]), elab_too_many_sizes(&types->shape[i]));
        if (!elab_shape_is_small(&types->shape[i])) return arena_printf(e->a, "%s: the result is too large", name);
    }
    return NULL;
}

/* The op's results as inferred; results that the op already has are checked. */
static bool make_results(Elab *e, Loc loc, Op *o, const Loc *operands) {
    InferredTypes types;
    const char *wrong = ir_infer(e->f, o, AMP_DT_F32, &types);
    if (wrong && types.wrong) wrong = types.wrong;
    if (!wrong) wrong = too_large(e, o, &types);
    if (wrong) report_shapes(e, loc, o, operands, in_layers_name(e, o, wrong));
    else if (!o->n_out) ir_make_results(e->f, o, AMP_DT_F32, NULL);
    return !wrong;
}

void elab_emit_results(Elab *e, Loc loc, Op *o, const Loc *operands, Item *out, int results) {
    for (int i = 0; i < results; i++) out[i] = ERROR_ITEM;
    if (!elab_charge(e, loc, 1)) return;
    o->path = elab_op_path(e, e->frame->scope, ir_op_info[o->code].name);
    o->layer = e->frame->layer;
    o->pos = elab_pos(e, loc);
    o->checkpoint = e->averaging ? NULL : e->checkpoint; /* the function `metrics` is not differentiated */
    if (!make_results(e, loc, o, operands)) return;
    for (int i = 0; i < results; i++) {
        elab_set_origin(e, o->out[i], NULL, loc);
        out[i] = item_tensor(o->out[i]);
    }
}

Item elab_emit(Elab *e, Loc loc, Op *o, const Loc *operands) {
    Item item;
    elab_emit_results(e, loc, o, operands, &item, 1);
    return item;
}

/* ---- constants and inputs --------------------------------------------------------------------------------- */

static Val emit_const_of(Elab *e, Loc loc, Dtype dtype, double value) {
    Op *o = ir_op_new(e->f, OP_const, NULL, 0);
    ir_attr(o, "value")->f = value;
    if (dtype != AMP_DT_F32) ir_result(e->f, o, NULL, dtype, shape_scalar());
    Item item = elab_emit(e, loc, o, NULL);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

static Val emit_const(Elab *e, Loc loc, double value) { return emit_const_of(e, loc, AMP_DT_F32, value); }

Val elab_add_input(Elab *e, const Name *name, Dtype dtype, Shape shape) {
    Val v = ir_add_input(e->f, elab_unique_value_name(e, name->text), dtype, shape);
    elab_set_origin(e, v, name->text, name->loc);
    return v;
}

static void refuse_as_tensor(Elab *e, Loc loc, const Item *item) {
    Diag *diag = elab_error(e, loc, "a tensor is expected here; this is %s", item_describe(e, item));
    if (item->kind == ITEM_LIST || item->kind == ITEM_TUPLE)
        diag_help(e->d, diag, "a tensor of numbers is tensor(1, 2), or a list of floats: [1.0, 2.0]");
    if (item->kind == ITEM_INT && item->i.t) elab_help_one_length(e, diag);
}

Val elab_as_tensor(Elab *e, Loc loc, const Item *item) {
    if (item->kind == ITEM_TENSOR) return item->tensor;
    if (item->kind == ITEM_FLOAT) return emit_const(e, loc, item->f);
    if (item->kind == ITEM_INT && !dim_varies(item->i)) return emit_const(e, loc, (double)item->i.mul);
    if (elab_is_numbers(item)) return elab_list_tensor(e, loc, item);
    if (item->kind != ITEM_ERROR) refuse_as_tensor(e, loc, item);
    return NO_VAL;
}

/* ---- operands --------------------------------------------------------------------------------------------- */

typedef struct Operands {
    Elab *e;
    Opcode code;
    const char *takes;
    const Item *items;
    const Loc *locs;
    int count;
    Val *in;
} Operands;

/* The letter of GraphOp.takes for operand |i| of an op, from its types (ir/ops.def). */
static char letter_of_types(Opcode code, int i) {
    char met = '\0';
    for (const char *at = ir_op_info[code].graph; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        for (int k = i; k > 0 && at[1] != '+'; at++) k -= *at != '?';
        char letter = strchr("FP", *at) ? 'f' : strchr("T*", *at) ? 't' : *at == 'b' ? 'c' : *at;
        met = !met || met == letter ? letter : letter == 't' || met == 't' ? 't' : 'v';
    }
    return met;
}

static char letter_of(const Operands *o, int i) {
    if (!o->takes) return letter_of_types(o->code, i);
    int last = (int)strlen(o->takes) - 1;
    return o->takes[i < last ? i : last];
}

static bool is_float(Dtype t) { return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16; }

/* AMP_DT_NONE for a number, which takes the type of the other operands. */
static Dtype dtype_of(const Operands *o, int i) {
    return o->items[i].kind == ITEM_TENSOR ? ir_dtype(o->e->f, o->items[i].tensor) : AMP_DT_NONE;
}

/* ---- errors ----------------------------------------------------------------------------------------------- */

static const char *noun_of(Opcode code) {
    int flags = ir_op_info[code].flags;
    return flags & PRODUCT && code != OP_attention ? "a product"
           : flags & REDUCE                        ? "a reduction"
                                                   : ir_op_info[code].name;
}

static bool refuse(const Operands *o, int i, const char *takes) {
    Diag *diag = elab_error(o->e, o->locs[i], "%s takes %s; this is %s", noun_of(o->code), takes,
                            item_describe(o->e, &o->items[i]));
    bool helps = strchr("fv", letter_of(o, i)) && o->items[i].kind == ITEM_TENSOR;
    if (helps && o->e->frame->layer) diag_help(o->e->d, diag, "to_f32(...) converts it");
    else if (helps) diag_help(o->e->d, diag, "convert it: to_f32(%s)", loc_text(o->e->a, o->locs[i]));
    if (letter_of(o, i) == 'c') diag_help(o->e->d, diag, "a comparison gives one: x > 0.0");
    return false;
}

static bool check_kind(const Operands *o, int i) {
    if (o->items[i].kind == ITEM_ERROR) return false;
    bool is_number = o->items[i].kind == ITEM_FLOAT || (o->items[i].kind == ITEM_INT && !dim_varies(o->items[i].i));
    if (o->items[i].kind == ITEM_TENSOR || (is_number && !strchr("lic", letter_of(o, i)))) return true;
    refuse_as_tensor(o->e, o->locs[i], &o->items[i]);
    return false;
}

static bool check_dtype(const Operands *o, int i) {
    Dtype t = dtype_of(o, i);
    switch (letter_of(o, i)) {
    case 'f': return t == AMP_DT_NONE || is_float(t) || refuse(o, i, "floats");
    case 'l':
        if (t != AMP_DT_I32)
            elab_error(o->e, o->locs[i], "%s: labels are i32; this is %s",
                       o->e->frame->layer ? o->e->frame->layer : ir_op_info[o->code].name,
                       item_describe(o->e, &o->items[i]));
        return t == AMP_DT_I32;
    case 'm': return t == AMP_DT_BOOL || t == AMP_DT_NONE || is_float(t) || refuse(o, i, "masks of floats or bool");
    case 'i': return t == AMP_DT_I32 || refuse(o, i, "indexes of type i32");
    case 'c': return t == AMP_DT_BOOL || refuse(o, i, "a condition of type bool");
    case 'v': return (t != AMP_DT_BOOL && t != AMP_DT_I64) || refuse(o, i, "floats or i32");
    default: return true;
    }
}

/* ---- one type --------------------------------------------------------------------------------------------- */

static bool shares_type(const Operands *o, int i) {
    if (letter_of(o, i) == 'm' && dtype_of(o, i) == AMP_DT_BOOL) return false;
    return strchr("vt", letter_of(o, i)) || ir_op_info[o->code].flags & PRODUCT;
}

/* The type that all operands sharing a type are converted to: f32 if one of them is or if a number is a float, else the
 * type of the tensors. */
static Dtype common_type(const Operands *o) {
    Dtype common = AMP_DT_NONE;
    bool beside_float = false;
    for (int i = 0; i < o->count; i++) {
        Dtype t = dtype_of(o, i);
        if (!shares_type(o, i)) continue;
        if (t == AMP_DT_NONE) beside_float |= o->items[i].kind == ITEM_FLOAT;
        else if (common == AMP_DT_NONE || t == common) common = t;
        else if (is_float(t) || is_float(common)) common = AMP_DT_F32;
    }
    if (beside_float && !is_float(common)) common = AMP_DT_F32;
    return common;
}

static Val cast_to_f32(const Operands *o, int i, Val v) {
    Item cast = elab_emit(o->e, o->locs[i], ir_op_new(o->e->f, OP_cast, &v, 1), &o->locs[i]);
    return cast.kind == ITEM_TENSOR ? cast.tensor : NO_VAL;
}

static bool is_integer(Dtype t) { return t == AMP_DT_I32 || t == AMP_DT_U8; }

bool elab_type_holds(Dtype t, double number) {
    if (is_float(t)) return true;
    double least = t == AMP_DT_I32 ? INT32_MIN : 0.0;
    double most = t == AMP_DT_I32 ? INT32_MAX : t == AMP_DT_U8 ? UINT8_MAX : 1.0; /* of bool */
    return number >= least && number <= most && number == floor(number);
}

/* Operand |i|, a number, as a constant of |type|. */
static bool convert_number(const Operands *o, int i, Dtype type) {
    const Item *item = &o->items[i];
    double number = item->kind == ITEM_INT ? (double)item->i.mul : item->f;
    if (elab_type_holds(type, number)) {
        o->in[i] = emit_const_of(o->e, o->locs[i], type, number);
        return o->in[i].id != 0;
    }
    Diag *diag = elab_error(o->e, o->locs[i], "%s does not fit in %s, the type of the other operands",
                            item_describe(o->e, item), amp_dtype_name(type));
    diag_help(o->e->d, diag, "to_f32(...) converts a tensor to floats, which hold it");
    return false;
}

/* Operand |i| in type |common|; a float of another width is kept where the op accepts both. */
static bool convert(const Operands *o, int i, Dtype common) {
    const Item *item = &o->items[i];
    Dtype t = dtype_of(o, i);
    if (t == AMP_DT_NONE)
        return convert_number(o, i, shares_type(o, i) && common == AMP_DT_I32 ? AMP_DT_I32 : AMP_DT_F32);
    o->in[i] = item->tensor;
    if (!shares_type(o, i) || t == common)
        return t != AMP_DT_U8 || letter_of(o, i) != 'v' || refuse(o, i, "floats or i32");
    if (letter_of(o, i) == 'v' && is_integer(t) && is_float(common)) o->in[i] = cast_to_f32(o, i, item->tensor);
    else if (is_float(t) && is_float(common)) {
        bool must = letter_of(o, i) == 't' || ir_op_info[o->code].flags & PRODUCT;
        if (must && t != AMP_DT_F32) o->in[i] = cast_to_f32(o, i, item->tensor);
    } else if (letter_of(o, i) == 'v') return refuse(o, i, "floats or i32");
    else {
        Diag *diag = elab_error(o->e, o->locs[i], "%s takes tensors of one type; this is %s, not %s", noun_of(o->code),
                                item_describe(o->e, item), amp_dtype_name(common));
        diag_help(o->e->d, diag, "to_f32(...) converts it");
        return false;
    }
    return o->in[i].id != 0;
}

/* Lists of floats become tensors. */
static const Item *with_lists_as_tensors(Elab *e, const Item *items, const Loc *locs, int count) {
    Item *all = arena_array(e->a, Item, count + 1);
    for (int i = 0; i < count; i++)
        all[i] = elab_is_numbers(&items[i]) ? item_tensor(elab_list_tensor(e, locs[i], &items[i])) : items[i];
    return all;
}

bool elab_take_operands(Elab *e, Opcode code, const char *takes, const Item *items, const Loc *locs, int count,
                        Val *in) {
    Operands o = {e, code, takes, with_lists_as_tensors(e, items, locs, count), locs, count, in};
    bool good = true;
    for (int i = 0; i < count; i++) good = check_kind(&o, i) && check_dtype(&o, i) && good;
    Dtype common = good ? common_type(&o) : AMP_DT_NONE;
    for (int i = 0; i < count && good; i++) good = convert(&o, i, common) && good;
    return good;
}

/* ---- operators on tensors --------------------------------------------------------------------------------- */

static const Opcode operator_ops[OPERATOR_COUNT] = {
    [OPERATOR_ADD] = OP_add,
    [OPERATOR_SUB] = OP_sub,
    [OPERATOR_MUL] = OP_mul,
    [OPERATOR_DIV] = OP_div,
    [OPERATOR_REMAINDER] = OP_remainder,
    [OPERATOR_NEG] = OP_neg,
    [OPERATOR_EQ] = OP_eq,
    [OPERATOR_NE] = OP_ne,
    [OPERATOR_LT] = OP_lt,
    [OPERATOR_LE] = OP_le,
    [OPERATOR_GT] = OP_gt,
    [OPERATOR_GE] = OP_ge,
    [OPERATOR_AND] = OP_and,
    [OPERATOR_OR] = OP_or,
    [OPERATOR_NOT] = OP_not,
};

static bool is_counter(const Elab *e, const Item *item) {
    return item && item->kind == ITEM_TENSOR && ir_dtype(e->f, item->tensor) == AMP_DT_I64;
}

/* The only 64-bit integers are counters: COUNTER + 1. */
static Item count_up(Elab *e, const Expr *x, const Item *left, const Item *right) {
    bool is_one = right && right->kind == ITEM_INT && !dim_varies(right->i) && right->i.mul == 1;
    if (x->operation.op == OPERATOR_ADD && is_counter(e, left) && is_one) {
        Val v = left->tensor;
        return elab_emit(e, x->loc, ir_op_new(e->f, OP_increment, &v, 1), &x->operation.left->loc);
    }
    Diag *diag = elab_error(e, x->loc, "an i64 is a counter; its only operation is `counter + 1`");
    diag_help(e->d, diag, "to_f32(...) makes it a float");
    return ERROR_ITEM;
}

/* The language defines no rounding for a quotient of integers. */
static bool refuse_integers(Elab *e, const Expr *x, const Val *in) {
    if (x->operation.op != OPERATOR_DIV || ir_dtype(e->f, in[0]) != AMP_DT_I32) return true;
    Diag *diag = elab_error(e, x->loc, "'/' takes floats; this is i32");
    diag_help(e->d, diag, "convert it: to_f32(%s)", loc_text(e->a, x->operation.left->loc));
    return false;
}

Item elab_tensor_operation(Elab *e, const Expr *x, const Item *left, const Item *right) {
    Opcode code = operator_ops[x->operation.op];
    int count = right ? 2 : 1;
    const char *takes = letter_of_types(code, 0) == 'c' ? "c" : "v";
    if (is_counter(e, left) || is_counter(e, right)) return count_up(e, x, left, right);
    Loc locs[2] = {x->operation.left->loc, right ? x->operation.right->loc : x->loc};
    Item items[2] = {*left, right ? *right : ERROR_ITEM};
    Val in[2];
    if (!elab_take_operands(e, code, takes, items, locs, count, in) || !refuse_integers(e, x, in)) return ERROR_ITEM;
    return elab_emit(e, x->loc, ir_op_new(e->f, code, in, count), locs);
}
