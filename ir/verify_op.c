/* verify_op.c: one op: its level, operands, results, shapes, types, attributes and predicate. */
#include "ir/verify.h"

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void check_operands(Verifying *c, const Op *o) {
    for (int i = 0; i < o->n_in && !verify_failed(c); i++) {
        if (!verify_is_value(c, o->in[i])) verify_fail_op(c, o, "operand %d is not a value", i + 1);
        else if (!verify_is_defined(c, o->in[i]))
            verify_fail_op(c, o, "%%%s is used before it is defined", ir_value(c->f, o->in[i])->name);
    }
}

static void check_predicate(Verifying *c, const Op *o) {
    if (!o->pred.id) return;
    if (!(ir_op_info[o->code].flags & EFFECT)) verify_fail_op(c, o, "has a predicate, but no effect");
    else if (!verify_is_defined(c, o->pred)) verify_fail_op(c, o, "its predicate is not defined before it");
    else if (!verify_is_bool_scalar(c, o->pred))
        verify_fail_op(c, o, "its predicate %%%s is not a bool scalar", ir_value(c->f, o->pred)->name);
}

static void check_attrs(Verifying *c, const Op *o) {
    const AttrValue *p = o->code == OP_dropout ? ir_attr(o, "p") : NULL;
    const AttrValue *approximate = ir_attr(o, "approximate");
    if (p && !(p->f >= 0.0 && p->f < 1.0)) verify_fail_op(c, o, "p must be at least 0 and less than 1");
    if (approximate && (!approximate->s || (strcmp(approximate->s, "none") && strcmp(approximate->s, "tanh"))))
        verify_fail_op(c, o, "approximate must be none or tanh");
}

static void check_types(Verifying *c, const Op *o) {
    int level = legal_level(c->m->stage);
    if (legal_types(c->f, o, level)) return;
    Text t;
    text_init(&t, c->m->arena);
    text_putc(&t, '(');
    for (int i = 0; i < o->n_in; i++) text_printf(&t, "%s%s", i ? ", " : "", amp_dtype_name(ir_dtype(c->f, o->in[i])));
    text_puts(&t, ") ->");
    for (int i = 0; i < o->n_out; i++)
        text_printf(&t, "%s %s", i ? "," : "", amp_dtype_name(ir_dtype(c->f, o->out[i])));
    verify_fail_op(c, o, "not legal at stage %s with %s", ir_stage_names[c->m->stage], text_str(&t));
}

/* f64 and i64 exist as scalars only, once there are loops to emit. */
static void check_scalars(Verifying *c, const Op *o) {
    if (legal_level(c->m->stage) == GRAPH) return;
    for (int i = 0; i < o->n_out; i++) {
        const Value *v = ir_value(c->f, o->out[i]);
        if ((v->dtype == AMP_DT_F64 || v->dtype == AMP_DT_I64) && v->shape.rank)
            verify_fail_op(c, o, "%%%s is %s: this type is for scalars only", v->name,
                           verify_type_text(c, v->dtype, &v->shape));
    }
}

static void check_shapes(Verifying *c, const Op *o) {
    InferredTypes types;
    const char *wrong = ir_infer(c->f, o, o->n_out ? ir_dtype(c->f, o->out[0]) : AMP_DT_F32, &types);
    if (wrong) {
        verify_fail(c, "%s%s%s", o->path ? o->path : "", o->path ? ": " : "", wrong);
        return;
    }
    if (types.count != o->n_out) verify_fail_op(c, o, "has %d results, not %d", o->n_out, types.count);
    for (int i = 0; i < o->n_out && !verify_failed(c); i++) {
        const Value *v = ir_value(c->f, o->out[i]);
        if (!shape_equal(&v->shape, &types.shape[i]))
            verify_fail_op(c, o, "%%%s is %s, its operands make it %s", v->name,
                           verify_type_text(c, v->dtype, &v->shape), verify_type_text(c, v->dtype, &types.shape[i]));
    }
}

static void check_results(Verifying *c, const Op *o, int at) {
    for (int i = 0; i < o->n_out && !verify_failed(c); i++) {
        if (!verify_is_value(c, o->out[i])) {
            verify_fail_op(c, o, "result %d is not a value", i + 1);
            return;
        }
        const Value *v = ir_value(c->f, o->out[i]);
        if (v->kind != VAL_RESULT || v->def.id != c->f->body.data[at].id || v->out != i)
            verify_fail_op(c, o, "%%%s does not say that it is this op's result %d", v->name, i + 1);
    }
}

static void check_assign(Verifying *c, const Op *o) {
    Val state = o->in[0];
    const char *name = ir_value(c->f, state)->name;
    if (ir_value(c->f, state)->kind != VAL_STATE) verify_fail_op(c, o, "%%%s is not a state", name);
    if (c->assigned[state.id]) verify_fail_op(c, o, "%%%s is written twice", name);
}

/* A level that has the op, and an op that is one. */
static bool check_level(Verifying *c, const Op *o) {
    if (o->code == OP_NONE || o->code >= OP_COUNT) verify_fail(c, "an op without a code");
    else if (!(ir_op_levels(o->code) & legal_level(c->m->stage)))
        verify_fail_op(c, o, "may not appear at stage %s", ir_stage_names[c->m->stage]);
    return !verify_failed(c);
}

void verify_op(Verifying *c, const Op *o, int at) {
    if (!check_level(c, o)) return;
    check_operands(c, o);
    check_results(c, o, at);
    if (verify_failed(c)) return;
    check_shapes(c, o);
    if (!verify_failed(c)) check_types(c, o);
    check_scalars(c, o);
    check_predicate(c, o);
    check_attrs(c, o);
    if (!verify_failed(c) && o->code == OP_assign) check_assign(c, o);
    if (o->region && !ir_region((Func *)c->f, o->region))
        verify_fail_op(c, o, "region #%u does not exist", (unsigned)o->region);
    for (int i = 0; i < o->n_out && !verify_failed(c); i++) verify_define(c, o->out[i]);
}

void verify_mark_assigned(Verifying *c, int first, int count) {
    for (int i = first; i < first + count; i++) {
        const Op *o = ir_op_at(c->f, i);
        if (o->code == OP_assign) c->assigned[o->in[0].id] = true;
    }
}
