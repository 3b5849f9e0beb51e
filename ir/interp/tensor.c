/* tensor.c: indexing and rounding for the reference interpreter. */
#include "ir/interp/ops.h"

#include "base/dtypes.h"
#include "base/rounding.h"

InterpTensor interp_tensor(Arena *a, const char *name, const Shape *shape, Sizes at) {
    InterpTensor t = {.name = name, .rank = shape->rank, .count = 1};
    for (int i = 0; i < shape->rank; i++) t.count *= t.dims[i] = dim_eval(shape->d[i], at);
    t.data = arena_array(a, double, t.count + 1);
    return t;
}

double *interp_scratch(const Running *r, int64_t count) { return arena_array(r->a, double, count + 1); }

void interp_coordinates(const InterpTensor *t, int64_t i, int64_t *at) {
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = i % t->dims[d];
        i /= t->dims[d];
    }
}

int64_t interp_offset(const InterpTensor *t, const int64_t *at) {
    int64_t offset = 0;
    for (int d = 0; d < t->rank; d++) offset = offset * t->dims[d] + at[d];
    return offset;
}

double interp_round(bool round, Dtype t, double x) {
    return round && amp_class_of(t) == AMP_CLASS_FLOAT ? (double)amp_round_dtype(t, (float)x) : x;
}

double interp_at(const InterpTensor *t, const InterpTensor *like, int64_t i) {
    int64_t index = 0, stride = 1;
    for (int d = like->rank - 1, own = t->rank - 1; own >= 0; d--, own--) {
        int64_t coordinate = i % like->dims[d];
        i /= like->dims[d];
        index += (t->dims[own] == 1 ? 0 : coordinate) * stride;
        stride *= t->dims[own];
    }
    return t->data[index];
}

static bool is_folded(const InterpTensor *t, const Dims *dims, int d) {
    for (int i = 0; i < dims->count; i++)
        if (dims->at[i] == d || dims->at[i] + t->rank == d) return true;
    return dims->count == 0;
}

int64_t interp_folded_index(const InterpTensor *t, const Dims *dims, int64_t i) {
    int64_t index = 0, stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        int64_t coordinate = i % t->dims[d];
        i /= t->dims[d];
        if (is_folded(t, dims, d)) continue;
        index += coordinate * stride;
        stride *= t->dims[d];
    }
    return index;
}

int64_t interp_folded_count(const InterpTensor *t, const Dims *dims) {
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++)
        if (is_folded(t, dims, d)) count *= t->dims[d];
    return count;
}

static int64_t dim_length(const InterpTensor *t, int64_t dim) { return t->dims[dim < 0 ? dim + t->rank : dim]; }

int64_t interp_line_count(const InterpTensor *t, int64_t dim) { return t->count / dim_length(t, dim); }

Line interp_line(const InterpTensor *t, int64_t dim, int64_t l) {
    int64_t stride = 1, length = dim_length(t, dim);
    for (int64_t d = (dim < 0 ? dim + t->rank : dim) + 1; d < t->rank; d++) stride *= t->dims[d];
    return (Line){.base = l / stride * stride * length + l % stride, .stride = stride, .length = length};
}

double interp_float(const Running *r, const char *name) { return ir_attr(r->op, name)->f; }
int64_t interp_int(const Running *r, const char *name) { return ir_attr(r->op, name)->i; }
bool interp_bool(const Running *r, const char *name) { return ir_attr(r->op, name)->b; }
