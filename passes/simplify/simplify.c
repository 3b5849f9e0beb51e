/* simplify: removes work whose result is known or has already been computed.
 * needs: optimizer.  breaks: nothing.
 *
 *   %1 = cast(%0) : f16      %2 = cast(%1) : f32      =>   unchanged: the rounding is part of the model
 *   %1 = cast(%0) : f32      %2 = cast(%1) : f16      =>   %2 = cast(%0) : f16, if the first cast is exact
 *   %1 = matmul(..) : f16    %dw = cast(%1) : f32     =>   %dw = matmul(..) : f32, if only the optimizer reads %dw
 *   %r = relu(%x)            %p = max_pool2d(%r)      =>   %p = relu(max_pool2d(%x))
 *   chains of concat and of slice, sums of padded parts: parts.c
 *   gradients of relu that read a bf16 copy: masks.c
 *
 * Only the rounding of a weight gradient changes bits (each such removal is recorded in Module.removed), and masks.c
 * changes bits of gradients beside results below 2^-134.  Ops whose results are no longer read are left to ir_compact.
 */
#include "passes/simplify/simplify.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

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

/* A product or a sum accumulates in f32: a weight gradient that is rounded to f16 or bf16 only to be cast back to f32
 * is used before the rounding. */
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
        ir_dtype(s->f, x) == ir_dtype(s->f, o->out[0]) && shape_same(ir_shape(s->f, x), ir_shape(s->f, o->out[0]));
    return same ? x : NO_VAL;
}

/* The other operand, if one of them is the neutral element |number|. */
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

Val move_nothing(Simplify *s, Op *o) { return o->n_in == 1 ? unless_promoted(s, o, o->in[0]) : NO_VAL; }

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
    {OP_expand, move_nothing},    {OP_slice, slice_again},        {OP_slice, slice_of_concat},
    {OP_slice, move_nothing},     {OP_pad, move_nothing},         {OP_concat, concat_again},
    {OP_concat, move_nothing},    {OP_transpose, transpose_back}, {OP_detach, move_nothing},
};

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Uses of a weight gradient for which dropping its rounding cannot be observed by the model. */
static bool is_update(Opcode code, int operand) {
    bool optimizer = ir_op_info[code].flags & OPTIMIZER;
    bool all = code == OP_all_finite || code == OP_global_norm;
    return all || ((code == OP_unscale || code == OP_clip_by_norm) && operand == 0) || (optimizer && operand == 1);
}

static bool is_accumulator(const Func *f, Val v) {
    const State *s = ir_state_of(f, v);
    return s && s->role == STATE_ACCUMULATOR;
}

/* sum + gradient, or where(first, gradient, sum + gradient), or of one micro-batch the gradient itself:
 * passes/training/accumulate.c; of a tree also where(merges, sum + gradient, gradient), where(keeps, gradient, sum). */
static bool is_accumulation(const Func *f, const Op *o, int operand) {
    if (o->code == OP_assign) return operand == 1 && is_accumulator(f, o->in[0]);
    if (o->code == OP_add) return operand == 1 && is_accumulator(f, o->in[0]);
    if (o->code != OP_where || !operand) return false;
    const Val other = o->in[3 - operand];
    const Op *sum = ir_def(f, other);
    return is_accumulator(f, other) || (sum && sum->code == OP_add && is_accumulator(f, sum->in[0]));
}

/* The gradient times a number, as a micro-batch weighs it: passes/training/step_mean.c. */
static bool is_weighing(const Func *f, const Op *o, int operand) {
    return o->code == OP_mul && operand == 0 && !ir_shape(f, o->in[1])->rank && ir_shape(f, o->in[0])->rank;
}

static const bool *find_optimizer_values(const Func *f) {
    Arena *a = f->module->arena;
    bool *read = arena_array(a, bool, f->values.len + 1), *other = arena_array(a, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].kind != RESULT_GRADIENT) other[f->results.data[i].value.id] = true;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) {
            bool updates = is_update(o->code, n) || is_accumulation(f, o, n);
            if (is_weighing(f, o, n)) updates = read[o->out[0].id] && !other[o->out[0].id];
            *(updates ? &read[o->in[n].id] : &other[o->in[n].id]) = true;
        }
    }
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

/* An op that was replaced has no readers, but operands: their types may have changed to what it does not take. */
static void drop_replaced(Simplify *s) {
    int kept = 0;
    for (int i = 0; i < s->f->body.len; i++) {
        const Op *o = ir_op_at(s->f, i);
        const bool is_new = o->n_out && (int)o->out[0].id >= s->renames.count;
        if (o->n_out != 1 || is_new || !s->renames.to[o->out[0].id].id) s->f->body.data[kept++] = s->f->body.data[i];
    }
    s->f->body.len = kept;
}

/* One walk is enough: rules look only at earlier ops, which are already simplified. */
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
    drop_replaced(&s);
}

