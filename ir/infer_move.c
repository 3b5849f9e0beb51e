/* infer_move.c: shapes of ops that move elements and compute nothing.  They keep their operand's dtype; operands of
 * concat and stack may differ in theirs until autocast has promoted them. */
#include "ir/infer.h"

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
