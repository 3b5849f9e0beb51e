/* core_ops.c: what each core op computes, and the ops that both levels have. */
#include "ir/interp/ops.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"

/* ---- elementwise ----------------------------------------------------------------------------- */

static double add(double a, double b) { return a + b; }
static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double larger(double a, double b) { return isnan(a) ? a : isnan(b) || b > a ? b : a; }
static double smaller(double a, double b) { return isnan(a) ? a : isnan(b) || b < a ? b : a; }
static double less(double a, double b) { return a < b; }
static double less_or_equal(double a, double b) { return a <= b; }
static double equal(double a, double b) { return a == b; }
static double both(double a, double b) { return a != 0 && b != 0; }
static double either(double a, double b) { return a != 0 || b != 0; }
static double negative(double a) { return -a; }
static double not(double a) { return a == 0; }
static double finite_number(double a) { return isfinite(a); }
static double plus_one(double a) { return a + 1; }

static void binary(Running *r, double (*f)(double, double)) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++) out->data[i] = f(interp_at(r->in[0], out, i), interp_at(r->in[1], out, i));
}

static void unary(Running *r, double (*f)(double)) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = f(r->in[0]->data[i]);
}

#define BINARY(name, f)                                                                                                \
    static void run_##name(Running *r) { binary(r, f); }
#define UNARY(name, f)                                                                                                 \
    static void run_##name(Running *r) { unary(r, f); }
BINARY(add, add)
BINARY(sub, sub)
BINARY(mul, mul)
BINARY(div, divide)
BINARY(max, larger)
BINARY(min, smaller)
BINARY(lt, less)
BINARY(le, less_or_equal)
BINARY(eq, equal)
BINARY(and, both)
BINARY(or, either)
UNARY(neg, negative)
UNARY(exp, exp)
UNARY(log, log)
UNARY(sqrt, sqrt)
UNARY(tanh, tanh)
UNARY(erf, erf)
UNARY(not, not )
UNARY(is_finite, finite_number)
UNARY(increment, plus_one)

static void run_select(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = interp_at(r->in[interp_at(r->in[0], out, i) != 0 ? 1 : 2], out, i);
}

/* The interpreter converts to the result's dtype: see finish_value in interp.c. */
static void run_cast(Running *r) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = r->in[0]->data[i];
}

static void run_const(Running *r) { r->out[0]->data[0] = interp_float(r, "value"); }

/* ---- indexes, extents, random numbers -------------------------------------------------------- */

static void run_iota(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t l = 0; l < interp_line_count(out, interp_int(r, "dim")); l++) {
        Line line = interp_line(out, interp_int(r, "dim"), l);
        for (int64_t j = 0; j < line.length; j++) out->data[line.base + j * line.stride] = (double)j;
    }
}

static const Dims *dims_of(const Running *r) { return &ir_attr(r->op, "dims")->dims; }

static void run_broadcast(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++) out->data[i] = r->in[0]->data[interp_folded_index(out, dims_of(r), i)];
}

static void run_extent(Running *r) { r->out[0]->data[0] = (double)interp_folded_count(r->in[0], dims_of(r)); }

static void run_random(Running *r) {
    uint32_t key = amp_hash32(ir_attr(r->op, "key")->s);
    uint64_t seed = (uint64_t)(int64_t)r->in[1]->data[0];
    uint32_t iteration = (uint32_t)(int64_t)r->in[2]->data[0];
    uint32_t micro = r->op->n_in == 4 ? (uint32_t)(int64_t)r->in[3]->data[0] : 0;
    for (int64_t i = 0; i < r->out[0]->count; i++)
        r->out[0]->data[i] = amp_random_unit(amp_random_u32(seed, key, iteration, micro, (uint64_t)i));
}

/* base to the e, e an integer. */
static void run_power(Running *r) { r->out[0]->data[0] = pow(interp_float(r, "base"), r->in[0]->data[0]); }

/* ---- reductions ------------------------------------------------------------------------------ */

static void reduce(Running *r, double start, double (*f)(double, double)) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = start;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        double *to = &r->out[0]->data[interp_folded_index(r->in[0], dims_of(r), i)];
        *to = f(*to, r->in[0]->data[i]);
    }
}

static void run_reduce_sum(Running *r) { reduce(r, 0.0, add); }
static void run_reduce_max(Running *r) { reduce(r, -INFINITY, larger); }
static void run_reduce_min(Running *r) { reduce(r, INFINITY, smaller); }
static void run_reduce_or(Running *r) { reduce(r, 0.0, either); }

/* ---- products -------------------------------------------------------------------------------- */

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

/* The interpreter writes states when the function has run. */
static void run_assign(Running *r) { (void)r; }

const InterpFn interp_core_ops[OP_COUNT] = {
    [OP_add] = run_add,
    [OP_sub] = run_sub,
    [OP_mul] = run_mul,
    [OP_div] = run_div,
    [OP_maximum] = run_max,
    [OP_minimum] = run_min,
    [OP_lt] = run_lt,
    [OP_le] = run_le,
    [OP_eq] = run_eq,
    [OP_and] = run_and,
    [OP_or] = run_or,
    [OP_neg] = run_neg,
    [OP_exp] = run_exp,
    [OP_log] = run_log,
    [OP_sqrt] = run_sqrt,
    [OP_tanh] = run_tanh,
    [OP_erf] = run_erf,
    [OP_not] = run_not,
    [OP_is_finite] = run_is_finite,
    [OP_increment] = run_increment,
    [OP_select] = run_select,
    [OP_cast] = run_cast,
    [OP_const] = run_const,
    [OP_iota] = run_iota,
    [OP_broadcast] = run_broadcast,
    [OP_extent] = run_extent,
    [OP_random] = run_random,
    [OP_power] = run_power,
    [OP_reduce_sum] = run_reduce_sum,
    [OP_reduce_max] = run_reduce_max,
    [OP_reduce_min] = run_reduce_min,
    [OP_reduce_or] = run_reduce_or,
    [OP_contract] = run_contract,
    [OP_batch_contract] = run_matmul,
    [OP_matmul] = run_matmul,
    [OP_assign] = run_assign,
};