/* ---- relu after max pooling ----------------------------------------------------------------------------------------
 *
 * relu commutes with max pooling, and costs less after it, forward and backward:
 *
 *   %r = relu(%x)                            %q, %w = max_pool2d(%x)
 *   %p, %w = max_pool2d(%r)             =>   %p = relu(%q)
 *   %dr = max_pool2d_grad(%dp, %w, %r)       %dq = relu_grad(%dp, %p)
 *   %dx = relu_grad(%dr, %r)                 %dx = max_pool2d_grad(%dq, %w, %x)
 *
 * No bit of %p and %dx changes: a window may choose another element only where its largest is not positive, and there
 * the gradient is zero.  Only where nothing else reads %r and %dr, and where pooling makes the image smaller.
 */

typedef struct Pooled {
    const Op *pool;
    bool shared;        /* something else reads the relu's result */
    Val result, chosen; /* %p and %w, once they are made */
} Pooled;

typedef struct Commuting {
    Func *f;
    Renames renames;
    Pooled *pooled; /* by id of %r */
    const int *uses;
} Commuting;

static bool shrinks(const Op *pool) {
    const Dims *stride = &ir_attr(pool, "stride")->dims;
    return stride->at[0] > 1 || stride->at[stride->count - 1] > 1;
}

/* relu_grad of what max_pool2d_grad made for the same relu. */
static bool is_masked_pool_grad(const Commuting *c, const Op *o) {
    const Op *grad = o->code == OP_relu_grad ? ir_def(c->f, o->in[0]) : NULL;
    return grad && grad->code == OP_max_pool2d_grad && grad->in[2].id == o->in[1].id && c->uses[o->in[0].id] == 1;
}

static bool is_pattern(const Commuting *c, const Op *o, int operand) {
    switch (o->code) {
    case OP_max_pool2d: return shrinks(o);
    case OP_max_pool2d_grad: return operand == 2;
    case OP_relu_grad: return operand == 1 && is_masked_pool_grad(c, o);
    default: return false;
    }
}

static void note_reader(Commuting *c, const Op *o, int operand) {
    const Op *def = ir_def(c->f, o->in[operand]);
    if (!def || def->code != OP_relu) return;
    Pooled *p = &c->pooled[o->in[operand].id];
    if (!is_pattern(c, o, operand) || (o->code == OP_max_pool2d && p->pool)) p->shared = true;
    if (o->code == OP_max_pool2d) p->pool = o;
}

static void find_pooled(Commuting *c) {
    for (int i = 0; i < c->f->body.len; i++) {
        const Op *o = ir_op_at(c->f, i);
        for (int n = 0; n < o->n_in; n++) note_reader(c, o, n);
    }
    for (int i = 0; i < c->f->results.len; i++) c->pooled[c->f->results.data[i].value.id].shared = true;
}

static bool commutes(const Commuting *c, Val relu) { return c->pooled[relu.id].pool && !c->pooled[relu.id].shared; }

static Val replace(Commuting *c, Val from, Val to) {
    take_name(c->f, to, from);
    return c->renames.to[from.id] = to;
}

static void pool_before_relu(Commuting *c, const Op *pool) {
    const Op *relu = ir_def(c->f, pool->in[0]);
    Dtype t = ir_dtype(c->f, pool->out[0]);
    Pooled *p = &c->pooled[pool->in[0].id];
    Op *first = op_like(c->f, pool, relu->in);
    Val largest = ir_make_results(c->f, first, t, NULL);
    p->chosen = replace(c, pool->out[1], first->out[1]);
    p->result = replace(c, pool->out[0], ir_make_results(c->f, op_like(c->f, relu, &largest), t, NULL));
}

static void mask_before_scatter(Commuting *c, const Op *mask) {
    const Op *scatter = ir_def(c->f, mask->in[0]), *relu = ir_def(c->f, mask->in[1]);
    Dtype t = ir_dtype(c->f, mask->out[0]);
    const Pooled *p = &c->pooled[mask->in[1].id];
    Op *first = op_like(c->f, mask, (Val[]){scatter->in[0], p->result});
    Val masked = ir_make_results(c->f, first, t, NULL);
    Op *second = op_like(c->f, scatter, (Val[]){masked, p->chosen, relu->in[0]});
    replace(c, mask->out[0], ir_make_results(c->f, second, t, NULL));
}

/* The ops that are replaced lose their readers; ir_compact drops them. */
static void move_relus_after_pooling(Func *f) {
    Arena *a = f->module->arena;
    Commuting c = {.f = f, .renames = renames_new(f), .uses = ir_use_counts(f, a)};
    c.pooled = arena_array(a, Pooled, f->values.len + 1);
    find_pooled(&c);
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) {
        Op *o = ir_op(f, body.data[i]);
        renames_apply(&c.renames, o);
        vec_push(a, &f->body, body.data[i]);
        if (o->code == OP_max_pool2d && commutes(&c, o->in[0])) pool_before_relu(&c, o);
        else if (o->code == OP_relu_grad && commutes(&c, o->in[1]) && is_masked_pool_grad(&c, o))
            mask_before_scatter(&c, o);
    }
    renames_apply_results(&c.renames, f);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

bool pass_simplify(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        join_padded_parts(c->m->funcs.data[i]);
        simplify_func(c->m->funcs.data[i]);
        move_relus_after_pooling(c->m->funcs.data[i]);
        mask_by_copies(c->m->funcs.data[i]);
    }
    return true;
}
