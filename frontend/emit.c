/* emit.c: appending ops and inputs to `forward`, and remembering for messages what people call the values. */
#include "frontend/elaborate.h"

void set_origin(Elab *e, Val v, const char *name, Loc loc) {
    while (e->origins.len <= (int)v.id) vec_push(e->a, &e->origins, (Origin){0});
    e->origins.data[v.id] = (Origin){name, user_place(e, loc)};
}

static Origin origin_of(const Elab *e, Val v) {
    return (int)v.id < e->origins.len ? e->origins.data[v.id] : (Origin){0};
}

void note_operand(Elab *e, Diag *diag, Val v, Loc used) {
    Item item = item_tensor(v);
    const State *param = ir_state_of(e->f, v);
    Origin origin = origin_of(e, v);
    const char *name = origin.name ? origin.name : param ? param->name : loc_text(e->a, used);
    Text type;
    text_init(&type, e->a);
    type_print(&type, ir_dtype(e->f, item.tensor), ir_shape(e->f, item.tensor));
    diag_note(e->d, diag, origin.loc.source ? origin.loc : user_place(e, used), "%s is %s", name, text_str(&type));
}

static Item report_shapes(Elab *e, Loc loc, const Op *o, const Loc *operands, const char *wrong) {
    Diag *diag = report_text(e, loc, wrong);
    for (int i = 0; i < o->n_in; i++) {
        bool again = false;
        for (int k = 0; k < i; k++) again = again || o->in[k].id == o->in[i].id;
        if (!again) note_operand(e, diag, o->in[i], operands[i]);
    }
    note_calls(e, diag);
    return ERROR_ITEM;
}

/* "conv2d: ..." of an op; inside a layer under the layer's name, which is what a person called. */
static const char *in_layers_name(Elab *e, const Op *o, const char *wrong) {
    const char *name = ir_op_info[o->code].name;
    size_t n = strlen(name);
    if (!e->frame->layer || strncmp(wrong, name, n) || wrong[n] != ':') return wrong;
    return arena_printf(e->a, "%s%s", e->frame->layer, wrong + n);
}

static const char *too_large(Elab *e, const Op *o, const InferredTypes *types) {
    for (int i = 0; i < types->count; i++)
        if (!shape_is_small(&types->shape[i]))
            return arena_printf(e->a, "%s: the result is too large", ir_op_info[o->code].name);
    return NULL;
}

/* The op's results: as inferred, or where whoever made the op stated them, checked. */
static bool make_results(Elab *e, Loc loc, Op *o, const Loc *operands) {
    InferredTypes types;
    const char *wrong = ir_infer(e->f, o, AMP_DT_F32, &types);
    if (wrong && types.wrong) wrong = types.wrong;
    if (!wrong) wrong = too_large(e, o, &types);
    if (wrong) report_shapes(e, loc, o, operands, in_layers_name(e, o, wrong));
    else if (!o->n_out) ir_make_results(e->f, o, AMP_DT_F32, NULL);
    return !wrong;
}

void emit_results(Elab *e, Loc loc, Op *o, const Loc *operands, Item *out, int results) {
    for (int i = 0; i < results; i++) out[i] = ERROR_ITEM;
    if (!charge(e, loc, 1)) return;
    o->path = unique_path(e, e->frame->scope, ir_op_info[o->code].name);
    o->layer = e->frame->layer;
    o->pos = position(e, loc);
    if (!make_results(e, loc, o, operands)) return;
    for (int i = 0; i < results; i++) {
        set_origin(e, o->out[i], NULL, loc);
        out[i] = item_tensor(o->out[i]);
    }
}

Item emit_op(Elab *e, Loc loc, Op *o, const Loc *operands) {
    Item item;
    emit_results(e, loc, o, operands, &item, 1);
    return item;
}

Val emit_const_of(Elab *e, Loc loc, Dtype dtype, double value) {
    Op *o = ir_op_new(e->f, OP_const, NULL, 0);
    ir_attr(o, "value")->f = value;
    if (dtype != AMP_DT_F32) ir_result(e->f, o, NULL, dtype, shape_scalar());
    Item item = emit_op(e, loc, o, NULL);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

Val emit_const(Elab *e, Loc loc, double value) { return emit_const_of(e, loc, AMP_DT_F32, value); }

Val add_input(Elab *e, const Name *name, Dtype dtype, Shape shape) {
    Val v = ir_add_input(e->f, unique_value_name(e, name->text), dtype, shape);
    set_origin(e, v, name->text, name->loc);
    return v;
}
