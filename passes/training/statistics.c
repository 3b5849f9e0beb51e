/* statistics.c: running statistics of models that train on several ranks.
 *
 * A buffer such as batch norm's running mean changes with each micro-batch.  Ranks compute theirs at the same time, so
 * what micro-batches add is kept, and added afterwards in their order, by every rank: as one rank would.
 *
 *   func micro_step                              =>   func micro_step
 *     %stat = mean(%x; dims = (0))                      %stat = mean(%x; dims = (0))
 *     %a    = mul(%mean, %0.9)                          assign(%"mean/batch.0", %stat)
 *     %b    = mul(%stat, %0.1)                        func statistics_step, once for each micro-batch of all ranks
 *     %next = add(%a, %b)                               %first = eq(%micro, 0)
 *     result update.mean = %next                        %now   = where(%first, %mean, %"mean/staged")
 *                                                       %a     = mul(%now, %0.9)
 *                                                       %b     = mul(%"mean/batch.0", %0.1)
 *                                                       assign(%"mean/staged", add(%a, %b))
 *
 * The cut goes through the values that the old one does not reach.  It is not made where something else reads what
 * depends on the old value, such as a forward pass that normalises with it: there each rank goes on from its own.
 * Buffers that are kept together where one is not finite (keep.c) are cut together.
 */
#include "passes/training/training.h"

typedef struct Update {
    const State *buffer;
    Val next;
} Update;

typedef struct Cut {
    Split *s;
    Func *from, *to;
    VEC(Update) updates; /* that are cut together */
    bool *depends;       /* by value of |from|: on a buffer's old value */
    bool *wanted;        /* by value: a |next| needs it, without what no old value reaches */
    Val *moved;          /* by value: in |to| */
    StateList *batch;
} Cut;

/* ---- what is cut together ---------------------------------------------------------------------------------------- */

/* The question by which |next| is chosen; NO_VAL: it always is. */
static Val question(const Func *f, Val next) {
    const Op *o = ir_def(f, next);
    return keep_made(o) && o->code == OP_where ? o->in[0] : NO_VAL;
}

static void find_updates(Cut *c, const State *buffer, Val next) {
    const Func *f = c->from;
    Arena *a = c->s->m->arena;
    Val asked = question(f, next);
    vec_push(a, &c->updates, ((Update){buffer, next}));
    for (int i = 0; i < f->results.len && asked.id; i++) {
        const Result *r = &f->results.data[i];
        const State *other = r->kind == RESULT_UPDATE ? ir_result_state(f, r) : NULL;
        if (other && other != buffer && question(f, r->value).id == asked.id)
            vec_push(a, &c->updates, ((Update){other, r->value}));
    }
}

static const Update *update_of(const Cut *c, const State *buffer) {
    for (int i = 0; i < c->updates.len; i++)
        if (c->updates.data[i].buffer == buffer) return &c->updates.data[i];
    return NULL;
}

/* ---- may it be cut ----------------------------------------------------------------------------------------------- */

bool statistics_reads(const Op *o, int operand) { return o->code != OP_batch_norm || (operand != 3 && operand != 4); }

static bool reads_dependant(const Cut *c, const Op *o) {
    bool any = o->pred.id && c->depends[o->pred.id];
    for (int j = 0; j < o->n_in; j++) any = any || (statistics_reads(o, j) && c->depends[o->in[j].id]);
    return any;
}

static void mark_question(Cut *c, Val asked) {
    const Op *o = asked.id ? ir_def(c->from, asked) : NULL;
    if (!keep_made(o)) return;
    c->depends[asked.id] = true;
    for (int i = 0; i < o->n_in; i++) mark_question(c, o->in[i]);
}

/* The question whether a new value is finite goes where the choice is made. */
static void find_dependants(Cut *c) {
    for (int i = 0; i < c->updates.len; i++) {
        c->depends[ir_use_state(c->from, c->updates.data[i].buffer).id] = true;
        mark_question(c, question(c->from, c->updates.data[i].next));
    }
    for (int i = 0; i < c->from->body.len; i++) {
        const Op *o = ir_op_at(c->from, i);
        const bool any = reads_dependant(c, o);
        for (int r = 0; r < o->n_out; r++) c->depends[o->out[r].id] = c->depends[o->out[r].id] || any;
    }
}

