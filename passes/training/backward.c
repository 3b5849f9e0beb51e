/* backward.c: see backward.h. */
#include "passes/training/backward.h"

#include "passes/common/common.h"

Dtype gradient_dtype(const Func *f, Val v) { return ir_dtype(f, v) == AMP_DT_TF32 ? AMP_DT_F32 : ir_dtype(f, v); }

void backward_start(Backward *b, const Op *o, Val dy, const char *const *operands) {
    b->op = o;
    b->dy = dy;
    b->operands = operands;
    b->operand = 0;
    b->emitted = arena_array(b->f->module->arena, int, o->n_in + 2); /* dy's, then the operands' */
}

bool backward_wants(Backward *b, int i) {
    if (i >= b->op->n_in || !b->wanted[b->op->in[i].id]) return false;
    b->operand = i;
    return true;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* What the next op is for: "weight", "output", a number where the op has any number of operands, or NULL. */
static const char *operand_name(const Backward *b) {
    if (b->operand == OUTPUT) return "output";
    const char *name = b->operand < NAMED_OPERANDS ? b->operands[b->operand] : NULL;
    bool counted = !name && ir_op_arity(b->op->code).in_max == MANY;
    return counted ? arena_printf(b->f->module->arena, "%d", b->operand) : name;
}

/* "fc1.linear.grad", "fc1.linear.grad.weight", "loss.div.grad.b_1" */
static const char *next_path(Backward *b) {
    const char *name = operand_name(b);
    int n = b->emitted[b->operand + 1]++;
    Text t;
    text_init(&t, b->f->module->arena);
    text_printf(&t, "%s.%s", b->op->path ? b->op->path : ir_op_info[b->op->code].name, b->word);
    if (name) text_printf(&t, ".%s", name);
    if (n) text_printf(&t, "_%d", n);
    return text_str(&t);
}

/* A cast speaks for the op that wanted it. */
static const char *forward_path(const Op *o) {
    return o->code == OP_cast && o->reason && o->reason->neighbour ? o->reason->neighbour : o->path;
}

static void explain(Backward *b, Op *o) {
    o->path = next_path(b);
    o->layer = b->op->layer;
    o->pos = b->op->pos;
    o->reason = ir_reason(b->f->module, "gradient");
    o->reason->neighbour = forward_path(b->op);
    o->reason->relation = o->reason->neighbour ? "of" : NULL;
}

static Op *new_op(Backward *b, Opcode code, const Val *in, int n_in) {
    Op *o = ir_op_new(b->f, code, in, n_in);
    explain(b, o);
    return o;
}

Op *backward_op(Backward *b, Opcode code, Val first, Val second) {
    return new_op(b, code, (Val[]){first, second}, second.id ? 2 : 1);
}

Op *backward_op3(Backward *b, Opcode code, Val first, Val second, Val third) {
    return new_op(b, code, (Val[]){first, second, third}, 3);
}

Val backward_result(Backward *b, Op *o, Dtype t) { return ir_make_results(b->f, o, t, NULL); }

Val backward_emit(Backward *b, Opcode code, Dtype t, int n_in, ...) {
    enum { MOST = 5 };
    Val in[MOST];
    va_list args;
    va_start(args, n_in);
    for (int i = 0; i < n_in && i < MOST; i++) in[i] = va_arg(args, Val);
    va_end(args);
    return backward_result(b, new_op(b, code, in, n_in), t);
}

Val backward_reshape(Backward *b, Val v, Shape s) {
    if (shape_equal(ir_shape(b->f, v), &s)) return v;
    Op *o = backward_op(b, OP_reshape, v, NO_VAL);
    return ir_result(b->f, o, NULL, ir_dtype(b->f, v), s);
}

Val backward_dy_as(Backward *b, Dtype t) {
    if (ir_dtype(b->f, b->dy) == t) return b->dy;
    b->operand = OUTPUT;
    return backward_emit(b, OP_cast, t, 1, b->dy);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

void backward_give(Backward *b, int i, Val g) {
    Val v = b->op->in[i];
    Dtype t = gradient_dtype(b->f, v);
    b->operand = i;
    if (!shape_equal(ir_shape(b->f, g), ir_shape(b->f, v))) g = backward_emit(b, OP_sum_to, ir_dtype(b->f, g), 2, g, v);
    if (ir_dtype(b->f, g) != t) g = backward_emit(b, OP_cast, t, 1, g);
    Val *sum = &b->gradient[v.id];
    *sum = sum->id ? backward_emit(b, OP_add, t, 2, *sum, g) : g;
}

Val backward_gradient(Backward *b, Val v) {
    Val g = b->gradient[v.id];
    bool speaks_for_another =
        ir_dtype(b->f, v) == AMP_DT_TF32; /* the gradient goes on unchanged to the value that was rounded */
    if (g.id && is_numbered(b->f, g) && !is_numbered(b->f, v) && !speaks_for_another)
        ir_rename(b->f, g, arena_printf(b->f->module->arena, "d.%s", ir_value(b->f, v)->name));
    return g;
}
