/* backward.c: see backward.h. */
#include "passes/backward.h"

#include "passes/rewrite.h"

Dtype gradient_dtype(const Func *f, Val v) { return ir_dtype(f, v) == AMP_DT_TF32 ? AMP_DT_F32 : ir_dtype(f, v); }

void backward_start(Backward *b, const Op *o, Val dy, const char *const *operands) {
    b->op = o;
    b->dy = dy;
    b->operands = operands;
    b->operand = 0;
    memset(b->emitted, 0, sizeof b->emitted);
}

bool backward_wants(Backward *b, int i) {
    if (i >= b->op->n_in || !b->wanted[b->op->in[i].id]) return false;
    b->operand = i;
    return true;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* "fc1.linear.grad", "fc1.linear.grad.weight", "loss.div.grad.b_1" */
static const char *next_path(Backward *b) {
    const char *name = b->operand == OUTPUT ? "output" : b->operands[b->operand];
    int n = b->emitted[b->operand]++;
    Text t;
    text_init(&t, b->f->module->arena);
    text_printf(&t, "%s.grad", b->op->path ? b->op->path : ir_op_info[b->op->code].name);
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
    return new_op(b, code, (Val[]){ first, second }, second.id ? 2 : 1);
}

Val backward_result(Backward *b, Op *o, Dtype t) { return ir_make_results(b->f, o, t, NULL); }

Val backward_emit(Backward *b, Opcode code, Dtype t, int n_in, ...) {
    Val in[MAX_OPERANDS];
    va_list args;
    va_start(args, n_in);
    for (int i = 0; i < n_in; i++) in[i] = va_arg(args, Val);
    va_end(args);
    return backward_result(b, new_op(b, code, in, n_in), t);
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