/* Part of what is moved. */
static bool is_moved(const Cut *c, const Op *o) {
    bool needed = false;
    for (int r = 0; r < o->n_out; r++) needed = needed || (c->wanted[o->out[r].id] && c->depends[o->out[r].id]);
    return needed;
}

static void find_wanted(Cut *c) {
    for (int i = 0; i < c->updates.len; i++) c->wanted[c->updates.data[i].next.id] = true;
    for (int i = c->from->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(c->from, i);
        for (int j = 0; is_moved(c, o) && j < o->n_in; j++) c->wanted[o->in[j].id] = true;
    }
}

/* Values that statistics_step can be given: of a fixed size; numbers; and states that no micro-batch changes. */
static bool can_be_given(const Cut *c, Val v) {
    const Value *value = ir_value(c->from, v);
    if (value->kind == VAL_STATE) return ir_state_of(c->from, v)->role == STATE_PARAM;
    return value->kind == VAL_RESULT && !shape_batch_dims(&value->shape) && is_float(value->dtype);
}

static bool is_const(const Func *f, Val v) { return ir_def(f, v) && ir_def(f, v)->code == OP_const; }

static bool may_be_cut(const Cut *c) {
    const Func *f = c->from;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const bool moves = is_moved(c, o);
        if (reads_dependant(c, o) && !moves) return false;
        for (int j = 0; j < o->n_in && moves; j++)
            if (!c->depends[o->in[j].id] && !is_const(f, o->in[j]) && !can_be_given(c, o->in[j])) return false;
    }
    for (int i = 0; i < f->results.len; i++) {
        const Result *r = &f->results.data[i];
        bool own = r->kind == RESULT_UPDATE && update_of(c, ir_result_state(f, r));
        if (!own && c->depends[r->value.id]) return false;
    }
    bool all = true;
    for (int i = 0; i < c->updates.len && all; i++) {
        Val next = c->updates.data[i].next;
        all = c->depends[next.id] || can_be_given(c, next) || is_const(f, next);
    }
    return all;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static Op *explained(Func *f, Val v, const char *path) {
    Op *o = ir_def(f, v);
    o->path = path;
    o->reason = ir_reason(f->module, "distribute");
    return o;
}

static void assign(Func *f, Val state, Val next) {
    Op *o = ir_op_new(f, OP_assign, (Val[]){state, next}, 2);
    o->path = arena_printf(f->module->arena, "%s.assign", ir_value(f, state)->name);
    o->reason = ir_reason(f->module, "distribute");
}

static Val copied_const(Cut *c, const Op *o) {
    Op *copy = op_like(c->to, o, o->in);
    return ir_result(c->to, copy, NULL, ir_dtype(c->from, o->out[0]), *ir_shape(c->from, o->out[0]));
}

/* What micro_step leaves for statistics_step, in f32, which holds every float of a graph. */
static Val given(Cut *c, Val v) {
    Arena *a = c->s->m->arena;
    const Value *value = ir_value(c->from, v);
    if (value->kind == VAL_STATE) return ir_use_state(c->to, ir_state_of(c->from, v));
    if (is_const(c->from, v)) return copied_const(c, ir_def(c->from, v));
    const char *name = arena_printf(a, "%s/batch.%d", c->updates.data[0].buffer->name, c->batch->len);
    State *state = ir_state_new(c->s->m, name, STATE_ACCUMULATOR, AMP_DT_F32, value->shape);
    state->slot = "batch";
    vec_push(a, c->batch, state);
    Val kept = v;
    if (value->dtype != AMP_DT_F32) {
        kept = ir_emit(c->from, OP_cast, AMP_DT_F32, NULL, 1, v);
        explained(c->from, kept, name);
    }
    assign(c->from, ir_use_state(c->from, state), kept);
    Val read = ir_use_state(c->to, state);
    if (value->dtype == AMP_DT_F32) return read;
    read = ir_emit(c->to, OP_cast, value->dtype, NULL, 1, read);
    explained(c->to, read, name);
    return read;
}

