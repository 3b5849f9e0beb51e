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
 * Without the result "ok" (nothing was scaled) every step is applied.  If several train blocks may skip separately
 * (results "ok.0", "ok.1", ...) or one updates in each k-th step only (%due.0 = is_due(%iteration, %ok.0; every = k)),
 * each counts its own updates in "step.0", "step.1", ..., which drive its schedules and bias corrections; "step" then
 * counts the steps in which any block was updated.  A buffer is written where the gradients of the block that its name
 * belongs to are finite, due or not; a buffer of no block, if all gradients are finite.
 *
 * `ema = 0.999` of a train block: each parameter has an average beside its moments, %"w/ema", always in f32:
 *   %"w/ema.next" = ema(%w.next, %"w/ema", %step.next; decay = 0.999)      assign(%"w/ema", %"w/ema.next") if %ok
 *
 * Where the precision block asks for it, parameters and moments are stored in 16 bits: low_states.c.
 */
#include <math.h>

#include "passes/training/training.h"

typedef struct BlockStep { /* one train block while its updates are built */
    PassContext *c;
    Module *m;
    Func *f; /* the function that ends the step */
    const Train *block;
    int index;  /* of the block */
    Val ok;     /* predicate of its assigns; NO_VAL: always */
    Val done;   /* i64 state: updates so far, the step of its schedules */
    Val number; /* of this update, counted from 1 */
    ParamGradients gradients;
    BlockRates rates;
} BlockStep;

enum { MAX_SLOTS = 3, FIRST_MOMENT = 5 };

#define FIRST_SUM "initial_accumulator_value" /* adagrad's, before the first step */

typedef enum SlotForm {
    LIKE_PARAM,
    OF_ROWS, /* of a matrix, a number for each row */
    OF_COLS,
    OF_VECTOR /* like a parameter that is no matrix */
} SlotForm;

typedef struct Slot { /* a moment */
    const char *name;
    const char *wanted_by; /* the argument that, when zero or false, leaves it out; NULL: it is always there */
    SlotForm form;
} Slot;

typedef struct Optimizer {
    Opcode code;
    Slot slots[MAX_SLOTS];
    bool whole;         /* what it makes of an element depends on the others: no share of a rank can be updated alone */
    const char *trains; /* and nothing else; NULL: anything */
    int least_rank, most_rank;
} Optimizer;

static const Optimizer optimizers[] = {
    {.code = OP_sgd, .slots = {{"momentum", "momentum", LIKE_PARAM}}},
    {.code = OP_adam, .slots = {{"m", NULL, LIKE_PARAM}, {"v", NULL, LIKE_PARAM}}},
    {.code = OP_adamw, .slots = {{"m", NULL, LIKE_PARAM}, {"v", NULL, LIKE_PARAM}}},
    {.code = OP_adafactor,
     .slots = {{"rows", NULL, OF_ROWS}, {"cols", NULL, OF_COLS}, {"v", NULL, OF_VECTOR}},
     .whole = true,
     .trains = "matrices and vectors",
     .most_rank = 2},
    {.code = OP_adagrad, .slots = {{"squares", NULL, LIKE_PARAM}}},
    {.code = OP_lamb, .slots = {{"m", NULL, LIKE_PARAM}, {"v", NULL, LIKE_PARAM}}, .whole = true},
    {.code = OP_lion, .slots = {{"m", NULL, LIKE_PARAM}}},
    {.code = OP_muon,
     .slots = {{"momentum", NULL, LIKE_PARAM}},
     .whole = true,
     .trains = "matrices",
     .least_rank = 2,
     .most_rank = 2},
    {.code = OP_rmsprop,
     .slots = {{"v", NULL, LIKE_PARAM}, {"m", "centered", LIKE_PARAM}, {"momentum", "momentum", LIKE_PARAM}}},
};

static const Optimizer *optimizer_of(const Call *call) {
    for (size_t i = 0; call->name && i < sizeof optimizers / sizeof *optimizers; i++)
        if (optimizers[i].code == ir_opcode(call->name)) return &optimizers[i];
    return NULL;
}

static const Optimizer *find_optimizer(PassContext *c, const Call *call) {
    const Optimizer *known = optimizer_of(call);
    if (known) return known;
    Diag *diag = place_error(c, call->pos, "optimizer %s is not supported", call->name ? call->name : "none");
    diag_help(c->diags, diag, "sgd, adam, adamw, adafactor, adagrad, lamb, lion, muon and rmsprop are supported");
    return NULL;
}

