/* accumulate.c: a step of k micro-batches becomes two functions.
 *
 *   func train_step                       =>   func micro_step, run k times
 *     ...                                        %first   = eq(%micro, %zero)
 *     result term.0.w = %d.w                     %share   = mul(%d.w, %weight)     of a mean over all (step_mean.c)
 *     result update.mean = %next                 %so_far  = add(%"w/sum", %share)
 *                                                assign(%"w/sum", where(%first, %share, %so_far))
 *                                                assign(%"mean/staged", %next), computed from the staged value,
 *                                                except in the first micro-batch
 *                                                assign(%micro, increment(%micro))
 *                                              func apply_step, run once
 *                                                assign(%micro, %zero)
 *                                                result grad.w = mul(%"w/sum", %mean)
 *                                                result update.mean = %"mean/staged"
 *
 * Buffers are staged, so that a skipped step leaves them unchanged.  Where several ranks train together a step of one
 * micro-batch is divided too: ranks exchange sums between its functions.  accumulate_tree.c has another order of the
 * sums.
 */
#include "passes/training/training.h"

#include <stdlib.h>

static void explain(Split *s, Op *o, const char *path) {
    o->path = path;
    o->reason = ir_reason(s->m, "update");
}

static bool has_many(const Split *s) { return s->m->accumulate > 1; }

Val accumulate_explain(Split *s, Val v, const char *path) {
    explain(s, ir_def(s->micro_step, v), path);
    return v;
}

Val accumulate_number(Func *f, Dtype t, double value, const char *path) {
    Val v = ir_emit(f, OP_const, t, NULL, 0);
    Op *o = ir_def(f, v);
    ir_attr(o, "value")->f = value;
    o->path = path;
    o->reason = ir_reason(f->module, "update");
    return v;
}

void accumulate_assign(Split *s, Func *f, Val state, Val next) {
    Op *o = ir_op_new(f, OP_assign, (Val[]){state, next}, 2);
    explain(s, o, arena_printf(s->m->arena, "%s.assign", ir_value(f, state)->name));
}

State *accumulate_state(Split *s, const State *of, StateRole role, const char *slot) {
    const char *name = arena_printf(s->m->arena, "%s/%s", of->name, slot);
    State *state = ir_state_find(s->m, name);
    if (state) return state;
    state = ir_state_new(s->m, name, role, of->dtype, of->shape);
    state->of = of->name;
    state->slot = slot;
    return state;
}

