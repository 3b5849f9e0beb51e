/* infer_product.c: shapes of matrix products. */
#include "ir/infer.h"

const char *infer_linear(Inferring *c) {
    const Shape *x = infer_in(c, 0), *w = infer_in(c, 1);
    if (x->rank < 1 || w->rank != 2) return infer_mismatch(c, "needs x [..., in] and a weight of rank 2");
    bool transposed = ir_attr(c->o, "transposed")->b;
    Dim in = w->d[transposed ? 0 : 1], out = w->d[transposed ? 1 : 0];
    if (!dim_equal(x->d[x->rank - 1], in)) return infer_differing(c, "inner dimensions", x->d[x->rank - 1], in);
    if (c->o->n_in == 3) {
        const Shape *bias = infer_in(c, 2);
        if (bias->rank != 1) return infer_mismatch(c, "needs a bias of rank 1");
        if (!dim_equal(bias->d[0], out)) return infer_differing(c, "bias and output", bias->d[0], out);
    }
    Shape s = *x;
    s.d[s.rank - 1] = out;
    return infer_result(c, c->t, s);
}

/* The last two dims of a (M, K) and b (K, N), as they are stored. */
typedef struct Matrices {
    Dim m, k_of_a, k_of_b, n;
} Matrices;

static Matrices last_two(const Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    bool ta = ir_attr(c->o, "ta")->b, tb = ir_attr(c->o, "tb")->b;
    return (Matrices){.m = a->d[a->rank - (ta ? 1 : 2)],
                      .k_of_a = a->d[a->rank - (ta ? 2 : 1)],
                      .k_of_b = b->d[b->rank - (tb ? 1 : 2)],
                      .n = b->d[b->rank - (tb ? 2 : 1)]};
}

static Shape leading(const Shape *s) {
    Shape out = *s;
    out.rank -= 2;
    return out;
}

static const char *batched(Inferring *c, Shape s, const Matrices *p) {
    if (!dim_equal(p->k_of_a, p->k_of_b)) return infer_differing(c, "inner dimensions", p->k_of_a, p->k_of_b);
    s.d[s.rank++] = p->m;
    s.d[s.rank++] = p->n;
    return infer_result(c, c->t, s);
}

/* As NumPy: the leading dimensions broadcast.  Vectors are no operands: which side they stand on is for the model
 * to say. */
const char *infer_matmul(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    if (a->rank < 2 || b->rank < 2)
        return infer_mismatch(c, "needs operands of rank 2 or more; reshape a vector to one row or one column");
    Matrices p = last_two(c);
    Shape outer_a = leading(a), outer_b = leading(b), s;
    if (!shape_broadcast(&outer_a, &outer_b, &s)) return infer_mismatch(c, "leading dimensions do not broadcast");
    return batched(c, s, &p);
}

const char *infer_batch_contract(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    if (a->rank < 2 || b->rank < 2) return infer_mismatch(c, "needs operands of rank 2 or more");
    Matrices p = last_two(c);
    Shape outer_a = leading(a), outer_b = leading(b);
    if (!shape_equal(&outer_a, &outer_b)) return infer_mismatch(c, "leading dimensions differ");
    return batched(c, outer_a, &p);
}

/* [..., m] and [..., c], summed over all rows: [m, c]. */
static const char *contract_rows(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    Dim rows_a, rows_b, m, n;
    if (a->rank < 2 || b->rank < 2) return infer_mismatch(c, "needs [..., m] and [..., c]");
    if (!shape_matrix(a, &rows_a, &m) || !shape_matrix(b, &rows_b, &n)) return infer_mismatch(c, "is too large");
    if (!dim_equal(rows_a, rows_b)) return infer_differing(c, "inner dimensions", rows_a, rows_b);
    return infer_result(c, c->t, shape_of(2, (Dim[]){m, n}));
}

/* The operands are matrices: [..., k] x [k, C] gives [..., C].  With both transposed, two of rank 2. */
const char *infer_contract(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    bool ta = ir_attr(c->o, "ta")->b, tb = ir_attr(c->o, "tb")->b;
    if (ta && !tb) return contract_rows(c);
    if (a->rank < 1 || b->rank != 2 || (ta && a->rank != 2)) return infer_mismatch(c, "needs [..., k] and [k, c]");
    Dim k_of_a = a->d[ta ? 0 : a->rank - 1], k_of_b = b->d[tb ? 1 : 0], n = b->d[tb ? 0 : 1];
    if (!dim_equal(k_of_a, k_of_b)) return infer_differing(c, "inner dimensions", k_of_a, k_of_b);
    if (ta) return infer_result(c, c->t, shape_of(2, (Dim[]){a->d[1], n}));
    Shape s = *a;
    s.d[s.rank - 1] = n;
    return infer_result(c, c->t, s);
}
