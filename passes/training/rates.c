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
 */
#include "passes/training/training.h"

static const char *const LR = "lr", *const WEIGHT_DECAY = "weight_decay";

/* NO_BLOCK: of the only one. */
static int block_number(const BlockRates *b) { return train_block_count(b->f->module) == 1 ? NO_BLOCK : b->index; }

static const Call *schedule_of(const BlockRates *b, const char *argument) {
    const CallArg *arg = ir_call_arg(&b->block->optimizer, argument);
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

bool rates_check(BlockRates *b) {
    bool ok = is_free(b, COUNTER_LEARNING_RATE) && is_free(b, COUNTER_SCHEDULED_RATE);
    for (int i = 0; i < b->block->optimizer.args.len; i++) {
        const Call *call = b->block->optimizer.args.data[i].call;
        if (!call || ir_schedule_op(call->name)) continue;
        place_error(b->c, call->pos, "schedule %s is not supported", call->name);
        ok = false;
    }
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

static Val learning_rate(BlockRates *b) {
    const CallArg *arg = ir_call_arg(&b->block->optimizer, LR);
    const Call *call = schedule_of(b, LR);
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

static Val weight_decay(BlockRates *b) {
    const Call *call = schedule_of(b, WEIGHT_DECAY);
    if (call) return scheduled(b, call, WEIGHT_DECAY, WEIGHT_DECAY);
    return constant(b, WEIGHT_DECAY, train_number(ir_call_arg(&b->block->optimizer, WEIGHT_DECAY), 0));
}

/* ---- each once --------------------------------------------------------------------------------------------------- */

static Val *find(BlockRates *b, const char *argument, int group) {
    for (int i = 0; i < b->made.len; i++)
        if (b->made.data[i].argument == argument && b->made.data[i].group == group) return &b->made.data[i].value;
    return NULL;
}

static Val remember(BlockRates *b, const char *argument, int group, Val v) {
    vec_push(b->f->module->arena, &b->made, ((MadeRate){argument, group, v}));
    return v;
}

static Val scaled(BlockRates *b, Val whole, int group) {
    int number = ir_group_number(b->f->module, b->index, group);
    Val factor = state(b, COUNTER_LR_SCALE, number, b->block->groups.data[group].lr_scale);
    Val v = ir_emit(b->f, OP_mul, AMP_DT_F64, LR, 2, whole, factor);
    explain(b, ir_def(b->f, v), LR);
    return v;
}

Val rate_of_param(BlockRates *b, const ParamTraining *settings) {
    const Val *known = find(b, LR, settings->lr_scale);
    if (known) return *known;
    known = find(b, LR, NO_BLOCK);
    Val whole = known ? *known : remember(b, LR, NO_BLOCK, learning_rate(b));
    if (settings->lr_scale == NO_BLOCK) return whole;
    return remember(b, LR, settings->lr_scale, scaled(b, whole, settings->lr_scale));
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
    int group = first_with_decay(b, settings->weight_decay);
    const Val *known = find(b, WEIGHT_DECAY, group);
    if (known) return *known;
    if (group == NO_BLOCK) return remember(b, WEIGHT_DECAY, group, weight_decay(b));
    return remember(b, WEIGHT_DECAY, group, constant(b, WEIGHT_DECAY, b->block->groups.data[group].weight_decay));
}
