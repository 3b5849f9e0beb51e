/* casting.c: see casting.h. */
#include "passes/precision/casting.h"

#include "base/names.h"
#include "passes/common/common.h"

Casting casting_new(Module *m, Func *f, const Policy *policy) {
    Casting x = {.m = m, .f = f, .policy = policy};
    x.casts = arena_alloc(m->arena, sizeof *x.casts * (size_t)f->values.len);
    return x;
}

int factor_count(const Op *o) {
    const OpInfo *info = &ir_op_info[o->code];
    return info->flags & PRODUCT ? (int)strspn(info->graph, "P") : 0;
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

bool casting_is_backward(const Op *o) { return o->reason && !strcmp(o->reason->rule, "gradient"); }

/* By which op of the backward pass the policy decides: what spreads the gradient of a mean divides it. */
static Opcode listed_as(const Op *o) { return o->code == OP_broadcast_to && ir_attr(o, "mean")->b ? OP_div : o->code; }

/* The rows of a lazy table are cast once they are taken out: a copy of all would have to be rounded in each step. */
static const TrainGroup *lazy_group(const Casting *x, const Op *o) {
    const State *table = o->code == OP_embedding ? ir_state_of(x->f, o->in[1]) : NULL;
    return table ? ir_lazy_group(x->m, table->name) : NULL;
}

Choice casting_choose(const Casting *x, const Op *o) {
    Choice choice = {0};
    const TrainGroup *lazy = lazy_group(x, o);
    if (lazy) {
        choice.op_class = x->policy->algorithm == ALGORITHM_PAINT ? POLICY_DENY : POLICY_F32;
        choice.why = (Reason){.rule = policy_class_words[choice.op_class], .where = lazy->pos};
        choice.why.is_override = lazy->pos.line;
        choice.why.because = "rows of a lazy table are taken out as they are stored";
        return choice;
    }
    const Override *v = x->has_overrides ? override_for(x->m, x->policy, o, &choice.op_class) : NULL;
    if (v) {
        choice.why = (Reason){.is_override = true, .where = v->pos, .because = v->because};
    } else {
        const PolicyLine *line = casting_is_backward(o) ? policy_line_of_gradient(x->policy, listed_as(o), o->layer)
                                                        : policy_line_of(x->policy, o->code, o->layer);
        choice.op_class = line->op_class;
        choice.policy_text = line->text;
        choice.why = (Reason){.origin = x->policy->name, .line = line->line};
    }
    choice.why.rule = policy_class_words[choice.op_class];
    return choice;
}

static Reason *new_reason(const Casting *x, Reason like, const char *relation, const char *neighbour) {
    Reason *r = arena_new(x->m->arena, Reason);
    *r = like;
    r->relation = neighbour ? relation : NULL;
    r->neighbour = neighbour;
    return r;
}

const char *casting_maker(const Func *f, Val v) {
    const Op *def = ir_def(f, v);
    return def && def->path ? def->path : ir_value(f, v)->name;
}

OpTypes casting_types(const Casting *x, const Op *o, PolicyClass op_class) {
    Operand *operands = arena_array(x->m->arena, Operand, o->n_in + 1);
    for (int i = 0; i < o->n_in; i++)
        operands[i] =
            (Operand){ir_dtype(x->f, o->in[i]), operand_is_castable(x->f, o, i), ir_shape(x->f, o->in[i])->rank > 0};
    return op_types(op_class, x->policy->low, operands, o->n_in, factor_count(o));
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* PyTorch keeps the casts of parameters alone.  What else several ops read is cast for each of them, so that their
 * gradients add up in the type of the value; in the forward pass `simplify` makes one of these casts. */
static bool is_shared(const Casting *x, Val v) {
    if (x->shares_casts) return true;
    const State *s = ir_state_of(x->f, v);
    return s && s->role == STATE_PARAM;
}

/* The cast of |v| to |t| that |o| reads; |nth| is the number of casts made for |o| so far. */
static Val cast_for(Casting *x, const Op *o, const Choice *choice, Val v, Dtype t, int *nth) {
    Val *slot = &x->casts[v.id][t];
    if (slot->id && is_shared(x, v)) return *slot;
    Arena *arena = x->m->arena;
    const char *name = ir_value(x->f, v)->name;
    const char *hint = is_numbered(x->f, v) ? NULL : arena_printf(arena, "%s.%s", name, amp_dtype_name(t));
    *slot = ir_emit(x->f, OP_cast, t, hint, 1, v);
    Op *cast = ir_def(x->f, *slot);
    cast->pos = o->pos;
    cast->checkpoint = o->checkpoint;
    cast->path = arena_printf(arena, *nth ? "%s.cast_%d" : "%s.cast", casting_maker(x->f, o->out[0]), *nth);
    cast->reason = new_reason(x, choice->why, "for", casting_maker(x->f, o->out[0]));
    ++*nth;
    return *slot;
}

static Dtype wanted_dtype(const OpTypes *types, const Op *o, int operand) {
    return operand < factor_count(o) ? types->factors : types->read;
}

static void cast_operands(Casting *x, Op *o, const OpTypes *types, const Choice *choice) {
    int made = 0;
    for (int i = o->n_in - 1; i >= 0; i--) {
        Dtype t = wanted_dtype(types, o, i), now = ir_dtype(x->f, o->in[i]);
        if (t == AMP_DT_NONE || t == now || !operand_is_castable(x->f, o, i)) continue;
        o->in[i] = cast_for(x, o, choice, o->in[i], t, &made);
    }
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void set_results(Casting *x, Op *o, Dtype t) {
    InferredTypes inferred;
    if (ir_infer(x->f, o, t, &inferred)) return; /* the verifier saw the same shapes */
    for (int i = 0; i < o->n_out && i < inferred.count; i++) ir_value(x->f, o->out[i])->dtype = inferred.dtype[i];
}

static void record(Casting *x, const Op *o, const Val *before, const Choice *choice) {
    Arena *arena = x->m->arena;
    Decision d = {
        .path = casting_maker(x->f, o->out[0]),
        .op = ir_op_info[o->code].name,
        .layer = o->layer,
        .out = ir_dtype(x->f, o->out[0]),
        .reason = o->reason,
        .policy_text = choice->policy_text,
        .pos = o->pos,
    };
    for (int i = 0; i < o->n_in; i++) {
        Dtype t = ir_dtype(x->f, o->in[i]);
        vec_push(arena, &d.operands, t);
        const char *value =
            is_numbered(x->f, before[i]) ? casting_maker(x->f, before[i]) : ir_value(x->f, before[i])->name;
        CastNote note = {value, ir_dtype(x->f, before[i]), t};
        if (note.from != note.to) vec_push(arena, &d.casts, note);
    }
    vec_push(arena, &x->m->decisions, d);
}

void casting_apply(Casting *x, Op *o, const Choice *choice, const OpTypes *types) {
    const Val *before = o->in;
    o->in = arena_array(x->m->arena, Val, o->n_in + 1);
    if (o->n_in) memcpy(o->in, before, sizeof(Val) * (size_t)o->n_in);
    const char *neighbour = types->forced_by >= 0 ? casting_maker(x->f, o->in[types->forced_by]) : NULL;
    cast_operands(x, o, types, choice);
    o->reason = new_reason(x, choice->why, "input", neighbour);
    set_results(x, o, types->out);
    if (x->has_decisions) record(x, o, before, choice);
}

const char *casting_undecided(const Op *o) {
    return o->code == OP_const ? "weak" : o->code == OP_cast ? "written" : NULL;
}

void casting_walk(Casting *x, void (*decide)(Casting *x, Op *o, void *user), void *user) {
    Func *f = x->f;
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) {
        Op *o = ir_op(f, body.data[i]);
        const char *rule = casting_undecided(o);
        if (!rule) decide(x, o, user);
        else if (!o->reason) o->reason = ir_reason(x->m, rule);
        vec_push(x->m->arena, &f->body, body.data[i]);
    }
}

void casting_updates(const Casting *x) {
    for (int i = 0; i < x->f->results.len; i++) {
        Result *r = &x->f->results.data[i];
        const State *s = r->kind == RESULT_UPDATE ? ir_result_state(x->f, r) : NULL;
        if (!s || ir_dtype(x->f, r->value) == s->dtype) continue;
        r->value = ir_emit(x->f, OP_cast, s->dtype, NULL, 1, r->value);
        Op *cast = ir_def(x->f, r->value);
        cast->path = arena_printf(x->m->arena, "%s.cast", s->name);
        cast->pos = s->pos;
        cast->reason = new_reason(x, (Reason){.rule = "update"}, "of", s->name);
    }
}
