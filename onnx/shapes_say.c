/* shapes_say.c: what rules read and say. */
#include <string.h>

#include "onnx/shapes.h"

static const OnnxValueShape no_shape = {-1, NULL};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int32_t onnx_input(const OnnxSolver *s, int32_t node, int i) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    return i < e->node->inputs.len ? s->index->operands[e->first_input + i] : ONNX_NONE;
}

int32_t onnx_output(const OnnxSolver *s, int32_t node, int i) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    return i < e->node->outputs.len ? s->index->operands[e->first_output + i] : ONNX_NONE;
}

OnnxValueShape onnx_input_shape(const OnnxSolver *s, int32_t node, int i) {
    int32_t v = onnx_input(s, node, i);
    return v == ONNX_NONE ? no_shape : s->out->shapes[v];
}

OnnxKnownInts onnx_input_ints(const OnnxSolver *s, int32_t node, int i) {
    int32_t v = onnx_input(s, node, i);
    return v == ONNX_NONE ? (OnnxKnownInts){NULL, 0} : s->out->ints[v];
}

static OnnxKnownInts ints_of_list(OnnxSolver *s, const int64_t *list, int count) {
    OnnxSize *data = arena_array(s->arena, OnnxSize, count + 1);
    for (int i = 0; i < count; i++) data[i] = onnx_size(list[i]);
    return (OnnxKnownInts){data, count};
}

OnnxKnownInts onnx_ints_of(const OnnxSolver *s, int32_t node, const char *attribute, int i) {
    const OnnxAttribute *a = onnx_solver_attribute(s, s->index->nodes[node].node, attribute);
    if (!a || a->type != ONNX_ATTR_INTS) return i < 0 ? (OnnxKnownInts){NULL, 0} : onnx_input_ints(s, node, i);
    if (a->ints.len > ONNX_KNOWN_INTS) return (OnnxKnownInts){NULL, 0};
    return ints_of_list((OnnxSolver *)s, a->ints.data, a->ints.len);
}

bool onnx_number(OnnxKnownInts ints, int k, int64_t *out) {
    if (!ints.data || k >= ints.count || !onnx_size_is_number(ints.data[k])) return false;
    *out = ints.data[k].add;
    return true;
}

int64_t onnx_int_of(const OnnxSolver *s, int32_t node, const char *attribute, int64_t otherwise) {
    return onnx_solver_int(s, s->index->nodes[node].node, attribute, otherwise);
}

int onnx_axis(int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

bool onnx_axis_set(OnnxKnownInts axes, int rank, bool set[ONNX_RANK]) {
    memset(set, 0, ONNX_RANK);
    if (rank > ONNX_RANK || !axes.data) return false;
    for (int i = 0; i < axes.count; i++) {
        int64_t number = 0;
        int axis = onnx_number(axes, i, &number) ? onnx_axis(number, rank) : -1;
        if (axis < 0) return false;
        set[axis] = true;
    }
    return true;
}

OnnxSize onnx_count(OnnxSolver *s, OnnxValueShape shape, int from, int to) {
    OnnxSize count = onnx_size(1);
    for (int i = from; i < to; i++) count = onnx_size_mul(&s->out->sizes, count, shape.dims[i]);
    return count;
}

/* ---- saying ------------------------------------------------------------------------------------------------------ */

const OnnxSize *onnx_copy_sizes(OnnxSolver *s, const OnnxSize *from, int count) {
    OnnxSize *to = arena_array(s->arena, OnnxSize, count + 1);
    if (count) memcpy(to, from, sizeof *to * (size_t)count);
    return to;
}

void onnx_say_same(OnnxSolver *s, int32_t node, int i, OnnxValueShape shape) {
    int32_t v = onnx_output(s, node, i);
    if (v != ONNX_NONE) s->out->shapes[v] = shape;
}

void onnx_say_shape(OnnxSolver *s, int32_t node, int i, int rank, const OnnxSize *dims) {
    onnx_say_same(s, node, i, (OnnxValueShape){rank, onnx_copy_sizes(s, dims, rank)});
}

void onnx_say_rank(OnnxSolver *s, int32_t node, int i, int rank) {
    OnnxSize dims[ONNX_RANK];
    if (rank < 0 || rank > ONNX_RANK) return;
    for (int k = 0; k < rank; k++) dims[k] = onnx_size_unknown();
    onnx_say_shape(s, node, i, rank, dims);
}

void onnx_say_ints(OnnxSolver *s, int32_t node, int i, const OnnxSize *data, int count) {
    int32_t v = onnx_output(s, node, i);
    if (v != ONNX_NONE && count <= ONNX_KNOWN_INTS)
        s->out->ints[v] = (OnnxKnownInts){onnx_copy_sizes(s, data, count), count};
}

static OnnxSize broadcast_sizes(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    if (onnx_size_is(a, 1) || onnx_size_equal(a, b)) return b;
    if (onnx_size_is(b, 1) || onnx_size_is_number(a)) return a;
    return onnx_size_is_number(b) ? b : onnx_size_max(c, a, b);
}

bool onnx_broadcast(OnnxSolver *s, OnnxValueShape a, OnnxValueShape b, OnnxValueShape *out) {
    if (a.rank < 0 || b.rank < 0 || a.rank > ONNX_RANK || b.rank > ONNX_RANK) return false;
    if (a.rank == b.rank && a.dims == b.dims) {
        *out = a;
        return true;
    }
    OnnxSize dims[ONNX_RANK];
    int rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 1; i <= rank; i++) {
        OnnxSize x = i <= a.rank ? a.dims[a.rank - i] : onnx_size(1);
        OnnxSize y = i <= b.rank ? b.dims[b.rank - i] : onnx_size(1);
        dims[rank - i] = broadcast_sizes(&s->out->sizes, x, y);
    }
    *out = (OnnxValueShape){rank, onnx_copy_sizes(s, dims, rank)};
    return true;
}

void onnx_ints_of_tensor(OnnxSolver *s, const OnnxTensor *t, OnnxKnownInts *out) {
    int64_t list[ONNX_KNOWN_INTS];
    if (t->data_type != ONNX_INT64 && t->data_type != ONNX_INT32 && t->data_type != ONNX_BOOL) return;
    uint64_t count = onnx_elements(t);
    amp_error err;
    if (count > ONNX_KNOWN_INTS || onnx_data_ints(s->model, t, list, count, &err) != AMP_OK) return;
    *out = ints_of_list(s, list, (int)count);
}