const Call *optimizer_of_whole(const Module *m, const char *param) {
    const ParamTraining t = ir_param_training(m, param);
    const Call *call = t.block == NO_BLOCK || t.frozen != NO_BLOCK ? NULL : ir_param_optimizer(m, &t);
    const Optimizer *known = call ? optimizer_of(call) : NULL;
    return known && known->whole ? call : NULL;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void explain_of_block(BlockStep *b, Op *o, const char *of, const char *what) {
    train_explain_update(b->m, b->block, o, of, what);
}

/* The same for ops that belong to no block. */
static void explain_shared(Func *f, Op *o, const char *of, const char *what) {
    train_explain_update(f->module, train_block(f->module, 0), o, of, what);
}

static void assign(Func *f, Val state, Val next, Val pred) {
    Op *o = ir_op_new(f, OP_assign, (Val[]){state, next}, 2);
    explain_shared(f, o, ir_value(f, state)->name, "assign");
    o->pred = pred;
}

/* The state's next value, or of some rows, named after the state; a skipped step does not write it. */
static void assign_next(BlockStep *b, Val state, Val next, Val rows) {
    ir_rename(b->f, next, arena_printf(b->m->arena, "%s.next", ir_value(b->f, state)->name));
    if (!rows.id) {
        assign(b->f, state, next, b->ok);
        return;
    }
    Op *o = ir_op_new(b->f, OP_assign, (Val[]){state, next, rows}, 3);
    explain_of_block(b, o, ir_value(b->f, state)->name, "assign");
    o->pred = b->ok;
}

/* ---- clipping ------------------------------------------------------------------------------------------------------
 *
 * Of unscaled gradients: first by the norm of all gradients of the block, then by value.
 *
 *   %norm      = global_norm(%grad.w, %grad.b)         : f64
 *   %grad_norm = cast(%norm)                           : f32       result grad_norm
 *   %1         = clip_by_norm(%grad.w, %norm; max = 1) : f32[...]
 *   %2         = clamp(%1; low = -0.5, high = 0.5)     : f32[...]
 *
 * The norm of f32 numbers may be above f32: it is f64, and infinite or NaN only where a gradient is.
 */

static Val global_norm(BlockStep *b, const Val *gradients, int count) {
    Op *o = ir_op_new(b->f, OP_global_norm, gradients, count);
    explain_of_block(b, o, "clip", "global_norm");
    return ir_make_results(b->f, o, AMP_DT_F64, NULL);
}

/* Where a rank has shares of some of them. */
static Val norm_of_shares(BlockStep *b, const Val *gradients) {
    Val *of[2] = {arena_array(b->m->arena, Val, b->gradients.len), arena_array(b->m->arena, Val, b->gradients.len)};
    Val norms[2] = {NO_VAL, NO_VAL};
    int count[2] = {0};
    for (int i = 0; i < b->gradients.len; i++) {
        const int whole = !shares_have(b->m, b->gradients.data[i].param);
        of[whole][count[whole]++] = gradients[i];
    }
    for (int i = 0; i < 2; i++)
        if (count[i]) norms[i] = global_norm(b, of[i], count[i]);
    return shares_norm(b->f, norms[0], norms[1], "clip.global_norm");
}

static Val norm_of(BlockStep *b, const Val *gradients) {
    const char *name =
        amp_result_text(b->m->arena, RESULT_NORM, train_block_count(b->m) == 1 ? NO_BLOCK : b->index, NULL);
    Val norm = b->m->distribution == DISTRIBUTE_ZERO1 ? norm_of_shares(b, gradients)
                                                      : global_norm(b, gradients, b->gradients.len);
    Val figure = ir_emit(b->f, OP_cast, AMP_DT_F32, name, 1, norm);
    explain_of_block(b, ir_def(b->f, figure), "clip", "grad_norm");
    ir_add_result(b->f, name, figure);
    return norm;
}

static Val clip_by_norm(BlockStep *b, const char *param, Val gradient, Val norm) {
    Op *o = ir_op_new(b->f, OP_clip_by_norm, (Val[]){gradient, norm}, 2);
    ir_attr(o, "max")->f = b->block->clip_norm;
    explain_of_block(b, o, param, "clip_by_norm");
    return ir_make_results(b->f, o, AMP_DT_F32, NULL);
}

static Val clip_by_value(BlockStep *b, const char *param, Val gradient) {
    Op *o = ir_op_new(b->f, OP_clamp, &gradient, 1);
    ir_attr(o, "low")->f = -b->block->clip_value;
    ir_attr(o, "high")->f = b->block->clip_value;
    explain_of_block(b, o, param, "clip_by_value");
    return ir_make_results(b->f, o, AMP_DT_F32, NULL);
}

static Val *clipped_gradients(BlockStep *b) {
    int count = b->gradients.len;
    Val *g = arena_array(b->m->arena, Val, count + 1);
    for (int i = 0; i < count; i++) g[i] = b->f->results.data[b->gradients.data[i].result].value;
    Val norm = b->block->clip_norm > 0 && count ? norm_of(b, g) : NO_VAL;
    for (int i = 0; i < count; i++) {
        const char *param = b->gradients.data[i].param->name;
        if (norm.id && isfinite(b->block->clip_norm)) g[i] = clip_by_norm(b, param, g[i], norm);
        if (b->block->clip_value > 0) g[i] = clip_by_value(b, param, g[i]);
    }
    return g;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static Val counter(Func *f, CounterKind kind, int block) { return ir_use_state(f, ir_counter(f->module, kind, block)); }

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

/* bool: whether some block is updated; NO_VAL: one always is. */
static Val any_block(Func *f, const Val *ok, int blocks) {
    Val count = NO_VAL;
    for (int i = 0; i < blocks; i++) {
        if (!train_gradients(f, i).len) continue;
        if (!ok[i].id) return NO_VAL;
        Val one = explained(f, ir_emit(f, OP_cast, AMP_DT_I32, NULL, 1, ok[i]), "updated");
        count = !count.id ? one : explained(f, ir_emit(f, OP_add, AMP_DT_I32, NULL, 2, count, one), "updated");
    }
    Val none = explained(f, ir_emit(f, OP_const, AMP_DT_I32, NULL, 0), "none");
    return explained(f, ir_emit(f, OP_lt, AMP_DT_BOOL, "any.ok", 2, none, count), "any");
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static bool is_wanted(const Slot *slot, const Call *call, const State *param) {
    if (slot->form != LIKE_PARAM) return (slot->form == OF_VECTOR) == (param->shape.rank != 2);
    if (!slot->name || !slot->wanted_by) return slot->name;
    const CallArg *arg = ir_call_arg(call, slot->wanted_by);
    return arg && (arg->type == ATTR_BOOL ? arg->value.b : train_number(arg, 0) != 0.0);
}

static Shape shape_of_slot(const Slot *slot, const State *param) {
    if (slot->form != OF_ROWS && slot->form != OF_COLS) return param->shape;
    return shape_of(1, &param->shape.d[slot->form == OF_COLS]);
}

static Val moment(BlockStep *b, const Call *call, const State *param, const Slot *slot) {
    const char *name = arena_printf(b->m->arena, "%s/%s", param->name, slot->name);
    State *s = ir_state_new(b->m, name, STATE_MOMENT, AMP_DT_F32, shape_of_slot(slot, param));
    s->of = param->name;
    s->slot = slot->name;
    const double first = strcmp(s->slot, "squares") ? 0 : train_number(ir_call_arg(call, FIRST_SUM), 0);
    if (first != 0) {
        s->init.name = amp_initialisers[INIT_constant].name;
        ir_call_set(b->m->arena, &s->init, amp_initialisers[INIT_constant].args[0], ATTR_FLOAT,
                    (AttrValue){.f = first});
    }
    return ir_use_state(b->f, s);
}

/* The next average of the parameter, of its next value. */
static void update_average(BlockStep *b, const State *param, Val next) {
    static const Slot slot = {.name = AMP_SLOT_EMA};
    Val average = moment(b, &b->block->optimizer, param, &slot);
    Op *o = ir_op_new(b->f, OP_ema, (Val[]){next, average, b->number}, 3);
    ir_attr(o, "decay")->f = b->block->ema;
    explain_of_block(b, o, param->name, "ema");
    assign_next(b, average, ir_make_results(b->f, o, AMP_DT_F32, NULL), NO_VAL);
}

static bool fits(const Optimizer *optimizer, const State *param) {
    const int rank = param->shape.rank;
    return !optimizer->trains || (rank >= optimizer->least_rank && rank <= optimizer->most_rank);
}

/* What a group of it and what is like it would say: "*.bias" of "fc1.bias", where nothing that fits matches. */
static const char *pattern_of(PassContext *c, const Optimizer *optimizer, const State *param) {
    const char *dot = strrchr(param->name, '.'), *pattern = dot ? arena_printf(c->m->arena, "*%s", dot) : param->name;
    for (int i = 0; i < c->m->states.len; i++) {
        const State *s = c->m->states.data[i];
        if (s->role == STATE_PARAM && fits(optimizer, s) && text_glob_match(pattern, s->name)) return param->name;
    }
    return pattern;
}

static bool check_fits(PassContext *c, const Optimizer *optimizer, const Call *call, const State *param) {
    if (fits(optimizer, param)) return true;
    Diag *diag = place_error(c, call->pos, "optimizer: %s trains %s, and the shape of %s is %s", call->name,
                             optimizer->trains, param->name, shape_text(c->m->arena, &param->shape));
    diag_help(c->diags, diag, "give it another: group \"%s\": optimizer = adamw(lr = 0.001)",
              pattern_of(c, optimizer, param));
    return false;
}

/* (w, gradient, step, lr, weight decay, moments...): the next w and moments, in that order; of a lazy table, by row. */
static bool update(BlockStep *b, const State *param, Val gradient) {
    const ParamTraining settings = ir_param_training(b->m, param->name);
    const Call *call = ir_param_optimizer(b->m, &settings);
    const Optimizer *optimizer = find_optimizer(b->c, call);
    if (!optimizer || !check_fits(b->c, optimizer, call, param)) return false;
    const Op *rows = lazy_rows(b->f, param);
    Val in[FIRST_MOMENT + MAX_SLOTS] = {NO_VAL, gradient, b->number};
    Val states[1 + MAX_SLOTS] = {ir_use_state(b->f, param)};
    in[3] = rate_of_param(&b->rates, &settings);
    in[4] = decay_of_param(&b->rates, &settings);
    int count = 1;
    for (int i = 0; i < MAX_SLOTS; i++)
        if (is_wanted(&optimizer->slots[i], call, param))
            states[count++] = moment(b, call, param, &optimizer->slots[i]);
    for (int i = 0; i < count; i++)
        in[i ? FIRST_MOMENT + i - 1 : 0] = rows ? lazy_take(b->f, rows, states[i], b->block) : states[i];
    Op *o = ir_op_new(b->f, optimizer->code, in, FIRST_MOMENT + count - 1);
    train_set_attributes(call, o);
    if (rows && optimizer->code == OP_adam) ir_attr(o, "lazy")->b = true;
    explain_of_block(b, o, param->name, ir_op_info[optimizer->code].name);
    o->pos = call->pos;
    ir_make_results(b->f, o, AMP_DT_F32, NULL);
    for (int i = 0; i < count; i++) assign_next(b, states[i], o->out[i], rows ? rows->out[1] : NO_VAL);
    if (b->block->ema != 0) update_average(b, param, o->out[0]);
    return true;
}

static bool update_block(BlockStep *b) {
    b->rates = (BlockRates){.c = b->c, .f = b->f, .block = b->block, .index = b->index, .done = b->done};
    if (!find_optimizer(b->c, &b->block->optimizer) || !rates_check(&b->rates)) return false;
    b->gradients = train_gradients(b->f, b->index);
    const Val *gradients = clipped_gradients(b);
    for (int i = 0; i < b->gradients.len; i++)
        if (!update(b, b->gradients.data[i].param, gradients[i])) return false;
    return true;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* bool: |ok|, and |finite|; made once. */
static Val both(Func *f, Val ok, Val finite) {
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        if (o->code == OP_and && o->in[0].id == ok.id && o->in[1].id == finite.id) return o->out[0];
    }
    Val v = ir_emit(f, OP_and, AMP_DT_BOOL, NULL, 2, ok, finite);
    explain_shared(f, ir_def(f, v), "step", "written");
    return v;
}

/* What is not written unless it is finite (keep.c), where the step is not skipped: no choice in between, but for
 * scalars, which a kernel writes together. */
static void assign_buffer(Func *f, const State *buffer, Val next, Val ok) {
    const Op *choice = ir_def(f, next);
    if (keep_made(choice) && choice->code == OP_where && buffer->shape.rank) {
        next = choice->in[1];
        ok = ok.id ? both(f, ok, choice->in[0]) : choice->in[0];
    }
    assign(f, ir_use_state(f, buffer), next, ok);
}

/* Results "update.NAME" become writes. */
static void update_buffers(Func *f, const Val *ok, Val all_ok) {
    int kept = 0;
    for (int i = 0; i < f->results.len; i++) {
        Result r = f->results.data[i];
        if (r.kind != RESULT_UPDATE) {
            f->results.data[kept++] = r;
            continue;
        }
        const State *buffer = ir_result_state(f, &r);
        int block = train_block_of(f->module, buffer->name);
        Val next = r.value;
        if (ir_dtype(f, next) != buffer->dtype) {
            next = ir_emit(f, OP_cast, buffer->dtype, NULL, 1, next);
            explain_shared(f, ir_def(f, next), buffer->name, "cast");
        }
        assign_buffer(f, buffer, next, block >= 0 && ok[block].id ? ok[block] : all_ok);
    }
    f->results.len = kept;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* All blocks share one counter. */
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

/* Each block has its own counter.  |ok| is by block; NO_VAL: it is updated in each step. */
static bool update_alone(PassContext *c, Func *f, Val step, const Val *ok) {
    int blocks = train_block_count(c->m);
    for (int i = 0; i < blocks; i++) {
        BlockStep b = {.c = c, .m = c->m, .f = f, .block = train_block(c->m, i), .index = i, .ok = ok[i]};
        const char *name = amp_counter_text(c->m->arena, COUNTER_STEP, i);
        const State *taken = ir_state_find(c->m, name);
        if (!train_gradients(f, i).len) continue;
        if (taken && taken->role != STATE_COUNTER) {
            place_error(c, taken->pos, "%s is reserved for training state; name it differently, with `as`", name);
            return false;
        }
        b.done = counter(f, COUNTER_STEP, i);
        b.number = increment(f, b.done);
        if (!update_block(&b)) return false;
        assign(f, b.done, b.number, b.ok);
    }
    Val any = any_block(f, ok, blocks);
    assign(f, step, increment(f, step), any);
    return true;
}

static bool is_periodic(const Train *block) { return block->every > 1; }

/* bool: whether the block is updated in this step. */
static Val due(Func *f, int block, Val iteration, Val ok) {
    Op *o = ir_op_new(f, OP_is_due, (Val[]){iteration, ok}, ok.id ? 2 : 1);
    ir_attr(o, "every")->i = train_block(f->module, block)->every;
    explain_shared(f, o, "step", "due");
    return ir_make_results(f, o, AMP_DT_BOOL, arena_printf(f->module->arena, "due.%d", block));
}

static bool update_all(PassContext *c, Func *f) {
    int blocks = train_block_count(c->m);
    Arena *a = c->m->arena;
    Val all_ok = result_value(ir_result_of_kind(f, RESULT_OK, NO_BLOCK));
    Val *ok = arena_array(a, Val, blocks + 1), *updates = arena_array(a, Val, blocks + 1);
    Val step = counter(f, COUNTER_STEP, NO_BLOCK), iteration = counter(f, COUNTER_ITERATION, NO_BLOCK);
    bool alone = all_ok.id && blocks > 1;
    for (int i = 0; i < blocks; i++) {
        ok[i] = all_ok.id && blocks > 1 ? result_value(ir_result_of_kind(f, RESULT_OK, i)) : all_ok;
        updates[i] = is_periodic(train_block(c->m, i)) ? due(f, i, iteration, ok[i]) : ok[i];
        alone = alone || is_periodic(train_block(c->m, i));
    }
    if (!(alone ? update_alone(c, f, step, updates) : update_together(c, f, step, all_ok))) return false;
    update_buffers(f, ok, all_ok);
    assign(f, iteration, increment(f, iteration), NO_VAL);
    return true;
}

bool pass_optimizer(PassContext *c) {
    Func *f = train_last_function(c->m);
    if (f && train_block_count(c->m) && !update_all(c, f)) return false;
    return store_low_states(c);
}
