/* emit.c: appending ops and inputs to `forward`, and remembering for messages what people call the values. */
#include "frontend/elaborate.h"

void set_origin(Elab *e, Val v, const char *name, Loc loc) {
    while (e->origins.len <= (int)v.id) vec_push(e->a, &e->origins, (Origin){0});
    e->origins.data[v.id] = (Origin){name, user_place(e, loc)};
}

static Origin origin_of(const Elab *e, Val v) {
    return (int)v.id < e->origins.len ? e->origins.data[v.id] : (Origin){0};
}

/* "x is f32[N, 784]", at the place where x was bound, or else where it is used. */
static void note_operand(Elab *e, Diag *diag, Val v, Loc used) {
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
    for (int i = 0; i < o->n_in; i++) note_operand(e, diag, o->in[i], operands[i]);
    note_calls(e, diag);
    return ERROR_ITEM;
}

Item emit_op(Elab *e, Loc loc, Op *o, const Loc *operands) {
    if (!charge(e, loc, 1)) return ERROR_ITEM;
    const char *name = ir_op_info[o->code].name;
    o->path = unique_path(e, e->frame->scope, name);
    o->layer = e->frame->layer;
    o->pos = position(e, loc);
    InferredTypes types;
    if (ir_infer(e->f, o, AMP_DT_F32, &types)) return report_shapes(e, loc, o, operands, types.wrong);
    Val v = ir_make_results(e->f, o, AMP_DT_F32, NULL);
    set_origin(e, v, NULL, loc);
    return item_tensor(v);
}

Val emit_const(Elab *e, Loc loc, double value) {
    Op *o = ir_op_new(e->f, OP_const, NULL, 0);
    ir_attr(o, "value")->f = value;
    Item item = emit_op(e, loc, o, NULL);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

Val add_input(Elab *e, const Name *name, Dtype dtype, Shape shape) {
    Val v = ir_add_input(e->f, unique_value_name(e, name->text), dtype, shape);
    set_origin(e, v, name->text, name->loc);
    return v;
}
