/* infer.c: the types of an op's results from its operands and attributes: the table of shape rules by opcode, from
 * ops.def, and the rules of ops that work element by element, and of ops that move elements or make them from numbers,
 * indexes or fewer elements. */
#include "ir/infer.h"

#include <math.h>

#include "base/dtypes.h"

/* ---- one shape --------------------------------------------------------------------------------------------------- */

const char *infer_same(Inferring *c) {
    const char *wrong = infer_check_dim(c);
    for (int i = 1; i < c->o->n_in; i++)
        if (!shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
}

/* By a scalar, the second operand. */
const char *infer_scaled(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 1, 2);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
}

/* The other operands may be anything. */
const char *infer_barrier(Inferring *c) { return infer_result(c, infer_dtype(c, 0), *infer_in(c, 0)); }

const char *infer_same_new_dtype(Inferring *c) { return infer_result(c, c->t, *infer_in(c, 0)); }

/* Operands of one shape, to a type of 16 or 8 bits. */
const char *infer_short_float(Inferring *c) {
    if (c->t != AMP_DT_F16 && c->t != AMP_DT_BF16 && !amp_is_f8(c->t))
        return infer_mismatch(c, "the result is not f16, bf16, f8m or f8v");
    for (int i = 1; i < c->o->n_in; i++)
        if (!shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    return infer_result(c, c->t, *infer_in(c, 0));
}

/* ---- broadcasting ------------------------------------------------------------------------------------------------ */

static const char *broadcast_all(const Inferring *c, Shape *s) {
    *s = *infer_in(c, 0);
    for (int i = 1; i < c->o->n_in; i++) {
        Shape wider;
        if (!shape_broadcast(s, infer_in(c, i), &wider)) return infer_mismatch(c, "shapes do not broadcast");
        *s = wider;
    }
    return NULL;
}

const char *infer_broadcast(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), s);
}

const char *infer_compare(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, AMP_DT_BOOL, s);
}

const char *infer_select(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 1), s);
}

/* (dy, c): c was broadcast to dy. */
const char *infer_where_grad(Inferring *c) {
    Shape s;
    if (!shape_broadcast(infer_in(c, 0), infer_in(c, 1), &s) || !shape_equal(&s, infer_in(c, 0)))
        return infer_mismatch(c, "the condition does not broadcast to the gradient");
    infer_result(c, infer_dtype(c, 0), s);
    return infer_result(c, infer_dtype(c, 0), s);
}

/* (dy, a, b): both were broadcast to dy. */
const char *infer_extremes_grad(Inferring *c) {
    for (int i = 1; i < 3; i++) {
        Shape s;
        if (!shape_broadcast(infer_in(c, 0), infer_in(c, i), &s) || !shape_equal(&s, infer_in(c, 0)))
            return infer_mismatch(c, "operand %d does not broadcast to the gradient", i + 1);
        infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
    }
    return NULL;
}

/* One weight, or one for each channel of [N, C, ...]. */
static const char *check_prelu(const Inferring *c, const Shape *x, const Shape *weight) {
    if (weight->rank != 1) return infer_mismatch(c, "the weight is not a vector");
    if (dim_is_one(weight->d[0])) return NULL;
    if (x->rank < 2) return infer_mismatch(c, "a weight for each channel needs x [N, C, ...]");
    return dim_equal(x->d[1], weight->d[0]) ? NULL : infer_differing(c, "channels and weights", x->d[1], weight->d[0]);
}

const char *infer_prelu(Inferring *c) {
    const char *wrong = check_prelu(c, infer_in(c, 0), infer_in(c, 1));
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 0));
}

/* (dy, x, weight) */
const char *infer_prelu_grad(Inferring *c) {
    const char *wrong = infer_check_like(c, 0, "the gradient", infer_in(c, 1));
    if (!wrong) wrong = check_prelu(c, infer_in(c, 1), infer_in(c, 2));
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 1));
    return infer_result(c, c->t, *infer_in(c, 2));
}

/* ---- optimizers and loss scaling --------------------------------------------------------------------------------- */

const char *infer_update_scale(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, c->o->n_in);
    if (wrong) return wrong;
    infer_result(c, AMP_DT_F32, shape_scalar());
    infer_result(c, AMP_DT_I32, shape_scalar());
    return infer_result(c, AMP_DT_I32, shape_scalar());
}

