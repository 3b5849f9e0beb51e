/* simplify: removes work whose result is known or already there.
 * needs: optimizer.  breaks: nothing.
 *
 *   %1 = cast(%0) : f16      %2 = cast(%1) : f32      =>   %2 stays: the rounding is a meaning, not an accident
 *   %1 = cast(%0) : f32      %2 = cast(%1) : f16      =>   %2 = cast(%0) : f16, where the first changes no number
 *   %1 = matmul(..) : f16    %dw = cast(%1) : f32     =>   %dw = matmul(..) : f32, where %dw only goes to the optimizer
 *   %r = relu(%x)            %p = max_pool2d(%r)      =>   %p = relu(max_pool2d(%x)) (simplify_pool.c)
 *
 * Only the rounding of a weight gradient changes bits; each such removal is written down in Module.removed.  Values that nobody reads any
 * more are left to ir_compact.
 */
#include "passes/passes.h"
#include "passes/common/rewrite.h"
#include "passes/simplify/simplify.h"

enum { DTYPES = AMP_DT_BOOL + 1 };

typedef struct Simplify {
    Func *f;
    Renames renames;
    const int *uses;            /* by value id, of the function as it came */
    const bool *only_optimizer; /* by value id: read by the update of a parameter and nothing else */
    Val (*casts)[DTYPES];       /* by value id and dtype: the first such cast */
} Simplify;

/* ---- rules: the value that |o|'s result is equal to, or NO_VAL; a rule may change |o| in place ------------------- */

static Val cast_to_own_dtype(Simplify *s, Op *o) {
    return ir_dtype(s->f, o->in[0]) == ir_dtype(s->f, o->out[0]) ? o->in[0] : NO_VAL;
}

/* cast(cast(x : wide) : t) where wide holds every number of x: one rounding to t either way. */
static Val widen_then_narrow(Simplify *s, Op *o) {
    const Op *first = ir_def(s->f, o->in[0]);
    if (!first || !is_widening(s->f, first)) return NO_VAL;
    o->in[0] = first->in[0];
    return cast_to_own_dtype(s, o);
}

static Val same_cast_before(Simplify *s, Op *o) {
    Val *slot = &s->casts[o->in[0].id][ir_dtype(s->f, o->out[0])];
    if (slot->id) return *slot;
    *slot = o->out[0];
    return NO_VAL;
}

/* A product or a sum accumulates in f32: a weight gradient that is rounded to f16 or bf16 only to be cast back is
 * taken before the rounding. */
static Val weight_gradient_in_f32(Simplify *s, Op *o) {
    Func *f = s->f;
    Arena *a = f->module->arena;
    Op *maker = ir_def(f, o->in[0]);
    if (!maker || !(ir_op_info[maker->code].flags & (PRODUCT | REDUCE)) || s->uses[o->in[0].id] != 1) return NO_VAL;
    Value *gradient = ir_value(f, o->in[0]);
    bool rounded = gradient->dtype == AMP_DT_F16 || gradient->dtype == AMP_DT_BF16;
    if (!rounded || ir_dtype(f, o->out[0]) != AMP_DT_F32 || !s->only_optimizer[o->out[0].id]) return NO_VAL;

    const char *what =
        arena_printf(a, "%s rounding of a weight gradient: the %s writes f32", amp_dtype_name(gradient->dtype),
                     ir_op_info[maker->code].flags & PRODUCT ? "product" : "sum");
    gradient->dtype = AMP_DT_F32;
    take_name(f, o->in[0], o->out[0]);
    Reason *why = ir_reason(f->module, "weight_gradient");
    if (maker->reason) {
        why->relation = maker->reason->relation;
        why->neighbour = maker->reason->neighbour;
    }
    maker->reason = why;
    vec_push(a, &f->module->removed, ((Removed){f->name, gradient->name, what}));
    return o->in[0];
}

/* Whether |v| is the constant |number|; signs of zero differ. */
static bool is_number(const Simplify *s, Val v, double number) {
    const Op *o = ir_def(s->f, v);
    while (o && o->code == OP_cast) o = ir_def(s->f, o->in[0]);
    if (!o || o->code != OP_const) return false;
    double value = ir_attr(o, "value")->f;
    return !memcmp(&value, &number, sizeof value);
}

static Val unless_promoted(const Simplify *s, const Op *o, Val x) {
    bool same =
        ir_dtype(s->f, x) == ir_dtype(s->f, o->out[0]) && shape_equal(ir_shape(s->f, x), ir_shape(s->f, o->out[0]));
    return same ? x : NO_VAL;
}

/* The operand beside a neutral element |number|. */
static Val beside(const Simplify *s, const Op *o, double number) {
    Val found = is_number(s, o->in[1], number) ? unless_promoted(s, o, o->in[0]) : NO_VAL;
    if (!found.id && ir_op_info[o->code].flags & COMMUTES && is_number(s, o->in[0], number))
        found = unless_promoted(s, o, o->in[1]);
    return found;
}

/* x + (-0) is x for every x; x + 0 is not: it turns -0 into 0. */
static Val add_negative_zero(Simplify *s, Op *o) { return beside(s, o, -0.0); }

/* x - 0 is x for every x, -0 included. */
static Val subtract_zero(Simplify *s, Op *o) { return beside(s, o, 0.0); }

