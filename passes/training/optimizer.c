/* optimizer: the update of every parameter, moment, buffer and counter.
 * needs: scale.  breaks: nothing.
 *
 *   result grad.w = %3        =>   %step.next = increment(%step) : i64
 *   result ok = %ok                %lr = const(; value = 0.001) : f64     %weight_decay = const(; value = 0.01) : f64
 *   result update.mean = %5        %6, %7, %8 = adamw(%w, %3, %step.next, %lr, %weight_decay, %"w/m", %"w/v") : ...
 *                                  assign(%w, %6) if %ok   assign(%"w/m", %7) if %ok   assign(%"w/v", %8) if %ok
 *                                  assign(%step, %step.next) if %ok
 *                                  assign(%mean, %5) if %ok
 *                                  assign(%iteration, %9)        always: a skipped step draws a new dropout mask
 *
 * Without the result "ok" (nothing was scaled) every step is applied.  Several train blocks that may skip alone (results
 * "ok.0", "ok.1", ...) count their own updates in "step.0", "step.1", ..., which drive their schedules and bias
 * corrections; "step" then counts the steps in which any block was updated.  A buffer is written with the parameters of
 * the block that its name belongs to; one of no block where all gradients are finite.
 */
#include "passes/common/function_modes.h"
#include "passes/common/diag_at.h"
#include "passes/training/training_step.h"

enum { MAX_SLOTS = 2, FIRST_MOMENT = 5 };

typedef struct Optimizer {
    const char *name;
    Opcode code;
    const char *slots[MAX_SLOTS]; /* its moments */
    const char *unless_zero;      /* the argument without which there are no moments */
} Optimizer;

static const Optimizer optimizers[] = {
    {"sgd", OP_sgd, {"momentum"}, "momentum"},
    {"adam", OP_adam, {"m", "v"}, NULL},
    {"adamw", OP_adamw, {"m", "v"}, NULL},
};

static const Optimizer *find_optimizer(PassContext *c, const Call *call) {
    const char *name = call->name ? call->name : "none";
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (!strcmp(optimizers[i].name, name)) return &optimizers[i];
    Diag *diag = place_error(c, call->pos, "optimizer %s is not built yet", name);
    diag_help(c->diags, diag, "there are sgd, adam and adamw");
    return NULL;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* What is kept from step to step is f32 or an integer, and is computed so. */
static void explain(Module *m, const Train *block, Op *o, const char *of, const char *what) {
    o->path = arena_printf(m->arena, "%s.%s", of, what);
    o->pos = block->optimizer.pos;
    o->reason = ir_reason(m, "update");
    o->reason->relation = "of";
    o->reason->neighbour = of;
}

void step_explain(BlockStep *b, Op *o, const char *of, const char *what) { explain(b->m, b->block, o, of, what); }

/* The same for what belongs to no block. */
static void explain_shared(Func *f, Op *o, const char *of, const char *what) {
    explain(f->module, train_block(f->module, 0), o, of, what);
}

void step_set_attributes(const Call *call, Op *o) {
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++) {
        const CallArg *arg = ir_call_arg(call, specs[i].name);
        if (!arg) continue;
        if (specs[i].type == ATTR_FLOAT) o->attr[i].f = step_number(arg, 0);
        else o->attr[i] = arg->value;
    }
}

double step_number(const CallArg *arg, double otherwise) {
    return !arg ? otherwise : arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
}

static void assign(Func *f, Val state, Val next, Val pred) {
    Op *o = ir_op_new(f, OP_assign, (Val[]){state, next}, 2);
    explain_shared(f, o, ir_value(f, state)->name, "assign");
    o->pred = pred;
}

