/* rates.c: the numbers of an optimizer that are no attributes, because they may change from step to step or from group
 * to group: the learning rate and the weight decay, as f64 scalars.  Each is made once for all parameters that share it.
 *
 *   lr = cosine(peak = 6e-4, warmup = 700, steps = 20000)   =>   %lr   = cosine_rate(%step; peak = 0.0006, ...) : f64
 *   group "*.bias": lr_scale = 0.1                               %0.1  = const(; value = 0.1)                   : f64
 *                                                                %lr.1 = mul(%lr, %0.1)                         : f64
 */
#include "passes/common/diag_at.h"
#include "passes/training/training_step.h"

static const struct Schedule {
    const char *name;
    Opcode code;
} schedules[] = {
    {"constant", OP_constant_rate}, {"cosine", OP_cosine_rate},       {"step", OP_step_rate},
    {"linear", OP_linear_rate},     {"one_cycle", OP_one_cycle_rate},
};

static const struct Schedule *find_schedule(const char *name) {
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (!strcmp(schedules[i].name, name)) return &schedules[i];
    return NULL;
}

bool step_check_rates(BlockStep *b) {
    bool ok = true;
    for (int i = 0; i < b->block->optimizer.args.len; i++) {
        const Call *call = b->block->optimizer.args.data[i].call;
        if (!call || find_schedule(call->name)) continue;
        place_error(b->c, call->pos, "schedule %s is not built yet", call->name);
        ok = false;
    }
    return ok;
}

static Val constant(BlockStep *b, const char *name, double value) {
    Val v = ir_emit(b->f, OP_const, AMP_DT_F64, name, 0);
    Op *o = ir_def(b->f, v);
    ir_attr(o, "value")->f = value;
    step_explain(b, o, "optimizer", name);
    return v;
}

static Val scheduled(BlockStep *b, const Call *call, const char *name) {
    Opcode code = find_schedule(call->name)->code;
    Op *o = ir_op_new(b->f, code, &b->done, code == OP_constant_rate ? 0 : 1);
    step_set_attributes(call, o);
    step_explain(b, o, "optimizer", name);
    o->pos = call->pos;
    return ir_make_results(b->f, o, AMP_DT_F64, name);
}

/* The argument times the factor. */
static Val make(BlockStep *b, const char *name, double factor) {
    const CallArg *arg = ir_call_arg(&b->block->optimizer, name);
    if (!arg || !arg->call) return constant(b, name, step_number(arg, 0) * factor);
    if (factor == 1.0) return scheduled(b, arg->call, name);
    Val whole = step_rate(b, name, 1.0), part = constant(b, "lr_scale", factor);
    Val v = ir_emit(b->f, OP_mul, AMP_DT_F64, name, 2, whole, part);
    step_explain(b, ir_def(b->f, v), "optimizer", name);
    return v;
}

static Val *find(BlockStep *b, const char *argument, double factor) {
    for (int i = 0; i < b->rates.len; i++)
        if (!strcmp(b->rates.data[i].argument, argument) && b->rates.data[i].factor == factor)
            return &b->rates.data[i].value;
    return NULL;
}

static Val remember(BlockStep *b, const char *argument, double factor, Val v) {
    vec_push(b->m->arena, &b->rates, ((Rate){argument, factor, v}));
    return v;
}

Val step_rate(BlockStep *b, const char *name, double factor) {
    const Val *known = find(b, name, factor);
    return known ? *known : remember(b, name, factor, make(b, name, factor));
}

Val step_group_decay(BlockStep *b, double value) {
    const Val *known = find(b, "group", value);
    return known ? *known : remember(b, "group", value, constant(b, "weight_decay", value));
}