/* (w, gradient, step, lr, weight decay, moments...): each result looks like w. */
const char *infer_optimizer(Inferring *c) {
    for (int i = 1; i < c->o->n_in; i++) {
        bool is_scalar = i >= 2 && i < 5;
        if (is_scalar && infer_in(c, i)->rank) return infer_mismatch(c, "step, lr and weight decay are not scalars");
        if (!is_scalar && !shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    }
    for (int i = 0; i < ir_op_arity(c->o->code).out; i++) infer_result(c, AMP_DT_F32, *infer_in(c, 0));
    return NULL;
}

/* v, and a state for each of what it is asked for. */
const char *infer_rmsprop(Inferring *c) {
    const int states = 1 + ir_attr(c->o, "centered")->b + (ir_attr(c->o, "momentum")->f != 0);
    if (c->o->n_in != 5 + states) return infer_mismatch(c, "v, m where centered, and a buffer for momentum are needed");
    return infer_optimizer(c);
}

const char *infer_average(Inferring *c) {
    const char *wrong = infer_check_like(c, 1, "the average", infer_in(c, 0));
    if (!wrong) wrong = infer_check_scalars(c, 2, 3);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, *infer_in(c, 0));
}

const char *infer_muon(Inferring *c) {
    const int64_t steps = ir_attr(c->o, "ns_steps")->i;
    if (infer_in(c, 0)->rank != 2) return infer_mismatch(c, "the parameter is no matrix");
    if (steps < 1 || steps >= 100) return infer_mismatch(c, "ns_steps is not from 1 to 99");
    return infer_optimizer(c);
}

/* Of a matrix the means of squares of its rows and of its columns, of a vector a state like it. */
const char *infer_adafactor(Inferring *c) {
    const Shape *w = infer_in(c, 0);
    const bool is_matrix = w->rank == 2;
    const Shape rows = shape_of(1, w->d), cols = shape_of(1, w->d + 1), v = *w;
    if (w->rank > 2) return infer_mismatch(c, "the parameter is neither a matrix nor a vector");
    if (!shape_equal(w, infer_in(c, 1))) return infer_mismatch(c, "shapes differ");
    const char *wrong = infer_check_scalars(c, 2, 5);
    if (wrong) return wrong;
    if (c->o->n_in != (is_matrix ? 7 : 6) || !shape_equal(infer_in(c, 5), is_matrix ? &rows : &v) ||
        (is_matrix && !shape_equal(infer_in(c, 6), &cols)))
        return infer_mismatch(c, "the states are not rows and cols of a matrix, or v of a vector");
    infer_result(c, AMP_DT_F32, v);
    infer_result(c, AMP_DT_F32, is_matrix ? rows : v);
    infer_result(c, AMP_DT_F32, is_matrix ? cols : v);
    return NULL;
}

const char *infer_due(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, c->o->n_in);
    if (wrong) return wrong;
    if (ir_attr(c->o, "every")->i < 1) return infer_mismatch(c, "every must be at least 1");
    return infer_result(c, AMP_DT_BOOL, shape_scalar());
}

/* Of collectives: whether the operands are states the verifier says. */
const char *infer_states(Inferring *c) {
    for (int i = 0; i < c->o->n_in; i++)
        if (shape_varies(infer_in(c, i))) return infer_mismatch(c, "a state does not depend on N or T");
    return NULL;
}

/* Of some rows of a table: with the number of each. */
static const char *rows_of_state(Inferring *c) {
    const Shape *state = infer_in(c, 0), *value = infer_in(c, 1), *rows = infer_in(c, 2);
    if (state->rank != 2 || dim_varies(state->d[0]) || value->rank != 2 || !dim_equal(state->d[1], value->d[1]))
        return infer_mismatch(c, "the value is not rows of the state");
    if (rows->rank != 1 || !dim_equal(rows->d[0], value->d[0]))
        return infer_mismatch(c, "there is no number for each row");
    return NULL;
}

const char *infer_nothing(Inferring *c) {
    if (c->o->n_in == 3) return rows_of_state(c);
    return shape_equal(infer_in(c, 0), infer_in(c, 1)) ? NULL : infer_mismatch(c, "shapes differ");
}

