/* infer.c: the types of an op's results from its operands and attributes: the shape rules by opcode, from ops.def. */
#include "ir/infer.h"

static InferRule *const rules[OP_COUNT] = {
#define OP(name, shape, ...) [OP_##name] = infer_##shape,
#include "ir/ops.def"
};

static const char *wrong_count(const OpInfo *info, OpArity arity, Arena *a, int has) {
    if (arity.in_max == arity.in_min)
        return arena_printf(a, "%s: needs %d operands, has %d", info->name, arity.in_min, has);
    if (arity.in_max == MANY)
        return arena_printf(a, "%s: needs at least %d operands, has %d", info->name, arity.in_min, has);
    return arena_printf(a, "%s: needs %d to %d operands, has %d", info->name, arity.in_min, arity.in_max, has);
}

const char *ir_infer(const Func *f, const Op *o, Dtype t, InferredTypes *out) {
    const OpInfo *info = &ir_op_info[o->code];
    Arena *a = f->module->arena;
    *out = (InferredTypes){0};
    if (!rules[o->code]) return "no op";
    OpArity arity = ir_op_arity(o->code);
    if (o->n_in < arity.in_min || o->n_in > arity.in_max) return wrong_count(info, arity, a, o->n_in);
    for (int i = 0; i < o->n_in; i++)
        if (!o->in[i].id || !ir_value(f, o->in[i]))
            return arena_printf(a, "%s: operand %d is not a value of the function", info->name, i + 1);
    Inferring c = {f, o, t, out};
    if (info->flags & GIVEN && !infer_given(&c, 0)) return infer_mismatch(&c, "needs its result's type");
    return rules[o->code](&c);
}
