/* scale: loss scaling, visible in the IR.
 * needs: distribute.  breaks: nothing.
 *
 *   %d.loss = grad_seed() : f32   =>   %d.loss = grad_seed() : f32
 *   ...                                %1 = scale_loss(%d.loss, %scale) : f32   replaces %d.loss from here on
 *   result grad.w = %d.w               ...
 *                                      %ok = all_finite(%d.w) : bool            of gradients that are still scaled
 *                                      %2 = inverse_scale(%scale) : f32
 *                                      %3 = unscale(%d.w, %2) : f32[32, 16]
 *                                      %4, %5, %6 = update_scale(%scale, %growth_tracker, %ok) : f32, i32, i32
 *                                      assign(%scale, %4) ...
 *                                      result grad.w = %3    result ok = %ok
 *
 * Only if some gradient is f16: other types have the exponent range of f32, so they run unscaled and without the check
 * for finite gradients.  Order and arithmetic are torch.amp.GradScaler's; update_scale adds the bounds min and max.
 * static(v) keeps the check and the skipping of steps, and updates nothing.
 *
 * Several train blocks share the scaler but skip separately: the results "ok.0", "ok.1", ... say whether the gradients
 * of each block are finite; "ok", which drives the scale, whether all of them are.
 *
 * If steps accumulate, the loss is scaled in micro_step, and everything else is done in apply_step, with the summed
 * gradients.
 */
#include "ir/loss_scale.h"
#include "passes/training/training.h"

typedef struct Scaling {
    Module *m;
    Func *first, *last; /* the functions that begin and end a step; one and the same unless it accumulates */
    Val scale;          /* the state, in |last| */
    Val ok;
} Scaling;

/* ---- is it needed ----------------------------------------------------------------------------------------------- */

/* Whether some value computed from a seed is f16. */
static bool has_f16_gradient(const Scaling *s) {
    const Func *f = s->first;
    bool *from_seed = arena_array(s->m->arena, bool, f->values.len);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        bool any = o->code == OP_grad_seed;
        for (int j = 0; j < o->n_in; j++) any = any || from_seed[o->in[j].id];
        for (int r = 0; any && r < o->n_out; r++) {
            from_seed[o->out[r].id] = true;
            if (ir_dtype(f, o->out[r]) == AMP_DT_F16) return true;
        }
    }
    return false;
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double number;
} dynamic_defaults[] = {
    {"init", LOSS_SCALE_INIT},         {"growth", LOSS_SCALE_GROWTH}, {"backoff", LOSS_SCALE_BACKOFF},
    {"interval", LOSS_SCALE_INTERVAL}, {"min", LOSS_SCALE_MIN},       {"max", LOSS_SCALE_MAX},
};

/* The model's call, completed with the defaults. */
static const Call *loss_scale(Scaling *s) {
    Call *call = &s->m->loss_scale;
    if (!call->name) call->name = "dynamic";
    if (strcmp(call->name, "dynamic")) return call;
    for (size_t i = 0; i < sizeof dynamic_defaults / sizeof *dynamic_defaults; i++) {
        const char *name = dynamic_defaults[i].name;
        if (ir_call_arg(call, name)) continue;
        const double v = dynamic_defaults[i].number;
        const bool counts = !strcmp(name, "interval");
        ir_call_set(s->m->arena, call, name, counts ? ATTR_INT : ATTR_FLOAT,
                    counts ? (AttrValue){.i = (int64_t)v} : (AttrValue){.f = v});
    }
    return call;
}

static double number(const Call *call, const char *name) {
    const CallArg *arg = ir_call_arg(call, name);
    return !arg ? 0.0 : arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
}

static void explain(Scaling *s, Op *o, const char *path) {
    o->path = path;
    o->pos = s->m->loss_scale.pos;
    o->reason = ir_reason(s->m, "loss_scale");
}

/* States of the scaler; a nonzero start is the initialiser constant(v). */
static const State *new_state(Scaling *s, CounterKind kind, double initial) {
    State *state = ir_counter_new(s->m, kind, NO_BLOCK);
    if (initial != 0.0) {
        state->init.name = amp_initialisers[INIT_constant].name;
        ir_call_set(s->m->arena, &state->init, amp_initialisers[INIT_constant].args[0], ATTR_FLOAT,
                    (AttrValue){.f = initial});
    }
    return state;
}

static void assign(Scaling *s, Val state, Val next) {
    Op *o = ir_op_new(s->last, OP_assign, (Val[]){state, next}, 2);
    explain(s, o, arena_printf(s->m->arena, "%s.assign", ir_value(s->last, state)->name));
}

