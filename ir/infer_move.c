/* infer_move.c: shapes of ops that move elements, and of ops that make tensors from numbers, indexes or fewer
 * elements. */
#include "ir/infer.h"

/* ---- movement ---------------------------------------------------------------------------------------------------- */

static Dtype moved(const Inferring *c) { return ir_dtype(c->f, c->o->in[0]); }

/* "dim", as counted from the front; it must not depend on N. */
static const char *fixed_dim(const Inferring *c, int *dim) {
    const char *wrong = infer_check_dim(c);
    if (wrong) return wrong;
    *dim = ir_dim_attr(c->o, "dim", infer_in(c, 0)->rank);
    return infer_in(c, 0)->d[*dim].n ? infer_mismatch(c, "dim %d depends on N", *dim) : NULL;
}

/* ---- the same elements in another shape -------------------------------------------------------------------------- */

const char *infer_reshape(Inferring *c) {
    const Shape *to = &infer_given(c, 0)->shape;
    Dim count, wanted;
    if (!shape_count(infer_in(c, 0), &count) || !shape_count(to, &wanted)) return infer_mismatch(c, "is too large");
    if (!dim_equal(count, wanted)) return infer_differing(c, "counts of elements", count, wanted);
    return infer_result(c, moved(c), *to);
}

const char *infer_flatten(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    int from = ir_dim_attr(c->o, "from", x->rank);
    if (from < 0 || from >= x->rank) return infer_mismatch(c, "from is not one of the operand's dimensions");
    Shape tail = shape_of(x->rank - from, &x->d[from]), out = shape_of(from, x->d);
    if (!shape_count(&tail, &out.d[from])) return infer_mismatch(c, "is too large");
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
        return infer_mismatch(c, "from %lld to %lld is no part of dim %d, which has %lld", (long long)from,
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
        if (x->d[dim].n) return infer_mismatch(c, "dim %d depends on N", dim);
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
        return infer_mismatch(c, "does not broadcast to the result, %s", infer_shape_text(c, to));
    return infer_result(c, ir_dtype(c->f, c->o->in[0]), *to);
}

const char *infer_full(Inferring *c) {
    const Value *given = infer_given(c, 0);
    return infer_result(c, given->dtype, given->shape);
}

const char *infer_arange(Inferring *c) {
    const Shape *to = &infer_given(c, 0)->shape;
    if (to->rank != 1 || to->d[0].n) return infer_mismatch(c, "the result is not [count], or depends on N");
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
    if (table->rank != 2 || table->d[0].n || table->d[1].n)
        return infer_mismatch(c, "needs a table [count, dim] that does not depend on N");
    return NULL;
}

/* [..., dim] */
static const char *rows_shape(const Inferring *c, const Shape *ids, const Shape *table, Shape *out) {
    const char *wrong = check_table(c, table);
    if (wrong) return wrong;
    if (ids->rank == MAX_RANK) return infer_mismatch(c, "the result would have more than %d dimensions", MAX_RANK);
    *out = *ids;
    out->d[out->rank++] = table->d[1];
    return NULL;
}

const char *infer_embedding(Inferring *c) {
    Shape s;
    const char *wrong = rows_shape(c, infer_in(c, 0), infer_in(c, 1), &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 1), s);
}

const char *infer_gather(Inferring *c) {
    Shape s;
    const char *wrong = rows_shape(c, infer_in(c, 1), infer_in(c, 0), &s);
    return wrong ? wrong : infer_result(c, ir_dtype(c->f, c->o->in[0]), s);
}

/* (dy, ids) add up to a table. */
static const char *table_grad(Inferring *c, const Shape *table, Dtype t) {
    Shape s;
    const char *wrong = rows_shape(c, infer_in(c, 1), table, &s);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &s);
    return wrong ? wrong : infer_result(c, t, *table);
}

const char *infer_embedding_grad(Inferring *c) { return table_grad(c, infer_in(c, 2), c->t); }
const char *infer_scatter(Inferring *c) { return table_grad(c, &infer_given(c, 0)->shape, AMP_DT_F32); }
