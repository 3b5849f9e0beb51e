/* infer_make.c: shapes of ops that make tensors from numbers, indexes or fewer elements. */
#include "ir/infer.h"

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
