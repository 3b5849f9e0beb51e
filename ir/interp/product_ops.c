/* product_ops.c: products of matrices. */
#include "ir/interp/ops.h"

#include <math.h>

/* ---- products ---------------------------------------------------------------------------------------------------- */

static int64_t last_dim(const InterpTensor *t) { return t->dims[t->rank - 1]; }

/* Element (row, column) of a matrix that is stored |width| wide, or transposed. */
static double element(const double *data, int64_t width, bool transposed, int64_t row, int64_t column) {
    return data[transposed ? column * width + row : row * width + column];
}

typedef struct Product {
    const double *a, *b;
    int64_t width_of_a, width_of_b, inner;
    bool ta, tb;
} Product;

static double product_at(const Product *p, int64_t row, int64_t column) {
    double sum = 0.0;
    for (int64_t k = 0; k < p->inner; k++)
        sum += element(p->a, p->width_of_a, p->ta, row, k) * element(p->b, p->width_of_b, p->tb, k, column);
    return sum;
}

/* The matrix of |t| that belongs to the one of |out| at element |i|: leading dims broadcast. */
static const double *matrix_at(const InterpTensor *t, const InterpTensor *out, int64_t i) {
    int64_t of_out[MAX_RANK], at[MAX_RANK] = {0};
    interp_coordinates(out, i, of_out);
    for (int d = 0; d < t->rank - 2; d++) at[d] = t->dims[d] == 1 ? 0 : of_out[d + out->rank - t->rank];
    return t->data + interp_offset(t, at);
}

/* Batched, as NumPy: matmul, batch_contract. */
static void run_matmul(Running *r) {
    const InterpTensor *a = r->in[0], *b = r->in[1];
    InterpTensor *out = r->out[0];
    Product p = {
        .ta = interp_bool(r, "ta"), .tb = interp_bool(r, "tb"), .width_of_a = last_dim(a), .width_of_b = last_dim(b)};
    p.inner = a->dims[a->rank - (p.ta ? 2 : 1)];
    int64_t columns = last_dim(out), size = columns * out->dims[out->rank - 2];
    for (int64_t i = 0; i < out->count; i++) {
        p.a = matrix_at(a, out, i);
        p.b = matrix_at(b, out, i);
        out->data[i] = product_at(&p, i % size / columns, i % columns);
    }
}

/* The operands are matrices: their leading dims are rows. */
static void run_contract(Running *r) {
    const InterpTensor *a = r->in[0], *b = r->in[1];
    Product p = {.a = a->data, .b = b->data, .width_of_a = last_dim(a), .width_of_b = last_dim(b)};
    p.ta = interp_bool(r, "ta");
    p.tb = interp_bool(r, "tb");
    p.inner = p.ta ? a->count / p.width_of_a : p.width_of_a;
    int64_t columns = last_dim(r->out[0]);
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = product_at(&p, i / columns, i % columns);
}

static void run_linear(Running *r) {
    const InterpTensor *x = r->in[0], *w = r->in[1], *bias = r->op->n_in == 3 ? r->in[2] : NULL;
    bool transposed = interp_bool(r, "transposed");
    int64_t inner = x->dims[x->rank - 1], outer = r->out[0]->dims[x->rank - 1];
    FOR_EACH(r, i) {
        int64_t row = i / outer, o = i % outer;
        double sum = 0.0;
        for (int64_t k = 0; k < inner; k++)
            sum += x->data[row * inner + k] * w->data[transposed ? k * outer + o : o * inner + k];
        result(r)[i] = sum + (bias ? bias->data[o] : 0.0);
    }
}

const InterpFn interp_product_ops[OP_COUNT] = {
    [OP_contract] = run_contract,
    [OP_batch_contract] = run_matmul,
    [OP_matmul] = run_matmul,
    [OP_linear] = run_linear,
};