/* body[at] is a grad_seed.  The new op that scales it is moved next to it, and every later reader reads that. */
static void scale_seed(Scaling *s, const State *scale, int at) {
    Func *f = s->first;
    Val seed = ir_op_at(f, at)->out[0], state = ir_use_state(f, scale);
    Val scaled = ir_emit(f, OP_scale_loss, AMP_DT_F32, "d.loss.scaled", 2, seed, state);
    OpId id = ir_def(f, scaled)->id;
    explain(s, ir_def(f, scaled), "loss.scale");
    for (int i = at + 1; i < f->body.len - 1; i++) {
        Op *o = ir_op_at(f, i);
        for (int j = 0; j < o->n_in; j++)
            if (o->in[j].id == seed.id) o->in[j] = scaled;
    }
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].kind == RESULT_GRADIENT && f->results.data[i].value.id == seed.id)
            f->results.data[i].value = scaled;
    OpId *body = f->body.data;
    memmove(&body[at + 2], &body[at + 1], sizeof *body * (size_t)(f->body.len - at - 2));
    body[at + 1] = id;
}

static void scale_losses(Scaling *s, const State *scale) {
    for (int i = 0; i < s->first->body.len; i++)
        if (ir_op_at(s->first, i)->code == OP_grad_seed) scale_seed(s, scale, i);
}

/* Of the gradients of one block, or of all for NO_BLOCK; NO_VAL where there are none. */
static Val all_finite(Scaling *s, int block) {
    Arena *a = s->m->arena;
    ParamGradients gradients = train_gradients(s->last, block);
    VEC(Val) values = {0};
    for (int i = 0; i < gradients.len; i++) vec_push(a, &values, s->last->results.data[gradients.data[i].result].value);
    if (!values.len) return NO_VAL;
    Op *o = ir_op_new(s->last, OP_all_finite, values.data, values.len);
    explain(s, o, block == NO_BLOCK ? "scaler.all_finite" : arena_printf(a, "scaler.all_finite.%d", block));
    Val finite = ir_make_results(s->last, o, AMP_DT_F32, amp_result_text(a, RESULT_OK, block, NULL));
    return shares_all(s->last, finite, o->path);
}

static void check_finite(Scaling *s) {
    int blocks = train_block_count(s->m);
    s->ok = all_finite(s, NO_BLOCK);
    for (int i = 0; blocks > 1 && i < blocks; i++) {
        Val ok = all_finite(s, i);
        if (ok.id) ir_add_result(s->last, amp_result_text(s->m->arena, RESULT_OK, i, NULL), ok);
    }
    ir_add_result(s->last, amp_result_word(RESULT_OK), s->ok);
}

static void unscale(Scaling *s) {
    Func *f = s->last;
    Val inverse = ir_emit(f, OP_inverse_scale, AMP_DT_F32, "inverse_scale", 1, s->scale);
    explain(s, ir_def(f, inverse), "scaler.inverse_scale");
    for (int i = 0; i < f->results.len; i++) {
        Result *r = &f->results.data[i];
        if (r->kind != RESULT_GRADIENT) continue;
        r->value = ir_emit(f, OP_unscale, AMP_DT_F32, r->name, 2, r->value, inverse);
        explain(s, ir_def(f, r->value), arena_printf(s->m->arena, "%s.unscale", r->of));
    }
}

static void update(Scaling *s, const Call *call) {
    static const char *const factors[] = {"growth", "backoff", "min", "max"};
    Func *f = s->last;
    Val tracker = ir_use_state(f, new_state(s, COUNTER_GROWTH_TRACKER, 0));
    Val hits = ir_use_state(f, new_state(s, COUNTER_FLOOR_HITS, 0));
    Op *o = ir_op_new(f, OP_update_scale, (Val[]){s->scale, tracker, s->ok}, 3);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) ir_attr(o, factors[i])->f = number(call, factors[i]);
    ir_attr(o, "interval")->i = (int64_t)number(call, "interval");
    explain(s, o, "scaler.update_scale");
    ir_make_results(f, o, AMP_DT_F32, NULL);
    Val more_hits = ir_emit(f, OP_add, AMP_DT_I32, NULL, 2, hits, o->out[2]);
    explain(s, ir_def(f, more_hits), "scaler.floor_hits");
    assign(s, s->scale, o->out[0]);
    assign(s, tracker, o->out[1]);
    assign(s, hits, more_hits);
}

static void add_scaling(Scaling *s, const Call *call) {
    bool dynamic = !strcmp(call->name, "dynamic");
    const State *scale = new_state(s, COUNTER_SCALE, number(call, dynamic ? "init" : "v"));
    scale_losses(s, scale);
    s->scale = ir_use_state(s->last, scale);
    check_finite(s);
    unscale(s);
    if (dynamic) update(s, call);
}

bool pass_scale(PassContext *c) {
    Scaling s = {.m = c->m, .first = train_first_function(c->m), .last = train_last_function(c->m)};
    if (!s.first || s.m->low != AMP_DT_F16 || !has_f16_gradient(&s)) return true;
    const Call *call = loss_scale(&s);
    if (strcmp(call->name, "none")) add_scaling(&s, call);
    return true;
}
