/* accumulate.c: a step of k micro-batches becomes two functions.
 *
 *   func train_step                       =>   func micro_step, run k times
 *     %d.loss = grad_seed() : f32                %d.loss  = grad_seed() : f32
 *     ...                                        %share   = div(%d.loss, %k)    replaces %d.loss: the loss is the mean
 *     result grad.w = %d.w                       ...
 *     result update.mean = %next                 %first   = eq(%micro, %zero)
 *                                                %so_far  = add(%"w/sum", %d.w)
 *                                                assign(%"w/sum", where(%first, %d.w, %so_far))
 *                                                assign(%"mean/staged", %next), computed from the staged value,
 *                                                except in the first micro-batch
 *                                                assign(%micro, increment(%micro))
 *                                              func apply_step, run once
 *                                                assign(%micro, %zero)
 *                                                result grad.w = %"w/sum"
 *                                                result update.mean = %"mean/staged"
 *
 * Buffers are staged, so that a skipped step leaves them unchanged.
 */
#include "passes/training/accumulate.h"

typedef struct Split {
    Module *m;
    Func *micro_step, *apply_step;
    Val micro; /* the number of the micro-batch, from 0 */
    Val first; /* it is the first of its step */
} Split;

static void explain(Split *s, Op *o, const char *path) {
    o->path = path;
    o->reason = ir_reason(s->m, "update");
}

static Val emitted(Split *s, Val v, const char *path) {
    explain(s, ir_def(s->micro_step, v), path);
    return v;
}

static Val number(Func *f, Dtype t, double value, const char *path) {
    Val v = ir_emit(f, OP_const, t, NULL, 0);
    Op *o = ir_def(f, v);
    ir_attr(o, "value")->f = value;
    o->path = path;
    o->reason = ir_reason(f->module, "update");
    return v;
}

static Op *assign(Split *s, Func *f, Val state, Val next) {
    Op *o = ir_op_new(f, OP_assign, (Val[]){state, next}, 2);
    explain(s, o, arena_printf(s->m->arena, "%s.assign", ir_value(f, state)->name));
    return o;
}

static State *state_of(Split *s, const State *of, StateRole role, const char *slot) {
    const char *name = arena_printf(s->m->arena, "%s/%s", of->name, slot);
    State *state = ir_state_find(s->m, name);
    if (state) return state;
    state = ir_state_new(s->m, name, role, of->dtype, of->shape);
    state->of = of->name;
    state->slot = slot;
    return state;
}

/* ---- the share of a micro-batch ---------------------------------------------------------------------------------- */

static void replace_in(Op *o, Val from, Val to) {
    for (int i = 0; i < o->n_in; i++)
        if (o->in[i].id == from.id) o->in[i] = to;
}

/* Moves the last |count| ops of the body to |at|. */
static void move_last(Func *f, int count, int at) {
    int kept = f->body.len - count;
    OpId *moved = arena_array(f->module->arena, OpId, count), *body = f->body.data;
    memcpy(moved, &body[kept], sizeof *moved * (size_t)count);
    memmove(&body[at + count], &body[at], sizeof *body * (size_t)(kept - at));
    memcpy(&body[at], moved, sizeof *moved * (size_t)count);
}

static void share_seed(Split *s, int at) {
    Func *f = s->micro_step;
    Val seed = ir_op_at(f, at)->out[0], k = number(f, AMP_DT_F32, (double)s->m->accumulate, "loss.micro_batches");
    Val share = emitted(s, ir_emit(f, OP_div, AMP_DT_F32, "d.loss.share", 2, seed, k), "loss.share");
    for (int i = at + 1; i < f->body.len - 1; i++) replace_in(ir_op_at(f, i), seed, share);
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].value.id == seed.id && f->results.data[i].kind == RESULT_GRADIENT)
            f->results.data[i].value = share;
    move_last(f, 2, at + 1);
}

