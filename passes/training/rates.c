/* rates.c: the numbers of an optimizer that are not attributes, because they may change from step to step or from group
 * to group.
 *
 * The learning rate is a state, so that a program can set it while it trains; what the text says is its first value.
 * Beside a schedule it is -1 at first, which leaves the rate to the schedule.  A group's factor is a state, too.
 *
 *   lr = 0.001                                    =>   %lr   = settable_rate(%learning_rate; v = 0.001)          : f64
 *
 *   lr = cosine(peak = 6e-4, warmup = 700, ...)   =>   %scheduled = cosine_rate(%step; peak = 0.0006, ...)       : f64
 *                                                      %lr        = settable_rate(%learning_rate, %scheduled)    : f64
 *                                                      assign(%scheduled_rate, %scheduled)
 *
 *   group "*.bias": lr_scale = 0.1                =>   %lr.1 = mul(%lr, %lr_scale.0)                             : f64
 *
 * An optimizer that a group gives has a rate of its own, a constant or a schedule; the factor is what a program sets.
 */
#include "passes/training/training.h"

static const char *const LR = "lr", *const LR_SCALE = "lr_scale", *const WEIGHT_DECAY = "weight_decay";

/* NO_BLOCK: of the only one. */
static int block_number(const BlockRates *b) { return train_block_count(b->f->module) == 1 ? NO_BLOCK : b->index; }

/* |group|: that gives it; NO_BLOCK: the block's. */
static const Call *optimizer_of(const BlockRates *b, int group) {
    return group == NO_BLOCK ? &b->block->optimizer : &b->block->groups.data[group].optimizer;
}

static const Call *schedule_of(const Call *optimizer, const char *argument) {
    const CallArg *arg = ir_call_arg(optimizer, argument);
    return arg ? arg->call : NULL;
}