static Val moved(Cut *c, Val v) {
    if (!c->moved[v.id].id) c->moved[v.id] = given(c, v);
    return c->moved[v.id];
}

static void move_op(Cut *c, const Op *o) {
    Val *in = arena_array(c->s->m->arena, Val, o->n_in + 1);
    for (int j = 0; j < o->n_in; j++) in[j] = moved(c, o->in[j]);
    Op *copy = op_like(c->to, o, in);
    for (int r = 0; r < o->n_out; r++) {
        const Value *value = ir_value(c->from, o->out[r]);
        c->moved[o->out[r].id] = ir_result(c->to, copy, value->name, value->dtype, value->shape);
    }
}

/* The buffer's value before the first micro-batch, and what those before this one made of it. */
static Val value_now(Cut *c, const State *buffer, const State *staged) {
    Func *f = c->to;
    Arena *a = c->s->m->arena;
    const char *path = arena_printf(a, "%s.now", buffer->name);
    Val micro = ir_use_state(f, ir_counter(c->s->m, COUNTER_MICRO, NO_BLOCK));
    Val zero = ir_emit(f, OP_const, AMP_DT_I64, NULL, 0);
    explained(f, zero, path);
    Val first = ir_emit(f, OP_eq, AMP_DT_BOOL, NULL, 2, micro, zero);
    explained(f, first, path);
    Val now = ir_emit(f, OP_where, buffer->dtype, NULL, 3, first, ir_use_state(f, buffer), ir_use_state(f, staged));
    explained(f, now, path)->reason->because = "micro-batches of all ranks, in their order";
    return now;
}

static Func *statistics_step(Module *m) {
    Func *f = ir_program(m, PROGRAM_STATISTICS_STEP);
    return f ? f : ir_program_new(m, PROGRAM_STATISTICS_STEP);
}

static void assign_update(Cut *c, const Update *u) {
    State *staged = accumulate_state(c->s, u->buffer, STATE_STAGED, "staged");
    Val made = moved(c, u->next);
    if (ir_dtype(c->to, made) != u->buffer->dtype) {
        made = ir_emit(c->to, OP_cast, u->buffer->dtype, NULL, 1, made);
        explained(c->to, made, u->buffer->name);
    }
    assign(c->to, ir_use_state(c->to, staged), made);
    Func *last = c->s->apply_step;
    ir_add_result(last, amp_result_text(c->s->m->arena, RESULT_UPDATE, NO_BLOCK, u->buffer->name),
                  ir_use_state(last, staged));
}

static bool is_moved_already(const Split *s, const State *buffer) {
    const char *name = amp_result_text(s->m->arena, RESULT_UPDATE, NO_BLOCK, buffer->name);
    return ir_find_result(s->apply_step, name) != NULL;
}

bool statistics_move(Split *s, const State *buffer, Val next, StateList *batch) {
    Arena *a = s->m->arena;
    Func *f = s->micro_step;
    if (is_moved_already(s, buffer)) return true;
    Cut c = {.s = s, .from = f, .batch = batch};
    find_updates(&c, buffer, next);
    for (int i = 0; i < c.updates.len; i++) ir_use_state(f, c.updates.data[i].buffer);
    const int values = f->values.len, ops = f->body.len;
    c.depends = arena_array(a, bool, values + 1);
    c.wanted = arena_array(a, bool, values + 1);
    c.moved = arena_array(a, Val, values + 1);
    find_dependants(&c);
    find_wanted(&c);
    if (!may_be_cut(&c)) return false;
    c.to = statistics_step(s->m);
    for (int i = 0; i < c.updates.len; i++) {
        const State *of = c.updates.data[i].buffer, *staged = accumulate_state(s, of, STATE_STAGED, "staged");
        c.moved[ir_use_state(f, of).id] = value_now(&c, of, staged);
    }
    for (int i = 0; i < ops; i++) {
        if (is_moved(&c, ir_op_at(f, i))) move_op(&c, ir_op_at(f, i));
    }
    for (int i = 0; i < c.updates.len; i++) assign_update(&c, &c.updates.data[i]);
    return true;
}
