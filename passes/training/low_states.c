/* low_states.c: parameters and moments that are stored in 16 bits, and moments in 8, as the precision block asks.  A
 * step computes in f32 as before, and rounds what it stores: an optimizer reads any float, and everything else reads a
 * cast.
 *
 *   masters bf16(rounding = stochastic)    moments bf16(rounding = nearest)
 *
 *   state %w : f32[8, 4]                         =>   state %w : bf16[8, 4]
 *   %w.h = cast(%w) : bf16                            %w.f32 = cast(%w) : f32      %w.h = cast(%w.f32) : bf16
 *   %6, %7 = sgd(%w, ..., %"w/momentum")              %6, %7 = sgd(%w, ..., %"w/momentum") : f32, f32
 *   assign(%w, %6)                                    %w.next.bf16 = stochastic_cast(%6; key = "w", word = 0) : bf16
 *   assign(%"w/momentum", %7)                         assign(%w, %w.next.bf16)
 *                                                     %m.next.bf16 = cast(%7) : bf16
 *                                                     assign(%"w/momentum", %m.next.bf16)
 *
 * Only parameters of two or more dimensions, and their moments: vectors are a small part of the bytes, and among them
 * are the scales of norms, which have no place for the noise of a rounding.
 *
 * To nearest, a step of less than half a unit is lost whenever it comes: a weight whose steps are small never changes,
 * and a second moment, which sinks by a factor of 0.999, never sinks (half a unit of bf16 is a share of 0.002 to
 * 0.004).  Stochastic rounding loses nothing in the mean.
 *
 * `moments f8` is f8m for first moments, f8v for second ones: f8v has no sign and more exponents, and no number that
 * is not zero becomes zero in it, because a step divides by its root.  It is never rounded to nearest.
 *
 * Averages (`ema`) stay f32, and are averages of what is stored.
 */
#include "base/dtypes.h"
#include "passes/training/training.h"

#include "ir/state_type.h"

typedef struct Storing { /* one function while its states become low */
    Func *f;
    StateType masters, moments, second_moments;
    Renames renames; /* of states, to what is read in their place */
    Renames rounded; /* of next values, to what is stored */
} Storing;

/* It moves by a thousandth of a weight's steps: 16 bits would lose them. */
static bool is_average(const State *state) { return !strcmp(state->slot, AMP_SLOT_EMA); }
static bool is_second_moment(const State *state) { return !strcmp(state->slot, "v"); }

static const StateType *type_of(const Storing *s, const State *state) {
    static const StateType f32 = {.dtype = AMP_DT_F32};
    if (!state || state->shape.rank < 2) return &f32;
    if (state->role == STATE_PARAM) return &s->masters;
    if (state->role != STATE_MOMENT || is_average(state)) return &f32;
    return is_second_moment(state) ? &s->second_moments : &s->moments;
}

static bool is_low(const Storing *s, Val v) { return type_of(s, ir_state_of(s->f, v))->dtype != AMP_DT_F32; }

static void explain(const Storing *s, const State *state, Val made, const char *what, const char *rule) {
    Op *o = ir_def(s->f, made);
    o->path = arena_printf(s->f->module->arena, "%s.%s", state->name, what);
    o->pos = state->pos;
    o->reason = ir_reason(s->f->module, rule);
    o->reason->relation = "of";
    o->reason->neighbour = state->name;
}