/* It changes by itself, from step to step. */
static bool is_scheduled(const Call *call) {
    if (!call) return false;
    Opcode code = ir_schedule_op(call->name);
    return code != OP_constant_rate && code != OP_settable_rate;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool is_free(BlockRates *b, CounterKind kind) {
    const Module *m = b->f->module;
    const State *taken = ir_state_find(m, amp_counter_text(m->arena, kind, block_number(b)));
    if (!taken) return true;
    place_error(b->c, taken->pos, "%s is reserved for training state; name it differently, with `as`", taken->name);
    return false;
}

static bool check_schedules(BlockRates *b, const Call *optimizer) {
    bool ok = true;
    for (int i = 0; i < optimizer->args.len; i++) {
        const Call *call = optimizer->args.data[i].call;
        if (!call || ir_schedule_op(call->name)) continue;
        place_error(b->c, call->pos, "schedule %s is not supported", call->name);
        ok = false;
    }
    return ok;
}

bool rates_check(BlockRates *b) {
    bool ok = is_free(b, COUNTER_LEARNING_RATE) && is_free(b, COUNTER_SCHEDULED_RATE);
    for (int i = NO_BLOCK; i < b->block->groups.len; i++) ok = check_schedules(b, optimizer_of(b, i)) && ok;
    return ok;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static Val state(BlockRates *b, CounterKind kind, int32_t number, double initial) {
    State *s = ir_counter_new(b->f->module, kind, number);
    if (initial != 0) {
        s->init.name = amp_initialisers[INIT_constant].name;
        ir_call_set(b->f->module->arena, &s->init, amp_initialisers[INIT_constant].args[0], ATTR_FLOAT,
                    (AttrValue){.f = initial});
    }
    return ir_use_state(b->f, s);
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void explain(BlockRates *b, Op *o, const char *what) {
    train_explain_update(b->f->module, b->block, o, "optimizer", what);
}

static Val constant(BlockRates *b, const char *name, double value) {
    Val v = ir_emit(b->f, OP_const, AMP_DT_F64, name, 0);
    Op *o = ir_def(b->f, v);
    ir_attr(o, "value")->f = value;
    explain(b, o, name);
    return v;
}

static Val scheduled(BlockRates *b, const Call *call, const char *what, const char *name) {
    Opcode code = ir_schedule_op(call->name);
    Op *o = ir_op_new(b->f, code, &b->done, code == OP_constant_rate ? 0 : 1);
    train_set_attributes(call, o);
    explain(b, o, what);
    o->pos = call->pos;
    return ir_make_results(b->f, o, AMP_DT_F64, name);
}

/* For the program to ask for; no update depends on it. */
static void keep(BlockRates *b, Val rate) {
    Val kept = state(b, COUNTER_SCHEDULED_RATE, block_number(b), 0);
    explain(b, ir_op_new(b->f, OP_assign, (Val[]){kept, rate}, 2), "scheduled_rate");
}

/* Of an optimizer that a group gives: a program sets the group's factor. */
static Val rate_of_group(BlockRates *b, int optimizer) {
    const CallArg *arg = ir_call_arg(optimizer_of(b, optimizer), LR);
    const Call *call = arg ? arg->call : NULL;
    if (is_scheduled(call)) return scheduled(b, call, LR, LR);
    return constant(b, LR, train_number(call ? ir_call_arg(call, "v") : arg, 0));
}

static Val learning_rate(BlockRates *b) {
    const CallArg *arg = ir_call_arg(&b->block->optimizer, LR);
    const Call *call = schedule_of(&b->block->optimizer, LR);
    double number = train_number(call ? ir_call_arg(call, "v") : arg, 0);
    Val in[2], lr;
    int count = 1;
    if (is_scheduled(call)) {
        in[count++] = scheduled(b, call, "scheduled", "scheduled");
        keep(b, in[1]);
        number = AMP_RATE_OF_SCHEDULE;
    }
    in[0] = state(b, COUNTER_LEARNING_RATE, block_number(b), number);
    Op *o = ir_op_new(b->f, OP_settable_rate, in, count);
    ir_attr(o, "v")->f = number;
    explain(b, o, LR);
    if (call) o->pos = call->pos;
    lr = ir_make_results(b->f, o, AMP_DT_F64, LR);
    return lr;
}

static Val weight_decay(BlockRates *b, const Call *optimizer) {
    const Call *call = schedule_of(optimizer, WEIGHT_DECAY);
    if (call) return scheduled(b, call, WEIGHT_DECAY, WEIGHT_DECAY);
    return constant(b, WEIGHT_DECAY, train_number(ir_call_arg(optimizer, WEIGHT_DECAY), 0));
}

/* ---- each once --------------------------------------------------------------------------------------------------- */

static Val *find(BlockRates *b, const char *argument, int optimizer, int group) {
    for (int i = 0; i < b->made.len; i++) {
        MadeRate *r = &b->made.data[i];
        if (r->argument == argument && r->optimizer == optimizer && r->group == group) return &r->value;
    }
    return NULL;
}

static Val remember(BlockRates *b, const char *argument, int optimizer, int group, Val v) {
    vec_push(b->f->module->arena, &b->made, ((MadeRate){argument, optimizer, group, v}));
    return v;
}

/* A group's factor, which optimizers share. */
static Val factor(BlockRates *b, int group) {
    const Val *known = find(b, LR_SCALE, NO_BLOCK, group);
    if (known) return *known;
    int number = ir_group_number(b->f->module, b->index, group);
    return remember(b, LR_SCALE, NO_BLOCK, group,
                    state(b, COUNTER_LR_SCALE, number, b->block->groups.data[group].lr_scale));
}

static Val scaled(BlockRates *b, Val whole, int group) {
    Val v = ir_emit(b->f, OP_mul, AMP_DT_F64, LR, 2, whole, factor(b, group));
    explain(b, ir_def(b->f, v), LR);
    return v;
}

Val rate_of_param(BlockRates *b, const ParamTraining *settings) {
    const int by = settings->optimizer, group = settings->lr_scale;
    const Val *known = find(b, LR, by, group);
    if (known) return *known;
    known = find(b, LR, by, NO_BLOCK);
    Val whole = known            ? *known
                : by == NO_BLOCK ? remember(b, LR, by, NO_BLOCK, learning_rate(b))
                                 : remember(b, LR, by, NO_BLOCK, rate_of_group(b, by));
    return group == NO_BLOCK ? whole : remember(b, LR, by, group, scaled(b, whole, group));
}

/* Groups that set the same number share it. */
static int first_with_decay(const BlockRates *b, int group) {
    for (int i = 0; group != NO_BLOCK && i < group; i++) {
        const TrainGroup *g = &b->block->groups.data[i];
        if (g->has_weight_decay && g->weight_decay == b->block->groups.data[group].weight_decay) return i;
    }
    return group;
}

Val decay_of_param(BlockRates *b, const ParamTraining *settings) {
    const int group = first_with_decay(b, settings->weight_decay),
              by = group == NO_BLOCK ? settings->optimizer : NO_BLOCK;
    const Val *known = find(b, WEIGHT_DECAY, by, group);
    if (known) return *known;
    if (group == NO_BLOCK) return remember(b, WEIGHT_DECAY, by, group, weight_decay(b, optimizer_of(b, by)));
    return remember(b, WEIGHT_DECAY, by, group, constant(b, WEIGHT_DECAY, b->block->groups.data[group].weight_decay));
}
