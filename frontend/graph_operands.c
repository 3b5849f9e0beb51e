/* graph_operands.c: the tensors that a call or operator reads: which types an op takes, numbers as constants, and
 * integers that become floats. */
#include "frontend/graph_ops.h"

typedef struct Operands {
    Elab *e;
    Opcode code;
    const char *takes;
    const Item *items;
    const Loc *locs;
    int count;
    Val *in;
} Operands;

static char letter_of(const Operands *o, int i) {
    int last = (int)strlen(o->takes) - 1;
    return o->takes[i < last ? i : last];
}

static bool is_float(Dtype t) { return t == AMP_DT_F32 || t == AMP_DT_F16; }

/* AMP_DT_NONE: a number, which takes the type of what it meets. */
static Dtype dtype_of(const Operands *o, int i) {
    return o->items[i].kind == ITEM_TENSOR ? ir_dtype(o->e->f, o->items[i].tensor) : AMP_DT_NONE;
}

/* ---- errors ---------------------------------------------------------------------------------------------- */

static const char *noun_of(Opcode code) {
    int flags = ir_op_info[code].flags;
    return flags & PRODUCT ? "a product" : flags & REDUCE ? "a reduction" : ir_op_info[code].name;
}

static bool refuse(const Operands *o, int i, const char *takes) {
    Diag *diag =
        report(o->e, o->locs[i], "%s takes %s; this is %s", noun_of(o->code), takes, item_describe(o->e, &o->items[i]));
    bool helps = strchr("fv", letter_of(o, i)) && o->items[i].kind == ITEM_TENSOR;
    if (helps && o->e->frame->layer) diag_help(o->e->d, diag, "to_f32(...) converts it");
    else if (helps) diag_help(o->e->d, diag, "convert it: to_f32(%s)", loc_text(o->e->a, o->locs[i]));
    if (letter_of(o, i) == 'c') diag_help(o->e->d, diag, "a comparison gives one: x > 0.0");
    return false;
}

static bool check_kind(const Operands *o, int i) {
    if (o->items[i].kind == ITEM_ERROR) return false;
    bool is_number = o->items[i].kind == ITEM_FLOAT || (o->items[i].kind == ITEM_INT && !o->items[i].i.n);
    if (o->items[i].kind == ITEM_TENSOR || (is_number && !strchr("lic", letter_of(o, i)))) return true;
    report(o->e, o->locs[i], "a tensor belongs here; this is %s", item_describe(o->e, &o->items[i]));
    return false;
}

static bool check_dtype(const Operands *o, int i) {
    Dtype t = dtype_of(o, i);
    switch (letter_of(o, i)) {
    case 'f': return t == AMP_DT_NONE || is_float(t) || refuse(o, i, "floats");
    case 'l':
        if (t != AMP_DT_I32)
            report(o->e, o->locs[i], "%s: labels are i32; this is %s",
                   o->e->frame->layer ? o->e->frame->layer : ir_op_info[o->code].name,
                   item_describe(o->e, &o->items[i]));
        return t == AMP_DT_I32;
    case 'i': return t == AMP_DT_I32 || refuse(o, i, "indexes of type i32");
    case 'c': return t == AMP_DT_BOOL || refuse(o, i, "a condition of type bool");
    case 'v': return (t != AMP_DT_BOOL && t != AMP_DT_I64) || refuse(o, i, "floats or i32");
    default: return true;
    }
}

/* ---- one type -------------------------------------------------------------------------------------------- */

static bool shares_type(const Operands *o, int i) {
    return strchr("vt", letter_of(o, i)) || ir_op_info[o->code].flags & PRODUCT;
}

/* What all operands that share a type become: f32 where one is or a number has a dot, else the type of the tensors. */
static Dtype common_type(const Operands *o) {
    Dtype common = AMP_DT_NONE;
    for (int i = 0; i < o->count; i++) {
        Dtype t = dtype_of(o, i);
        if (!shares_type(o, i)) continue;
        if (t == AMP_DT_NONE) t = o->items[i].kind == ITEM_FLOAT ? AMP_DT_F16 : AMP_DT_NONE; /* any float */
        if (common == AMP_DT_NONE || t == common) common = t;
        else if (t != AMP_DT_NONE && (is_float(t) || is_float(common))) common = AMP_DT_F32;
    }
    return common;
}

static Val cast_to_f32(const Operands *o, int i, Val v) {
    Item cast = emit_op(o->e, o->locs[i], ir_op_new(o->e->f, OP_cast, &v, 1), &o->locs[i]);
    return cast.kind == ITEM_TENSOR ? cast.tensor : NO_VAL;
}

static bool is_integer(Dtype t) { return t == AMP_DT_I32 || t == AMP_DT_U8; }

/* Operand |i| in type |common|; a float of either width stays where no one type is needed. */
static bool convert(const Operands *o, int i, Dtype common) {
    const Item *item = &o->items[i];
    Dtype t = dtype_of(o, i);
    if (t == AMP_DT_NONE) {
        double number = item->kind == ITEM_INT ? (double)item->i.mul : item->f;
        Dtype type = shares_type(o, i) && common == AMP_DT_I32 ? AMP_DT_I32 : AMP_DT_F32;
        o->in[i] = emit_const_of(o->e, o->locs[i], type, number);
        return o->in[i].id != 0;
    }
    o->in[i] = item->tensor;
    if (!shares_type(o, i) || t == common)
        return t != AMP_DT_U8 || letter_of(o, i) != 'v' || refuse(o, i, "floats or i32");
    if (letter_of(o, i) == 'v' && is_integer(t) && is_float(common)) o->in[i] = cast_to_f32(o, i, item->tensor);
    else if (is_float(t) && is_float(common)) {
        bool must = letter_of(o, i) == 't' || ir_op_info[o->code].flags & PRODUCT;
        if (must && t != AMP_DT_F32) o->in[i] = cast_to_f32(o, i, item->tensor);
    } else if (letter_of(o, i) == 'v') return refuse(o, i, "floats or i32");
    else {
        Diag *diag = report(o->e, o->locs[i], "%s takes tensors of one type; this is %s beside %s", noun_of(o->code),
                            item_describe(o->e, item), amp_dtype_name(common));
        diag_help(o->e->d, diag, "to_f32(...) converts");
        return false;
    }
    return o->in[i].id != 0;
}

bool take_operands(Elab *e, Opcode code, const char *takes, const Item *items, const Loc *locs, int count, Val *in) {
    Operands o = {e, code, takes, items, locs, count, in};
    bool good = true;
    for (int i = 0; i < count; i++) good = check_kind(&o, i) && check_dtype(&o, i) && good;
    Dtype common = good ? common_type(&o) : AMP_DT_NONE;
    for (int i = 0; i < count && good; i++) good = convert(&o, i, common) && good;
    return good;
}