static Val multiply_by_one(Simplify *s, Op *o) { return beside(s, o, 1.0); }

static Val divide_by_one(Simplify *s, Op *o) { return beside(s, o, 1.0); }

static Val negate_twice(Simplify *s, Op *o) {
    const Op *first = ir_def(s->f, o->in[0]);
    return first && first->code == OP_neg ? unless_promoted(s, o, first->in[0]) : NO_VAL;
}

/* Movement of one operand whose result has its shape, where that says that no element moves. */
static Val move_nothing(Simplify *s, Op *o) { return o->n_in == 1 ? unless_promoted(s, o, o->in[0]) : NO_VAL; }

static Val reshape_again(Simplify *s, Op *o) {
    const Op *first = ir_def(s->f, o->in[0]);
    if (!first || (first->code != OP_reshape && first->code != OP_flatten)) return NO_VAL;
    o->in[0] = first->in[0];
    return move_nothing(s, o);
}

static Val transpose_back(Simplify *s, Op *o) {
    const Op *first = ir_def(s->f, o->in[0]);
    if (!first || first->code != OP_transpose) return NO_VAL;
    int rank = ir_shape(s->f, o->in[0])->rank;
    int a = ir_dim_attr(o, "a", rank), b = ir_dim_attr(o, "b", rank);
    int c = ir_dim_attr(first, "a", rank), d = ir_dim_attr(first, "b", rank);
    return (a == c && b == d) || (a == d && b == c) ? first->in[0] : NO_VAL;
}

typedef struct Rule {
    Opcode code;
    Val (*apply)(Simplify *s, Op *o);
} Rule;

static const Rule rules[] = {
    /* tried in this order */
    {OP_cast, cast_to_own_dtype}, {OP_cast, widen_then_narrow},   {OP_cast, weight_gradient_in_f32},
    {OP_cast, same_cast_before},  {OP_add, add_negative_zero},    {OP_sub, subtract_zero},
    {OP_mul, multiply_by_one},    {OP_div, divide_by_one},        {OP_neg, negate_twice},
    {OP_reshape, move_nothing},   {OP_reshape, reshape_again},    {OP_flatten, move_nothing},
    {OP_expand, move_nothing},    {OP_slice, move_nothing},       {OP_pad, move_nothing},
    {OP_concat, move_nothing},    {OP_transpose, transpose_back},
};

/* ---- the driver -------------------------------------------------------------------------------------------------- */

/* Where an f32 gradient may go for its rounding to be nobody's meaning. */
static bool is_update(Opcode code, int operand) {
    bool optimizer = code == OP_sgd || code == OP_adam || code == OP_adamw;
    bool all = code == OP_all_finite || code == OP_global_norm;
    return all || ((code == OP_unscale || code == OP_clip_by_norm) && operand == 0) || (optimizer && operand == 1);
}

static bool is_accumulator(const Func *f, Val v) {
    const State *s = ir_state_of(f, v);
    return s && s->role == STATE_ACCUMULATOR;
}

/* sum + gradient, or where(first, gradient, sum + gradient): passes/training/accumulate.c. */
static bool is_accumulation(const Func *f, const Op *o, int operand) {
    if (o->code == OP_add) return operand == 1 && is_accumulator(f, o->in[0]);
    const Op *sum = o->code == OP_where ? ir_def(f, o->in[2]) : NULL;
    return sum && operand == 1 && sum->code == OP_add && is_accumulator(f, sum->in[0]);
}

static const bool *find_optimizer_values(const Func *f) {
    Arena *a = f->module->arena;
    bool *read = arena_array(a, bool, f->values.len + 1), *other = arena_array(a, bool, f->values.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) {
            bool updates = is_update(o->code, n) || is_accumulation(f, o, n);
            *(updates ? &read[o->in[n].id] : &other[o->in[n].id]) = true;
        }
    }
    for (int i = 0; i < f->results.len; i++)
        if (strncmp(f->results.data[i].name, "grad.", 5)) other[f->results.data[i].value.id] = true;
    for (int i = 0; i < f->values.len; i++) read[i] = read[i] && !other[i];
    return read;
}

static void simplify_op(Simplify *s, Op *o) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].code != o->code) continue;
        Val same = rules[i].apply(s, o);
        if (!same.id) continue;
        s->renames.to[o->out[0].id] = same;
        return;
    }
}

/* One walk is enough: a rule looks only at what comes before, which is simple already. */
static void simplify_func(Func *f) {
    Arena *a = f->module->arena;
    Simplify s = {
        .f = f,
        .renames = renames_new(f),
        .uses = ir_use_counts(f, a),
        .only_optimizer = find_optimizer_values(f),
    };
    s.casts = arena_alloc(a, sizeof *s.casts * (size_t)(f->values.len + 1));
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        renames_apply(&s.renames, o);
        simplify_op(&s, o);
    }
    renames_apply_results(&s.renames, f);
}

bool pass_simplify(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len && !c->options->no_simplify; i++) {
        simplify_func(c->m->funcs.data[i]);
        simplify_pooled_relus(c->m->funcs.data[i]);
    }
    c->m->stage = STAGE_SIMPLIFY;
    return true;
}