static const char *typed_name(const Storing *s, Val v, Dtype t) {
    return arena_printf(s->f->module->arena, "%s.%s", ir_value(s->f, v)->name, amp_dtype_name(t));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The state in f32; one cast serves a function. */
static Val widened(Storing *s, Val v) {
    Val *slot = &s->renames.to[v.id];
    if (slot->id) return *slot;
    *slot = ir_emit(s->f, OP_cast, AMP_DT_F32, typed_name(s, v, AMP_DT_F32), 1, v);
    explain(s, ir_state_of(s->f, v), *slot, "cast", "storage");
    return *slot;
}

/* Rows of a table are widened when they have been taken out: the whole table is never there in f32. */
static bool is_looked_up(const Storing *s, const Op *o, int operand) {
    return o->code == OP_embedding && operand == 1 && ir_dtype(s->f, o->out[0]) == AMP_DT_F32;
}

static bool reads_as_stored(const Storing *s, const Op *o, int operand) {
    bool updates = ir_op_info[o->code].flags & (OPTIMIZER | COLLECTIVE) || (o->code == OP_assign && operand == 0);
    return updates || !ir_reads_elements(o, operand) || is_looked_up(s, o, operand);
}

static void widen_rows(Storing *s, const Op *o) {
    Val rows = o->out[0];
    ir_value(s->f, rows)->dtype = ir_dtype(s->f, o->in[1]);
    Val wide = ir_emit(s->f, OP_cast, AMP_DT_F32, typed_name(s, rows, AMP_DT_F32), 1, rows);
    explain(s, ir_state_of(s->f, o->in[1]), wide, "cast", "storage");
    s->renames.to[rows.id] = wide;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A parameter and its moments draw different words of one Philox. */
static void set_key(const State *state, const Op *cast) {
    ir_attr(cast, "key")->s = state->of ? state->of : state->name;
    ir_attr(cast, "word")->i = !state->of ? 0 : is_second_moment(state) ? 2 : 1;
}

static void round_next(Storing *s, Op *assign) {
    const State *state = ir_state_of(s->f, assign->in[0]);
    const StateType *type = type_of(s, state);
    const Val next = assign->in[1];
    const char *name = typed_name(s, next, type->dtype);
    Opcode code = type->stochastic ? OP_stochastic_cast : OP_cast;
    assign->in[1] = ir_emit(s->f, code, type->dtype, name, 1, next);
    if (type->stochastic) set_key(state, ir_def(s->f, assign->in[1]));
    explain(s, state, assign->in[1], ir_op_info[code].name, "update");
    s->rounded.to[next.id] = assign->in[1];
}

/* An average is of a parameter as it is stored. */
static void average_rounded(Storing *s, Op *ema) {
    const Val rounded = s->rounded.to[ema->in[0].id];
    if (!rounded.id) return;
    ema->in[0] = ir_emit(s->f, OP_cast, AMP_DT_F32, typed_name(s, rounded, AMP_DT_F32), 1, rounded);
    explain(s, ir_state_find(s->f->module, ir_state_of(s->f, ema->in[1])->of), ema->in[0], "cast", "storage");
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void store_of(Storing *s, Op *o, OpId id) {
    const int stored = o->code == OP_embedding && is_low(s, o->in[1]) && is_looked_up(s, o, 1) ? 1 : -1;
    for (int i = 0; i < o->n_in; i++) {
        if (is_low(s, o->in[i]) && !reads_as_stored(s, o, i)) o->in[i] = widened(s, o->in[i]);
        else if (!is_low(s, o->in[i])) o->in[i] = renames_get(&s->renames, o->in[i]);
    }
    if (o->code == OP_assign && is_low(s, o->in[0])) round_next(s, o);
    if (o->code == OP_ema) average_rounded(s, o);
    vec_push(s->f->module->arena, &s->f->body, id);
    if (stored > 0) widen_rows(s, o);
}

static void store_in(Storing *s) {
    Func *f = s->f;
    s->renames = renames_new(f);
    s->rounded = renames_new(f);
    for (int i = 0; i < f->inputs.len; i++)
        if (is_low(s, f->inputs.data[i])) {
            Value *value = ir_value(f, f->inputs.data[i]);
            value->dtype = type_of(s, ir_state_of(f, f->inputs.data[i]))->dtype;
        }
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) store_of(s, ir_op(f, body.data[i]), body.data[i]);
    for (int i = 0; i < f->results.len; i++) {
        Val *v = &f->results.data[i].value;
        *v = is_low(s, *v) ? widened(s, *v) : renames_get(&s->renames, *v);
    }
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* What `explain` says of the casts of parameters: from the type that they are stored in. */
static void tell_decisions(Storing *s, Module *m) {
    for (int i = 0; i < m->decisions.len; i++) {
        Decision *d = &m->decisions.data[i];
        int kept = 0;
        for (int j = 0; j < d->casts.len; j++) {
            CastNote note = d->casts.data[j];
            const State *state = ir_state_find(m, note.value);
            const Dtype stored = type_of(s, state)->dtype;
            if (state && stored != AMP_DT_F32 && note.from == AMP_DT_F32) note.from = stored;
            if (note.from != note.to) d->casts.data[kept++] = note;
        }
        d->casts.len = kept;
    }
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* |slot|: of these, where they are not f32 anyway. */
static bool has_moments(const Module *m, const char *slot) {
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (s->role != STATE_MOMENT) continue;
        if (slot ? !strcmp(s->slot, slot) && s->shape.rank > 1 : !is_average(s)) return true;
    }
    return false;
}

static bool check_masters(PassContext *c, const StateType *masters) {
    if (!amp_is_f8(masters->dtype)) return true;
    Diag *diag =
        place_error(c, c->m->masters.pos, "masters = f8: two bits of mantissa are for moments, not for weights");
    diag_help(c->diags, diag, "masters = bf16 halves them");
    return false;
}

static bool check_squares(PassContext *c, const StateType *moments) {
    const bool sums = has_moments(c->m, "squares");
    const char *squares = sums ? "squares" : "v", *help = "moments = bf16 has the range of f32";
    if (moments->dtype == AMP_DT_F16 && (sums || has_moments(c->m, "v"))) {
        Diag *diag = place_error(c, c->m->moments.pos,
                                 "moments = f16: %s holds squares of gradients, and f16 has none below 6e-8, the "
                                 "square of 2.4e-4",
                                 squares);
        diag_help(c->diags, diag, "%s; f16 is for sgd's and muon's momentum and lion's m", help);
        return false;
    }
    if (!amp_is_f8(moments->dtype) || !sums) return true;
    Diag *diag = place_error(c, c->m->moments.pos,
                             "moments = f8: adagrad's sum of squares grows from step to step, and f8 ends at 2560");
    diag_help(c->diags, diag, "%s", help);
    return false;
}

static bool check_centered(PassContext *c) {
    const Call *optimizer;
    for (int i = 0; (optimizer = ir_optimizer_at(c->m, i)); i++) {
        const CallArg *centered = ir_call_arg(optimizer, "centered");
        if (!centered || !centered->value.b || ir_opcode(optimizer->name) != OP_rmsprop) continue;
        Diag *diag = place_error(c, c->m->moments.pos,
                                 "moments = %s: rmsprop with centered divides by the root of v - m * m, which may be "
                                 "smaller than the rounding of v",
                                 c->m->moments.name);
        diag_help(c->diags, diag, "remove the line, or remove centered = true");
        return false;
    }
    return true;
}

static bool check_moments(PassContext *c, const StateType *moments) {
    const Module *m = c->m;
    const char *type = m->moments.name;
    if (moments->dtype == AMP_DT_F32 || !train_last_function(m)) return true;
    if (!has_moments(m, NULL)) {
        if (ir_state_type_is_of_policy(m, &m->moments)) return true; /* which speaks of any model */
        Diag *diag = place_error(c, m->moments.pos, "moments = %s, but no optimizer of the model has moments", type);
        diag_help(c->diags, diag, "remove the line, or give sgd a momentum");
        return false;
    }
    return check_centered(c) && check_squares(c, moments);
}

bool store_low_states(PassContext *c) {
    Storing s = {0};
    Module *m = c->m;
    if (!ir_state_type(&m->masters, &s.masters) || !ir_state_type(&m->moments, &s.moments)) return false;
    s.second_moments = s.moments;
    if (s.moments.dtype == AMP_DT_F8M) s.second_moments.dtype = AMP_DT_F8V;
    if (!check_masters(c, &s.masters) || !check_moments(c, &s.moments)) return false;
    if (s.masters.dtype == AMP_DT_F32 && s.moments.dtype == AMP_DT_F32) return true;
    for (int i = 0; i < m->states.len; i++) {
        Dtype t = type_of(&s, m->states.data[i])->dtype;
        if (t != AMP_DT_F32) m->states.data[i]->dtype = m->states.data[i]->storage = t;
    }
    for (int i = 0; i < m->funcs.len; i++) {
        s.f = m->funcs.data[i];
        store_in(&s);
    }
    tell_decisions(&s, m);
    return true;
}
