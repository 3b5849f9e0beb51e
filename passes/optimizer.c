/* optimizer: the update of every parameter, moment and counter.
 * needs: scale.  breaks: nothing.
 *
 *   result grad.w = %3   =>   %step.next = increment(%step) : i64
 *   result ok = %ok           %4, %5, %6 = adamw(%w, %3, %step.next, %"w/m", %"w/v"; lr = 0.001) : f32[32, 16], ...
 *                             assign(%w, %4) if %ok   assign(%"w/m", %5) if %ok   assign(%"w/v", %6) if %ok
 *                             assign(%step, %step.next) if %ok
 *                             assign(%iteration, %7)        always: a skipped step draws a new dropout mask
 *
 * Without the result "ok" (nothing was scaled) every step is applied.
 */
#include "passes/modes.h"
#include "passes/passes.h"
#include "passes/place.h"

enum { MAX_SLOTS = 2 };

typedef struct Optimizer {
    const char *name;
    Opcode code;
    const char *slots[MAX_SLOTS]; /* its moments */
    const char *unless_zero;      /* the argument without which there are no moments */
} Optimizer;

static const Optimizer optimizers[] = {
    { "sgd", OP_sgd, { "momentum" }, "momentum" },
    { "adam", OP_adam, { "m", "v" }, NULL },
    { "adamw", OP_adamw, { "m", "v" }, NULL },
};

typedef struct Training {
    Module *m;
    Func *f;
    const Optimizer *optimizer;
    Val ok;   /* predicate of every write; NO_VAL: always */
    Val step; /* the number of this update, from 1 */
} Training;

static const Optimizer *find_optimizer(PassContext *c) {
    const char *name = c->m->optimizer.name ? c->m->optimizer.name : "none";
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (!strcmp(optimizers[i].name, name)) return &optimizers[i];
    Diag *diag = place_error(c, c->m->optimizer.pos, "optimizer %s is not built yet", name);
    diag_help(c->diags, diag, "there are sgd, adam and adamw");
    return NULL;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* What is kept from step to step is f32 or an integer, and is computed so. */
static void explain(Training *t, Op *o, const char *of, const char *what) {
    o->path = arena_printf(t->m->arena, "%s.%s", of, what);
    o->pos = t->m->optimizer.pos;
    o->reason = ir_reason(t->m, "update");
    o->reason->relation = "of";
    o->reason->neighbour = of;
}

static void assign(Training *t, Val state, Val next, Val pred) {
    Op *o = ir_op_new(t->f, OP_assign, (Val[]){ state, next }, 2);
    explain(t, o, ir_value(t->f, state)->name, "assign");
    o->pred = pred;
}

/* The state's next value, under the state's name; not in a step that is skipped. */
static void assign_next(Training *t, Val state, Val next) {
    ir_rename(t->f, next, arena_printf(t->m->arena, "%s.next", ir_value(t->f, state)->name));
    assign(t, state, next, t->ok);
}

static Val counter(Training *t, const char *name) {
    State *s = ir_state_find(t->m, name);
    return ir_use_state(t->f, s ? s : ir_state_new(t->m, name, STATE_COUNTER, AMP_DT_I64, shape_scalar()));
}

static Val increment(Training *t, Val state) {
    const char *name = ir_value(t->f, state)->name;
    Val next = ir_emit(t->f, OP_increment, AMP_DT_I64, arena_printf(t->m->arena, "%s.next", name), 1, state);
    explain(t, ir_def(t->f, next), name, "increment");
    return next;
}

/* An argument of the call; the model may write a whole number where the op wants a float. */
static void set_attribute(const CallArg *arg, AttrType type, AttrValue *out) {
    if (type == ATTR_FLOAT) out->f = arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
    else *out = arg->value;
}

static void set_attributes(const Call *call, Op *o) {
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++) {
        const CallArg *arg = ir_call_arg(call, specs[i].name);
        if (arg) set_attribute(arg, specs[i].type, &o->attr[i]);
    }
}

static bool keeps_moments(const Training *t) {
    const char *name = t->optimizer->unless_zero;
    const CallArg *arg = name ? ir_call_arg(&t->m->optimizer, name) : NULL;
    return !name || (arg && (arg->type == ATTR_INT ? arg->value.i != 0 : arg->value.f != 0.0));
}

static Val moment(Training *t, const State *param, const char *slot) {
    const char *name = arena_printf(t->m->arena, "%s/%s", param->name, slot);
    State *s = ir_state_new(t->m, name, STATE_MOMENT, AMP_DT_F32, param->shape);
    s->of = param->name;
    s->slot = slot;
    return ir_use_state(t->f, s);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { FIRST_MOMENT = 5 };

/* A number of the call, as an f64 scalar. */
static Val rate(const Training *t, const char *name) {
    const CallArg *arg = ir_call_arg(&t->m->optimizer, name);
    Val v = ir_emit(t->f, OP_const, AMP_DT_F64, name, 0);
    Op *o = ir_def(t->f, v);
    if (arg) ir_attr(o, "value")->f = arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
    o->reason = ir_reason(t->m, "update");
    return v;
}

/* (w, gradient, step, lr, weight decay, moments...): the next w and moments, in that order. */
static void update(Training *t, const State *param, Val gradient) {
    Val in[FIRST_MOMENT + MAX_SLOTS] = { ir_use_state(t->f, param), gradient, t->step, rate(t, "lr"), rate(t, "weight_decay") };
    int moments = 0;
    while (keeps_moments(t) && moments < MAX_SLOTS && t->optimizer->slots[moments]) {
        in[FIRST_MOMENT + moments] = moment(t, param, t->optimizer->slots[moments]);
        moments++;
    }
    Op *o = ir_op_new(t->f, t->optimizer->code, in, FIRST_MOMENT + moments);
    set_attributes(&t->m->optimizer, o);
    explain(t, o, param->name, t->optimizer->name);
    ir_make_results(t->f, o, AMP_DT_F32, NULL);
    assign_next(t, in[0], o->out[0]);
    for (int i = 0; i < moments; i++) assign_next(t, in[FIRST_MOMENT + i], o->out[1 + i]);
}

static void update_all(Training *t) {
    Val step = counter(t, "step"), iteration = counter(t, "iteration");
    int params = t->m->states.len;
    t->step = increment(t, step);
    for (int i = 0; i < params; i++) {
        const State *s = t->m->states.data[i];
        Val gradient = result_find(t->f, arena_printf(t->m->arena, "grad.%s", s->name));
        if (s->role == STATE_PARAM && gradient.id) update(t, s, gradient);
    }
    assign(t, step, t->step, t->ok);
    assign(t, iteration, increment(t, iteration), NO_VAL);
}

bool pass_optimizer(PassContext *c) {
    Training t = { .m = c->m, .f = ir_func_find(c->m, "train_step") };
    if (t.f) {
        t.optimizer = find_optimizer(c);
        t.ok = result_find(t.f, "ok");
        if (!t.optimizer) return false;
        update_all(&t);
    }
    c->m->stage = STAGE_OPTIMIZER;
    return true;
}