/* ---- movement ---------------------------------------------------------------------------------------------------- */

static Dtype moved(const Inferring *c) { return ir_dtype(c->f, c->o->in[0]); }

/* "dim", as counted from the front; it must not depend on N. */
static const char *fixed_dim(const Inferring *c, int *dim) {
    const char *wrong = infer_check_dim(c);
    if (wrong) return wrong;
    *dim = ir_dim_attr(c->o, "dim", infer_in(c, 0)->rank);
    const Dim d = infer_in(c, 0)->d[*dim];
    return dim_varies(d) ? infer_mismatch(c, "dim %d depends on %s", *dim, d.n ? "N" : "T") : NULL;
}

/* ---- the same elements in another shape -------------------------------------------------------------------------- */

const char *infer_reshape(Inferring *c) {
    const Shape *to = &infer_given(c, 0)->shape;
    Dim count, wanted;
    if (shape_same_count(infer_in(c, 0), to)) return infer_result(c, moved(c), *to);
    if (!shape_count(infer_in(c, 0), &count) || !shape_count(to, &wanted))
        return infer_mismatch(c, "the counts of elements differ");
    if (!dim_equal(count, wanted)) return infer_differing(c, "counts of elements", count, wanted);
    return infer_result(c, moved(c), *to);
}

const char *infer_flatten(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    int from = ir_dim_attr(c->o, "from", x->rank);
    if (from < 0 || from >= x->rank) return infer_mismatch(c, "from is not one of the operand's dimensions");
    Shape tail = shape_of(x->rank - from, &x->d[from]), out = shape_of(from, x->d);
    if (!shape_count(&tail, &out.d[from]))
        return infer_mismatch(c, "the dimensions that become one depend on N twice, or are too large");
    out.rank++;
    return infer_result(c, moved(c), out);
}

/* ---- dimensions change places ------------------------------------------------------------------------------------ */

const char *infer_transpose(Inferring *c) {
    Shape s = *infer_in(c, 0);
    int a = ir_dim_attr(c->o, "a", s.rank), b = ir_dim_attr(c->o, "b", s.rank);
    if (a < 0 || a >= s.rank || b < 0 || b >= s.rank)
        return infer_mismatch(c, "a or b is not one of the operand's dimensions");
    Dim kept = s.d[a];
    s.d[a] = s.d[b];
    s.d[b] = kept;
    return infer_result(c, moved(c), s);
}

const char *infer_permute(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    const Dims *dims = &ir_attr(c->o, "dims")->dims;
    Shape out = {.rank = x->rank};
    bool used[MAX_RANK] = {false};
    if (dims->count != x->rank)
        return infer_mismatch(c, "dims has %d numbers, the operand %d dimensions", dims->count, x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t from = dims->at[i];
        if (from < 0 || from >= x->rank || used[from])
            return infer_mismatch(c, "dims must hold each of 0 to %d once", x->rank - 1);
        used[from] = true;
        out.d[i] = x->d[from];
    }
    return infer_result(c, moved(c), out);
}

/* ---- along one dimension ----------------------------------------------------------------------------------------- */

const char *infer_slice(Inferring *c) {
    int dim;
    const char *wrong = fixed_dim(c, &dim);
    if (wrong) return wrong;
    int64_t from = ir_attr(c->o, "from")->i, to = ir_attr(c->o, "to")->i, size = infer_in(c, 0)->d[dim].mul;
    if (from < 0 || to > size || from >= to)
        return infer_mismatch(c, "from %lld to %lld is not within dim %d, which has %lld", (long long)from,
                              (long long)to, dim, (long long)size);
    Shape s = *infer_in(c, 0);
    s.d[dim] = dim_const(to - from);
    return infer_result(c, moved(c), s);
}

const char *infer_pad(Inferring *c) {
    int dim;
    const char *wrong = fixed_dim(c, &dim);
    if (wrong) return wrong;
    int64_t before = ir_attr(c->o, "before")->i, after = ir_attr(c->o, "after")->i;
    Shape s = *infer_in(c, 0);
    if (before < 0 || after < 0) return infer_mismatch(c, "before and after must be at least 0");
    if (__builtin_add_overflow(s.d[dim].mul, before, &s.d[dim].mul) ||
        __builtin_add_overflow(s.d[dim].mul, after, &s.d[dim].mul))
        return infer_mismatch(c, "is too large");
    return infer_result(c, moved(c), s);
}