void accumulate_move_last(Func *f, int count, int at) {
    int kept = f->body.len - count;
    OpId *moved = arena_array(f->module->arena, OpId, count), *body = f->body.data;
    memcpy(moved, &body[kept], sizeof *moved * (size_t)count);
    memmove(&body[at + count], &body[at], sizeof *body * (size_t)(kept - at));
    memcpy(&body[at], moved, sizeof *moved * (size_t)count);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void replace_read(Op *o, Val from, Val to) {
    for (int i = 0; i < o->n_in; i++)
        if (o->in[i].id == from.id && statistics_reads(o, i)) o->in[i] = to;
}

/* Within a step, each micro-batch reads the value that the one before it left. */
static void stage(Split *s, const State *buffer, Val next, int *ops_before) {
    Func *f = s->micro_step;
    State *staged = accumulate_state(s, buffer, STATE_STAGED, "staged");
    Val old = ir_use_state(f, buffer), so_far = ir_use_state(f, staged);
    if (has_many(s)) {
        Val now = ir_emit(f, OP_where, buffer->dtype, arena_printf(s->m->arena, "%s.now", buffer->name), 3, s->first,
                          old, so_far);
        accumulate_explain(s, now, arena_printf(s->m->arena, "%s.now", buffer->name));
        for (int i = 0; i < f->body.len - 1; i++)
            if (i >= *ops_before) replace_read(ir_op_at(f, i), old, now);
        accumulate_move_last(f, 1, (*ops_before)++);
    }
    if (ir_dtype(f, next) != buffer->dtype)
        next = accumulate_explain(s, ir_emit(f, OP_cast, buffer->dtype, NULL, 1, next), buffer->name);
    accumulate_assign(s, f, so_far, next);
    ir_add_result(s->apply_step, amp_result_text(s->m->arena, RESULT_UPDATE, NO_BLOCK, buffer->name),
                  ir_use_state(s->apply_step, staged));
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* What |sum| becomes. */
static Val next_sum(Split *s, const State *sum, Val v, const char *path) {
    Func *f = s->micro_step;
    if (!has_many(s)) return v;
    if (s->levels) return accumulate_tree_next(s, sum, v, path);
    Val so_far = accumulate_explain(s, ir_emit(f, OP_add, sum->dtype, NULL, 2, ir_use_state(f, sum), v), path);
    const char *name = arena_printf(s->m->arena, "%s.next", sum->name);
    return accumulate_explain(s, ir_emit(f, OP_where, sum->dtype, name, 3, s->first, v, so_far), path);
}

Val accumulate_add(Split *s, const State *sum, Val v, const char *path) {
    Val next = next_sum(s, sum, v, path);
    accumulate_assign(s, s->micro_step, ir_use_state(s->micro_step, sum), next);
    return ir_use_state(s->apply_step, sum);
}

/* Reduced in another type than f32, a gradient is rounded when its sum of this rank's micro-batches is known. */
static Val add_up_rounded(Split *s, const State *param, const char *slot, Val gradient, const char *path) {
    Func *f = s->micro_step, *last = s->apply_step;
    State *sum = accumulate_state(s, param, STATE_ACCUMULATOR, slot);
    sum->dtype = sum->storage = s->m->reduce;
    if (has_many(s)) {
        const State *own =
            accumulate_state(s, param, STATE_ACCUMULATOR, arena_printf(s->m->arena, "own%s", slot + strlen("sum")));
        gradient = next_sum(s, own, gradient, path);
        accumulate_assign(s, f, ir_use_state(f, own), gradient);
    }
    Val rounded = ir_emit(f, OP_cast, sum->dtype, NULL, 1, gradient);
    Val wide = ir_emit(last, OP_cast, AMP_DT_F32, NULL, 1, ir_use_state(last, sum));
    Op *casts[] = {ir_def(f, rounded), ir_def(last, wide)};
    for (int i = 0; i < 2; i++) {
        casts[i]->path = arena_printf(s->m->arena, "%s.reduce", param->name);
        casts[i]->pos = s->m->reduce_pos;
        casts[i]->reason = ir_reason(s->m, "reduce");
        casts[i]->reason->because =
            arena_printf(s->m->arena, "ranks exchange gradients in %s", amp_dtype_name(sum->dtype));
    }
    accumulate_assign(s, f, ir_use_state(f, sum), rounded);
    return wide;
}

/* |of|: "0.fc.weight". */
static void add_up(Split *s, const char *of, Val gradient) {
    Arena *a = s->m->arena;
    Added added = {ir_state_find(s->m, strchr(of, '.') + 1), atoi(of), true, NO_VAL};
    int before = 0;
    for (int i = 0; i < s->added.len; i++) before += s->added.data[i].param == added.param;
    const char *slot = before ? arena_printf(a, "sum.%d", before) : "sum";
    const char *path = arena_printf(a, "%s.accumulate", added.param->name);
    const bool rounds = s->m->distribution && s->m->reduce && s->m->reduce != AMP_DT_F32;
    added.first = !before;
    gradient = step_mean_weigh(s, added.term, gradient, path);
    added.total = rounds ? add_up_rounded(s, added.param, slot, gradient, path)
                         : accumulate_add(s, accumulate_state(s, added.param, STATE_ACCUMULATOR, slot), gradient, path);
    vec_push(a, &s->added, added);
}

/* ---- the split --------------------------------------------------------------------------------------------------- */

/* The number of the step's first micro-batch; of this rank's. */
static Val first_number(Split *s, Func *f) {
    if (s->m->distribution) return ir_use_state(f, ir_counter(s->m, COUNTER_FIRST_MICRO, NO_BLOCK));
    return accumulate_number(f, AMP_DT_I64, 0, "micro.zero");
}

/* %micro and %first, before all other ops. */
static void count(Split *s) {
    Func *f = s->micro_step;
    int before = f->body.len;
    s->micro = ir_use_state(f, ir_counter(s->m, COUNTER_MICRO, NO_BLOCK));
    if (!has_many(s)) return;
    Val zero = first_number(s, f);
    accumulate_tree_begin(s, zero);
    s->first = accumulate_explain(s, ir_emit(f, OP_eq, AMP_DT_BOOL, "first", 2, s->micro, zero), "micro.first");
    accumulate_move_last(f, f->body.len - before, 0);
}

static void update_buffer(Split *s, const Result *r, int *ops_before) {
    const State *buffer = ir_result_state(s->micro_step, r);
    if (sync_is_equal(s, buffer, r->value)) vec_push(s->m->arena, &s->synced, buffer);
    else if (s->m->distribution && statistics_move(s, buffer, r->value, &s->batch)) return;
    stage(s, buffer, r->value, ops_before);
}

/* Gradients and updates become results of apply_step; the other results stay in micro_step. */
static void split_results(Split *s, int ops_before) {
    Func *f = s->micro_step;
    int kept = 0, results = f->results.len;
    for (int i = 0; i < results; i++) {
        Result r = f->results.data[i];
        if (r.kind == RESULT_TERM) add_up(s, r.of, r.value);
        else if (r.kind == RESULT_UPDATE) update_buffer(s, &r, &ops_before);
        else f->results.data[kept++] = r;
    }
    f->results.len = kept;
}

static void count_on(Split *s) {
    Func *f = s->micro_step, *last = s->apply_step;
    Val next =
        accumulate_explain(s, ir_emit(f, OP_increment, AMP_DT_I64, "micro.next", 1, s->micro), "micro.increment");
    accumulate_assign(s, f, s->micro, next);
    accumulate_assign(s, last, ir_use_state(last, ir_state_of(f, s->micro)), first_number(s, last));
}

Split accumulate_split(Module *m) {
    Split s = {.m = m, .micro_step = ir_program(m, PROGRAM_TRAIN_STEP)};
    if (!s.micro_step || !ir_step_is_divided(m)) return (Split){.m = m};
    ir_program_become(s.micro_step, PROGRAM_MICRO_STEP);
    s.apply_step = ir_program_new(m, PROGRAM_APPLY_STEP);
    step_mean_count(&s);
    step_mean_weigh_seeds(&s);
    int before = s.micro_step->body.len;
    count(&s);
    split_results(&s, s.micro_step->body.len - before);
    count_on(&s);
    return s;
}
