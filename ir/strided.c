/* strided.c: see strided.h. */
#include "ir/strided.h"

static bool dense(const Shape *s, Dim *stride) {
    Dim next = dim_const(1);
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = next;
        if (i && !dim_mul(next, s->d[i], &next)) return false;
    }
    return true;
}

bool ir_strided_dense(const Func *f, Val v, Strided *out) {
    *out = (Strided){.source = v, .shape = *ir_shape(f, v)};
    return dense(&out->shape, out->stride);
}

bool ir_moves_by_stride(const Op *o) {
    return o->code == OP_reshape || o->code == OP_permute || o->code == OP_slice || o->code == OP_expand;
}

static int dim_number(int64_t dim, int rank) { return (int)(dim < 0 ? dim + rank : dim); }

static bool permuted(const Op *o, const Strided *x, Strided *out) {
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < dims->count; i++) out->stride[i] = x->stride[dim_number(dims->at[i], x->shape.rank)];
    return true;
}

static bool sliced(const Op *o, const Strided *x, Strided *out) {
    Dim from;
    const int dim = dim_number(ir_attr(o, "dim")->i, x->shape.rank);
    if (!dim_mul(x->stride[dim], dim_const(ir_attr(o, "from")->i), &from) || dim_varies(from)) return false;
    out->offset += from.mul;
    return true;
}

static bool expanded(const Strided *x, Strided *out) {
    const int front = out->shape.rank - x->shape.rank;
    for (int i = out->shape.rank - 1; i >= 0; i--) {
        const bool same = i >= front && dim_equal(x->shape.d[i - front], out->shape.d[i]);
        out->stride[i] = same ? x->stride[i - front] : dim_const(0);
    }
    return true;
}

/* ---- reshape ----------------------------------------------------------------------------------------------------- */

/* Below 0: a < b.  N counts as more than any power of T, and T as more than any number. */
static int compare(Dim a, Dim b) {
    if (dim_equal(a, b)) return 0;
    if (a.n != b.n) return a.n > b.n ? 1 : -1;
    if (a.t != b.t) return a.t > b.t ? 1 : -1;
    return (double)a.mul / (double)a.div < (double)b.mul / (double)b.div ? -1 : 1;
}

/* Dims of the operand [from, to) that are the elements of dims of the result, from the inside out. */
typedef struct Run {
    int first, last; /* last: one past */
    Dim count;
} Run;

static bool take_dim(const Shape *s, Run *run) {
    return run->first > 0 && dim_mul(run->count, s->d[--run->first], &run->count);
}

/* As one dim: each outer one goes on where the inner one ends. */
static bool is_one_run(const Strided *x, const Run *run, Dim *stride) {
    Dim next = dim_const(0);
    bool begun = false;
    *stride = dim_const(1);
    for (int i = run->last - 1; i >= run->first; i--) {
        if (dim_is_one(x->shape.d[i])) continue;
        if (!begun) *stride = x->stride[i];
        else if (!dim_equal(x->stride[i], next)) return false;
        begun = true;
        if (!dim_mul(x->stride[i], x->shape.d[i], &next)) return false;
    }
    return true;
}

static bool lay_out(Strided *out, const Run *run, Dim stride) {
    for (int i = run->last - 1; i >= run->first; i--) {
        out->stride[i] = stride;
        if (i > run->first && !dim_mul(stride, out->shape.d[i], &stride)) return false;
    }
    return true;
}

static bool reshaped(const Strided *x, Strided *out) {
    Run from = {x->shape.rank, x->shape.rank, dim_const(1)}, to = {out->shape.rank, out->shape.rank, dim_const(1)};
    while (from.first > 0 || to.first > 0) {
        Dim stride;
        from = (Run){from.first, from.first, dim_const(1)};
        to = (Run){to.first, to.first, dim_const(1)};
        if (from.first > 0 && !take_dim(&x->shape, &from)) return false;
        if (to.first > 0 && !take_dim(&out->shape, &to)) return false;
        for (int order; (order = compare(from.count, to.count)) != 0;)
            if (!take_dim(order < 0 ? &x->shape : &out->shape, order < 0 ? &from : &to)) return false;
        if (!is_one_run(x, &from, &stride) || !lay_out(out, &to, stride)) return false;
    }
    return true;
}

bool ir_strided_result(const Func *f, const Op *o, const Strided *x, Strided *out) {
    *out = *x;
    out->shape = *ir_shape(f, o->out[0]);
    switch (o->code) {
    case OP_permute: return permuted(o, x, out);
    case OP_slice: return sliced(o, x, out);
    case OP_expand: return expanded(x, out);
    case OP_reshape: return reshaped(x, out);
    default: return false;
    }
}

Strided ir_strided_repeat(const Strided *x, const Shape *shape) {
    Strided out = *x;
    const int front = shape->rank - x->shape.rank;
    out.shape = *shape;
    for (int i = 0; i < shape->rank; i++) {
        const bool is_one = i < front || (dim_is_one(x->shape.d[i - front]) && !dim_is_one(shape->d[i]));
        out.stride[i] = is_one ? dim_const(0) : x->stride[i - front];
    }
    return out;
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

bool ir_strided_matrix(const Strided *x, bool *transposed, Dim *pitch) {
    const int r = x->shape.rank - 2, c = x->shape.rank - 1;
    if (r < 0) return false;
    const bool along_rows = dim_is_one(x->stride[c]) || dim_is_one(x->shape.d[c]);
    *transposed = !along_rows;
    *pitch = x->stride[along_rows ? r : c];
    return along_rows || dim_is_one(x->stride[r]) || dim_is_one(x->shape.d[r]);
}