const char *infer_concat(Inferring *c) {
    int dim;
    const char *wrong = fixed_dim(c, &dim);
    if (wrong) return wrong;
    Shape s = *infer_in(c, 0);
    for (int i = 1; i < c->o->n_in; i++) {
        const Shape *x = infer_in(c, i);
        if (x->rank != s.rank) return infer_mismatch(c, "ranks differ");
        for (int d = 0; d < s.rank; d++)
            if (d != dim && !dim_equal(s.d[d], x->d[d])) return infer_differing(c, "dimensions", s.d[d], x->d[d]);
        if (dim_varies(x->d[dim])) return infer_mismatch(c, "dim %d depends on %s", dim, x->d[dim].n ? "N" : "T");
        if (__builtin_add_overflow(s.d[dim].mul, x->d[dim].mul, &s.d[dim].mul))
            return infer_mismatch(c, "is too large");
    }
    return infer_result(c, infer_dtype(c, 0), s);
}

/* `dim` counts the dimensions of the result. */
const char *infer_stack(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    int dim = ir_dim_attr(c->o, "dim", x->rank + 1);
    if (dim < 0 || dim > x->rank) return infer_mismatch(c, "dim is not one of the result's");
    if (x->rank == MAX_RANK) return infer_mismatch(c, "the result would have more than %d dimensions", MAX_RANK);
    for (int i = 1; i < c->o->n_in; i++)
        if (!shape_equal(x, infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    Shape s = {.rank = x->rank + 1};
    for (int i = 0; i < s.rank; i++) s.d[i] = i == dim ? dim_const(c->o->n_in) : x->d[i < dim ? i : i - 1];
    return infer_result(c, infer_dtype(c, 0), s);
}

/* ---- from nothing or little -------------------------------------------------------------------------------------- */

const char *infer_expand(Inferring *c) {
    const Shape *to = &infer_given(c, 0)->shape;
    Shape wide;
    if (!shape_broadcast(infer_in(c, 0), to, &wide) || !shape_equal(&wide, to))
        return infer_mismatch(c, "does not broadcast to the result, %s", shape_text(c->f->module->arena, to));
    return infer_result(c, ir_dtype(c->f, c->o->in[0]), *to);
}

const char *infer_full(Inferring *c) {
    const Value *given = infer_given(c, 0);
    return infer_result(c, given->dtype, given->shape);
}

const char *infer_tensor(Inferring *c) {
    const Value *given = infer_given(c, 0);
    const Numbers *numbers = ir_attr(c->o, "values")->numbers;
    const int count = numbers ? numbers->count : 0;
    Elements n;
    if (!shape_elements(&given->shape, &n) || n.batches || n.lengths || n.mul != (int64_t)count * n.div)
        return infer_mismatch(c, "%d numbers do not fill the result", count);
    for (int i = 0; i < count && given->dtype == AMP_DT_I32; i++)
        if (!(fabs(numbers->at[i]) <= INT32_MAX) || numbers->at[i] != floor(numbers->at[i]))
            return infer_mismatch(c, "i32 does not hold %g", numbers->at[i]);
    return infer_result(c, given->dtype, given->shape);
}

const char *infer_arange(Inferring *c) {
    const Shape *to = &infer_given(c, 0)->shape;
    if (to->rank != 1) return infer_mismatch(c, "the result is not [count]");
    if (to->d[0].mul > INT32_MAX) return infer_mismatch(c, "is too large for i32");
    return infer_result(c, AMP_DT_I32, *to);
}

const char *infer_iota(Inferring *c) {
    const char *wrong = infer_check_dim(c);
    return wrong ? wrong : infer_result(c, AMP_DT_I32, *infer_in(c, 0));
}

const char *infer_random(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 1, c->o->n_in);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, *infer_in(c, 0));
}

/* ---- rows of a table --------------------------------------------------------------------------------------------- */