/* The state's next value, under the state's name; not in a step that is skipped. */
static void assign_next(BlockStep *b, Val state, Val next) {
    ir_rename(b->f, next, arena_printf(b->m->arena, "%s.next", ir_value(b->f, state)->name));
    assign(b->f, state, next, b->ok);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static Val counter(Func *f, const char *name) {
    State *s = ir_state_find(f->module, name);
    return ir_use_state(f, s ? s : ir_state_new(f->module, name, STATE_COUNTER, AMP_DT_I64, shape_scalar()));
}

static Val increment(Func *f, Val state) {
    const char *name = ir_value(f, state)->name;
    Val next = ir_emit(f, OP_increment, AMP_DT_I64, arena_printf(f->module->arena, "%s.next", name), 1, state);
    explain_shared(f, ir_def(f, next), name, "increment");
    return next;
}

static Val explained(Func *f, Val v, const char *what) {
    explain_shared(f, ir_def(f, v), "step", what);
    return v;
}

/* bool: some block's gradients are finite. */
static Val any_block(Func *f, const Val *ok, int blocks) {
    Val count = NO_VAL;
    for (int i = 0; i < blocks; i++) {
        if (!ok[i].id) continue;
        Val one = explained(f, ir_emit(f, OP_cast, AMP_DT_I32, NULL, 1, ok[i]), "updated");
        count = !count.id ? one : explained(f, ir_emit(f, OP_add, AMP_DT_I32, NULL, 2, count, one), "updated");
    }
    Val none = explained(f, ir_emit(f, OP_const, AMP_DT_I32, NULL, 0), "none");
    return explained(f, ir_emit(f, OP_lt, AMP_DT_BOOL, "any.ok", 2, none, count), "any");
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static int moments_of(const Optimizer *o, const Call *call) {
    int count = 0;
    if (o->unless_zero && step_number(ir_call_arg(call, o->unless_zero), 0) == 0.0) return 0;
    while (count < MAX_SLOTS && o->slots[count]) count++;
    return count;
}

static Val moment(BlockStep *b, const State *param, const char *slot) {
    const char *name = arena_printf(b->m->arena, "%s/%s", param->name, slot);
    State *s = ir_state_new(b->m, name, STATE_MOMENT, AMP_DT_F32, param->shape);
    s->of = param->name;
    s->slot = slot;
    return ir_use_state(b->f, s);
}

/* (w, gradient, step, lr, weight decay, moments...): the next w and moments, in that order. */
static void update(BlockStep *b, const Optimizer *optimizer, const State *param, Val gradient) {
    const Call *call = &b->block->optimizer;
    ParamSettings settings = train_settings(b->block, param->name);
    Val in[FIRST_MOMENT + MAX_SLOTS] = {ir_use_state(b->f, param), gradient, b->number};
    in[3] = step_rate(b, "lr", settings.lr_scale);
    in[4] = settings.has_weight_decay ? step_group_decay(b, settings.weight_decay) : step_rate(b, "weight_decay", 1.0);
    int moments = moments_of(optimizer, call);
    for (int i = 0; i < moments; i++) in[FIRST_MOMENT + i] = moment(b, param, optimizer->slots[i]);
    Op *o = ir_op_new(b->f, optimizer->code, in, FIRST_MOMENT + moments);
    step_set_attributes(call, o);
    step_explain(b, o, param->name, optimizer->name);
    ir_make_results(b->f, o, AMP_DT_F32, NULL);
    assign_next(b, in[0], o->out[0]);
    for (int i = 0; i < moments; i++) assign_next(b, in[FIRST_MOMENT + i], o->out[1 + i]);
}

static bool update_block(BlockStep *b) {
    const Optimizer *optimizer = find_optimizer(b->c, &b->block->optimizer);
    if (!optimizer || !step_check_rates(b)) return false;
    b->gradients = train_gradients(b->f, b->index);
    const Val *gradients = step_clipped_gradients(b);
    for (int i = 0; i < b->gradients.len; i++) update(b, optimizer, b->gradients.data[i].param, gradients[i]);
    return true;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Results "update.NAME" become writes. */
static void update_buffers(Func *f, const Val *ok, Val all_ok) {
    int kept = 0;
    for (int i = 0; i < f->results.len; i++) {
        Result r = f->results.data[i];
        if (!result_is_update(r.name)) {
            f->results.data[kept++] = r;
            continue;
        }
        const State *buffer = ir_state_find(f->module, r.name + strlen("update."));
        int block = train_block_of(f->module, buffer->name);
        Val next = r.value;
        if (ir_dtype(f, next) != buffer->dtype) {
            next = ir_emit(f, OP_cast, buffer->dtype, NULL, 1, next);
            explain_shared(f, ir_def(f, next), buffer->name, "cast");
        }
        assign(f, ir_use_state(f, buffer), next, block >= 0 && ok[block].id ? ok[block] : all_ok);
    }
    f->results.len = kept;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* The blocks go by one counter. */
static bool update_together(PassContext *c, Func *f, Val step, Val ok) {
    Val number = increment(f, step);
    for (int i = 0; i < train_block_count(c->m); i++) {
        BlockStep b = {.c = c, .m = c->m, .f = f, .block = train_block(c->m, i), .index = i, .ok = ok, .done = step};
        b.number = number;
        if (!update_block(&b)) return false;
    }
    assign(f, step, number, ok);
    return true;
}

/* Each goes by its own; |ok| by block, none for a block that trains nothing. */
static bool update_alone(PassContext *c, Func *f, Val step, const Val *ok) {
    int blocks = train_block_count(c->m);
    for (int i = 0; i < blocks; i++) {
        BlockStep b = {.c = c, .m = c->m, .f = f, .block = train_block(c->m, i), .index = i, .ok = ok[i]};
        const char *name = arena_printf(c->m->arena, "step.%d", i);
        const State *taken = ir_state_find(c->m, name);
        if (!ok[i].id) continue;
        if (taken && taken->role != STATE_COUNTER) {
            place_error(c, taken->pos, "the name %s belongs to a counter of training; name it differently, with `as`",
                        name);
            return false;
        }
        b.done = counter(f, name);
        b.number = increment(f, b.done);
        if (!update_block(&b)) return false;
        assign(f, b.done, b.number, b.ok);
    }
    assign(f, step, increment(f, step), any_block(f, ok, blocks));
    return true;
}

static bool update_all(PassContext *c, Func *f) {
    int blocks = train_block_count(c->m);
    Val all_ok = result_find(f, "ok"), *ok = arena_array(c->m->arena, Val, blocks + 1);
    Val step = counter(f, "step"), iteration = counter(f, "iteration");
    bool alone = all_ok.id && blocks > 1;
    for (int i = 0; i < blocks; i++) ok[i] = alone ? result_find(f, arena_printf(c->m->arena, "ok.%d", i)) : all_ok;
    if (!(alone ? update_alone(c, f, step, ok) : update_together(c, f, step, all_ok))) return false;
    update_buffers(f, ok, all_ok);
    assign(f, iteration, increment(f, iteration), NO_VAL);
    return true;
}

bool pass_optimizer(PassContext *c) {
    Func *f = train_last_function(c->m);
    if (f && train_block_count(c->m) && !update_all(c, f)) return false;
    return true;
}