static void share_loss(Split *s) {
    for (int i = 0; i < s->micro_step->body.len; i++)
        if (ir_op_at(s->micro_step, i)->code == OP_grad_seed) share_seed(s, i);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Within a step, each micro-batch reads the value that the one before it left. */
static void stage(Split *s, const State *buffer, Val next, int *ops_before) {
    Func *f = s->micro_step;
    State *staged = state_of(s, buffer, STATE_STAGED, "staged");
    Val old = ir_use_state(f, buffer), so_far = ir_use_state(f, staged);
    Val now = ir_emit(f, OP_where, buffer->dtype, arena_printf(s->m->arena, "%s.now", buffer->name), 3, s->first, old,
                      so_far);
    emitted(s, now, arena_printf(s->m->arena, "%s.now", buffer->name));
    for (int i = 0; i < f->body.len - 1; i++)
        if (i >= *ops_before) replace_in(ir_op_at(f, i), old, now);
    move_last(f, 1, (*ops_before)++);
    if (ir_dtype(f, next) != buffer->dtype)
        next = emitted(s, ir_emit(f, OP_cast, buffer->dtype, NULL, 1, next), buffer->name);
    assign(s, f, so_far, next);
    ir_add_result(s->apply_step, amp_result_text(s->m->arena, RESULT_UPDATE, NO_BLOCK, buffer->name),
                  ir_use_state(s->apply_step, staged));
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void add_up(Split *s, const State *param, Val gradient) {
    Func *f = s->micro_step;
    Arena *a = s->m->arena;
    Val sum = ir_use_state(f, state_of(s, param, STATE_ACCUMULATOR, "sum"));
    Val so_far = emitted(s, ir_emit(f, OP_add, AMP_DT_F32, NULL, 2, sum, gradient),
                         arena_printf(a, "%s.accumulate", param->name));
    Val next =
        ir_emit(f, OP_where, AMP_DT_F32, arena_printf(a, "%s/sum.next", param->name), 3, s->first, gradient, so_far);
    emitted(s, next, arena_printf(a, "%s.accumulate", param->name));
    assign(s, f, sum, next);
    ir_add_result(s->apply_step, amp_result_text(a, RESULT_GRADIENT, NO_BLOCK, param->name),
                  ir_use_state(s->apply_step, ir_state_of(f, sum)));
}

/* ---- the split --------------------------------------------------------------------------------------------------- */

/* %micro and %first, before all other ops. */
static void count(Split *s) {
    Func *f = s->micro_step;
    s->micro = ir_use_state(f, ir_counter(s->m, COUNTER_MICRO, NO_BLOCK));
    Val zero = number(f, AMP_DT_I64, 0, "micro.zero");
    s->first = emitted(s, ir_emit(f, OP_eq, AMP_DT_BOOL, "first", 2, s->micro, zero), "micro.first");
    move_last(f, 2, 0);
}

/* Gradients and updates become results of apply_step; the other results stay in micro_step. */
static void split_results(Split *s) {
    Func *f = s->micro_step;
    int kept = 0, results = f->results.len, ops_before = 2;
    for (int i = 0; i < results; i++) {
        Result r = f->results.data[i];
        if (r.kind == RESULT_GRADIENT) add_up(s, ir_result_state(f, &r), r.value);
        else if (r.kind == RESULT_UPDATE) stage(s, ir_result_state(f, &r), r.value, &ops_before);
        else f->results.data[kept++] = r;
    }
    f->results.len = kept;
}

static void count_on(Split *s) {
    Func *f = s->micro_step, *last = s->apply_step;
    Val next = emitted(s, ir_emit(f, OP_increment, AMP_DT_I64, "micro.next", 1, s->micro), "micro.increment");
    assign(s, f, s->micro, next);
    assign(s, last, ir_use_state(last, ir_state_of(f, s->micro)), number(last, AMP_DT_I64, 0, "micro.zero"));
}

void accumulate_split(Module *m) {
    Split s = {.m = m, .micro_step = ir_program(m, PROGRAM_TRAIN_STEP)};
    if (!s.micro_step || m->accumulate < 2) return;
    ir_program_become(s.micro_step, PROGRAM_MICRO_STEP);
    s.apply_step = ir_program_new(m, PROGRAM_APPLY_STEP);
    share_loss(&s);
    count(&s);
    split_results(&s);
    count_on(&s);
}