static const char *check_table(const Inferring *c, const Shape *table) {
    if (table->rank != 2 || dim_varies(table->d[0]) || dim_varies(table->d[1]))
        return infer_mismatch(c, "needs a table [count, dim] that does not depend on N or T");
    return NULL;
}

/* [..., dim] */
static const char *rows_shape(const Inferring *c, const Shape *ids, const Shape *table, Shape *out) {
    if (ids->rank == MAX_RANK) return infer_mismatch(c, "the result would have more than %d dimensions", MAX_RANK);
    *out = *ids;
    out->d[out->rank++] = table->d[1];
    return NULL;
}

const char *infer_embedding(Inferring *c) {
    Shape s;
    const char *wrong = check_table(c, infer_in(c, 1));
    if (!wrong) wrong = rows_shape(c, infer_in(c, 0), infer_in(c, 1), &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 1), s);
}

const char *infer_gather(Inferring *c) {
    Shape s;
    const char *wrong = check_table(c, infer_in(c, 0));
    if (!wrong) wrong = rows_shape(c, infer_in(c, 1), infer_in(c, 0), &s);
    return wrong ? wrong : infer_result(c, ir_dtype(c->f, c->o->in[0]), s);
}

/* (dy, ids) add up to a table, or to the rows of one, as many as there are ids. */
static const char *table_grad(Inferring *c, const Shape *table, Dtype t) {
    Shape s;
    const bool by_row = table->rank == 2 && dim_varies(table->d[0]) && !dim_varies(table->d[1]);
    const char *wrong = by_row ? NULL : check_table(c, table);
    if (!wrong) wrong = rows_shape(c, infer_in(c, 1), table, &s);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &s);
    return wrong ? wrong : infer_result(c, t, *table);
}

const char *infer_embedding_grad(Inferring *c) { return table_grad(c, infer_in(c, 2), c->t); }
const char *infer_distinct_rows(Inferring *c) {
    const Shape *ids = infer_in(c, 0), *table = infer_in(c, 1);
    const char *wrong = check_table(c, table);
    if (wrong) return wrong;
    if (ids->rank != 2 || !dim_is_one(ids->d[1])) return infer_mismatch(c, "the ids are not a column");
    wrong = infer_result(c, AMP_DT_I32, shape_of(1, &ids->d[0]));
    if (!wrong) wrong = infer_result(c, AMP_DT_I32, shape_of(1, &ids->d[0]));
    return wrong ? wrong : infer_result(c, AMP_DT_I32, shape_of(1, &table->d[0]));
}

const char *infer_scatter(Inferring *c) { return table_grad(c, &infer_given(c, 0)->shape, AMP_DT_F32); }

/* ---- the table --------------------------------------------------------------------------------------------------- */

static InferRule *const rules[OP_COUNT] = {
#define OP(name, shape, ...) [OP_##name] = infer_##shape,
#include "ir/ops.def"
};

static const char *wrong_count(const OpInfo *info, OpArity arity, Arena *a, int has) {
    if (arity.in_max == arity.in_min)
        return arena_printf(a, "%s: needs %d operands, has %d", info->name, arity.in_min, has);
    if (arity.in_max == MANY)
        return arena_printf(a, "%s: needs at least %d operands, has %d", info->name, arity.in_min, has);
    return arena_printf(a, "%s: needs %d to %d operands, has %d", info->name, arity.in_min, arity.in_max, has);
}

const char *ir_infer(const Func *f, const Op *o, Dtype t, InferredTypes *out) {
    const OpInfo *info = &ir_op_info[o->code];
    Arena *a = f->module->arena;
    *out = (InferredTypes){0};
    if (!rules[o->code]) return "no op";
    OpArity arity = ir_op_arity(o->code);
    if (o->n_in < arity.in_min || o->n_in > arity.in_max) return wrong_count(info, arity, a, o->n_in);
    for (int i = 0; i < o->n_in; i++)
        if (!o->in[i].id || !ir_value(f, o->in[i]))
            return arena_printf(a, "%s: operand %d is not a value of the function", info->name, i + 1);
    Inferring c = {f, o, t, out};
    if (info->flags & GIVEN && !infer_given(&c, 0)) return infer_mismatch(&c, "needs its result's type");
    return rules[o->code](&c);
}
