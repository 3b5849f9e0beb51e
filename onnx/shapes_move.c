/* shapes_move.c: rules of ops that move elements, repeat them, leave some out, or reduce dimensions. */
#include <string.h>

#include "onnx/shapes.h"

static OnnxSizes *sizes(OnnxSolver *s) { return &s->out->sizes; }

/* The shape that a tensor of integers says; false if not even how many there are is known. */
static bool shape_from(OnnxSolver *s, int32_t node, int i, OnnxSize dims[ONNX_RANK], int *rank) {
    OnnxKnownInts ints = onnx_input_ints(s, node, i);
    OnnxValueShape shape = onnx_input_shape(s, node, i);
    bool counted = shape.rank == 1 && onnx_size_is_number(shape.dims[0]) && shape.dims[0].add <= ONNX_RANK;
    if (!ints.data && !counted) return false;
    *rank = ints.data ? ints.count : (int)shape.dims[0].add;
    for (int k = 0; k < *rank; k++) dims[k] = ints.data ? ints.data[k] : onnx_size_unknown();
    return true;
}

/* ---- one shape for another --------------------------------------------------------------------------------------- */

static void shape_reshape(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxSize dims[ONNX_RANK], product = onnx_size(1);
    int rank, left = -1;
    if (!shape_from(s, node, 1, dims, &rank)) return;
    bool zero_copies = onnx_int_of(s, node, "allowzero", 0) == 0;
    for (int i = 0; i < rank; i++) {
        if (onnx_size_is(dims[i], -1)) {
            left = i;
            continue;
        }
        if (zero_copies && onnx_size_is(dims[i], 0)) dims[i] = i < in.rank ? in.dims[i] : onnx_size_unknown();
        product = onnx_size_mul(sizes(s), product, dims[i]);
    }
    if (left >= 0)
        dims[left] =
            in.rank < 0 ? onnx_size_unknown() : onnx_size_divide(sizes(s), onnx_count(s, in, 0, in.rank), product);
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_flatten(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    int64_t axis = onnx_int_of(s, node, "axis", 1);
    if (in.rank < 0 || axis < -in.rank || axis > in.rank) return onnx_say_rank(s, node, 0, 2);
    if (axis < 0) axis += in.rank;
    OnnxSize dims[2] = {onnx_count(s, in, 0, (int)axis), onnx_count(s, in, (int)axis, in.rank)};
    onnx_say_shape(s, node, 0, 2, dims);
}

static void shape_squeeze(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts axes = onnx_ints_of(s, node, "axes", 1);
    bool given = axes.data || onnx_input(s, node, 1) != ONNX_NONE, set[ONNX_RANK];
    OnnxSize dims[ONNX_RANK];
    int rank = 0;
    if (in.rank < 0 || in.rank > ONNX_RANK || (given && !onnx_axis_set(axes, in.rank, set))) return;
    for (int i = 0; i < in.rank; i++) {
        if (!given && !onnx_size_is_number(in.dims[i])) return;
        if (given ? !set[i] : !onnx_size_is(in.dims[i], 1)) dims[rank++] = in.dims[i];
    }
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_unsqueeze(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts axes = onnx_ints_of(s, node, "axes", 1);
    bool set[ONNX_RANK];
    OnnxSize dims[ONNX_RANK];
    int rank = in.rank + axes.count, k = 0;
    if (in.rank < 0 || !onnx_axis_set(axes, rank, set)) return;
    for (int i = 0; i < rank; i++) {
        if (!set[i] && k == in.rank) return;
        dims[i] = set[i] ? onnx_size(1) : in.dims[k++];
    }
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_transpose(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts perm = onnx_ints_of(s, node, "perm", -1);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 0 || in.rank > ONNX_RANK || (perm.data && perm.count != in.rank)) return;
    for (int i = 0; i < in.rank; i++) {
        int64_t from = in.rank - 1 - i;
        if (perm.data) onnx_number(perm, i, &from);
        if (from < 0 || from >= in.rank) return;
        dims[i] = in.dims[from];
    }
    onnx_say_shape(s, node, 0, in.rank, dims);
}

static void shape_expand(OnnxSolver *s, int32_t node) {
    OnnxSize dims[ONNX_RANK];
    OnnxValueShape out, to = {0, dims};
    if (shape_from(s, node, 1, dims, &to.rank) && onnx_broadcast(s, onnx_input_shape(s, node, 0), to, &out))
        onnx_say_same(s, node, 0, out);
}

static void shape_tile(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts times = onnx_input_ints(s, node, 1);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 0 || in.rank > ONNX_RANK) return;
    for (int i = 0; i < in.rank; i++)
        dims[i] = i < times.count ? onnx_size_mul(sizes(s), in.dims[i], times.data[i]) : onnx_size_unknown();
    onnx_say_shape(s, node, 0, in.rank, dims);
}

/* ---- pieces and sums of dimensions ------------------------------------------------------------------------------- */

static void shape_concat(OnnxSolver *s, int32_t node) {
    OnnxValueShape shape = onnx_input_shape(s, node, 0);
    OnnxSize dims[ONNX_RANK];
    int axis = onnx_axis(onnx_int_of(s, node, "axis", 0), shape.rank);
    if (shape.rank < 0 || shape.rank > ONNX_RANK || axis < 0) return;
    memcpy(dims, shape.dims, sizeof *dims * (size_t)shape.rank);
    for (int i = 1; i < s->index->nodes[node].node->inputs.len; i++) {
        OnnxValueShape more = onnx_input_shape(s, node, i);
        OnnxSize here = more.rank == shape.rank ? more.dims[axis] : onnx_size_unknown();
        dims[axis] = onnx_size_add(sizes(s), dims[axis], here);
        for (int k = 0; k < shape.rank && more.rank == shape.rank; k++)
            if (k != axis && !onnx_size_is_number(dims[k])) dims[k] = more.dims[k];
    }
    onnx_say_shape(s, node, 0, shape.rank, dims);
}

static void shape_split(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts parts = onnx_ints_of(s, node, "split", 1);
    OnnxSize dims[ONNX_RANK];
    int outputs = s->index->nodes[node].node->outputs.len;
    int axis = onnx_axis(onnx_int_of(s, node, "axis", 0), in.rank);
    if (in.rank < 0 || in.rank > ONNX_RANK || axis < 0) return;
    bool given = parts.data || onnx_input(s, node, 1) != ONNX_NONE;
    memcpy(dims, in.dims, sizeof *dims * (size_t)in.rank);
    OnnxSize each = onnx_size_add(sizes(s), in.dims[axis], onnx_size(outputs - 1));
    each = onnx_size_floor(sizes(s), each, onnx_size(outputs));
    OnnxSize last = onnx_size_sub(sizes(s), in.dims[axis], onnx_size_mul(sizes(s), each, onnx_size(outputs - 1)));
    for (int i = 0; i < outputs; i++) {
        dims[axis] = given ? i < parts.count ? parts.data[i] : onnx_size_unknown() : i + 1 < outputs ? each : last;
        onnx_say_shape(s, node, i, in.rank, dims);
    }
}

/* How many elements start:end:step has of |n|. */
static OnnxSize slice_size(OnnxSolver *s, OnnxSize n, OnnxSize start, OnnxSize end, int64_t step) {
    if (step != 1) {
        if (!onnx_size_is_number(n) || !onnx_size_is_number(start) || !onnx_size_is_number(end) || !step)
            return onnx_size_unknown();
        int64_t most = step < 0 ? n.add - 1 : n.add, least = step < 0 ? -1 : 0, from = start.add, to = end.add;
        from += from < 0 ? n.add : 0;
        to += to < 0 ? n.add : 0;
        from = from < 0 ? 0 : from > most ? most : from;
        to = to < least ? least : to > most ? most : to;
        __int128 distance = step > 0 ? (__int128)to - from : (__int128)from - to,
                 by = step > 0 ? step : -(__int128)step;
        return onnx_size(distance > 0 ? (int64_t)((distance + by - 1) / by) : 0);
    }
    if (onnx_size_is_number(start) && start.add < 0) start = onnx_size_add(sizes(s), n, start);
    if (onnx_size_is_number(end) && end.add < 0) end = onnx_size_add(sizes(s), n, end);
    if (onnx_size_is_number(start) && start.add < 0) start = onnx_size(0);
    if (onnx_size_is_number(end) && onnx_size_is_number(n) && end.add > n.add) end = n;
    if (onnx_size_is_number(end) && end.add >= INT32_MAX) end = n;
    OnnxSize size = onnx_size_sub(sizes(s), end, start);
    return onnx_size_is_number(size) && size.add < 0 ? onnx_size(0) : size;
}

static void shape_slice(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts starts = onnx_input_ints(s, node, 1), ends = onnx_input_ints(s, node, 2);
    OnnxKnownInts axes = onnx_input_ints(s, node, 3), steps = onnx_input_ints(s, node, 4);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 0 || in.rank > ONNX_RANK) return;
    if ((onnx_input(s, node, 3) != ONNX_NONE && !axes.data) || (!axes.data && !starts.data))
        return onnx_say_rank(s, node, 0, in.rank);
    int count = axes.data ? axes.count : starts.count;
    memcpy(dims, in.dims, sizeof *dims * (size_t)in.rank);
    for (int i = 0; i < count; i++) {
        int64_t axis = i, step = 1;
        if (axes.data && !onnx_number(axes, i, &axis)) return onnx_say_rank(s, node, 0, in.rank);
        bool known = i < starts.count && i < ends.count;
        known &= onnx_input(s, node, 4) == ONNX_NONE || onnx_number(steps, i, &step);
        int at = onnx_axis(axis, in.rank);
        if (at < 0) return onnx_say_rank(s, node, 0, in.rank);
        dims[at] = known ? slice_size(s, in.dims[at], starts.data[i], ends.data[i], step) : onnx_size_unknown();
    }
    onnx_say_shape(s, node, 0, in.rank, dims);
}

static void shape_pad(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts pads = onnx_input_ints(s, node, 1), axes = onnx_input_ints(s, node, 3);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 0 || in.rank > ONNX_RANK) return;
    int count = pads.count / 2;
    if (!pads.data || (onnx_input(s, node, 3) != ONNX_NONE && axes.count != count) || (!axes.data && count != in.rank))
        return onnx_say_rank(s, node, 0, in.rank);
    memcpy(dims, in.dims, sizeof *dims * (size_t)in.rank);
    for (int i = 0; i < count; i++) {
        int64_t axis = i;
        if (axes.data && !onnx_number(axes, i, &axis)) return onnx_say_rank(s, node, 0, in.rank);
        int at = onnx_axis(axis, in.rank);
        if (at < 0) return;
        dims[at] = onnx_size_add(sizes(s), dims[at], onnx_size_add(sizes(s), pads.data[i], pads.data[count + i]));
    }
    onnx_say_shape(s, node, 0, in.rank, dims);
}

/* ---- by indices -------------------------------------------------------------------------------------------------- */

/* Dimensions of |a| before |from|, then |take| of |b|, then the ones of |a| from |to| on. */
static void say_joined(OnnxSolver *s, int32_t node, OnnxValueShape a, int from, OnnxValueShape b, int take, int to) {
    OnnxSize dims[ONNX_RANK];
    int rank = 0;
    if (from + take + (a.rank - to) > ONNX_RANK || to > a.rank) return;
    for (int i = 0; i < from; i++) dims[rank++] = a.dims[i];
    for (int i = 0; i < take; i++) dims[rank++] = b.dims[i];
    for (int i = to; i < a.rank; i++) dims[rank++] = a.dims[i];
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_gather(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), at = onnx_input_shape(s, node, 1);
    int axis = onnx_axis(onnx_int_of(s, node, "axis", 0), in.rank);
    if (in.rank >= 0 && at.rank >= 0 && axis >= 0) say_joined(s, node, in, axis, at, at.rank, axis + 1);
}

static void shape_gather_nd(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), at = onnx_input_shape(s, node, 1);
    int64_t batch = onnx_int_of(s, node, "batch_dims", 0);
    if (in.rank < 0 || at.rank < 1 || !onnx_size_is_number(at.dims[at.rank - 1])) return;
    int64_t depth = at.dims[at.rank - 1].add;
    if (batch < 0 || depth < 0 || batch > in.rank || depth > in.rank - batch) return;
    say_joined(s, node, in, 0, at, at.rank - 1, (int)(batch + depth));
}

static void shape_as_indices(OnnxSolver *s, int32_t node) { onnx_say_same(s, node, 0, onnx_input_shape(s, node, 1)); }

static void shape_one_hot(OnnxSolver *s, int32_t node) {
    OnnxValueShape at = onnx_input_shape(s, node, 0);
    OnnxKnownInts depth = onnx_input_ints(s, node, 1);
    int axis = onnx_axis(onnx_int_of(s, node, "axis", -1), at.rank + 1);
    OnnxSize one = depth.count == 1 ? depth.data[0] : onnx_size_unknown();
    if (at.rank >= 0 && axis >= 0) say_joined(s, node, at, axis, (OnnxValueShape){1, &one}, 1, axis);
}

static void shape_top_k(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts k = onnx_input_ints(s, node, 1);
    OnnxSize dims[ONNX_RANK];
    int axis = onnx_axis(onnx_int_of(s, node, "axis", -1), in.rank);
    if (in.rank < 0 || in.rank > ONNX_RANK || axis < 0) return;
    memcpy(dims, in.dims, sizeof *dims * (size_t)in.rank);
    dims[axis] = k.count == 1 ? k.data[0] : onnx_size_unknown();
    onnx_say_shape(s, node, 0, in.rank, dims);
    onnx_say_shape(s, node, 1, in.rank, dims);
}

static void shape_non_zero(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxSize dims[2] = {in.rank < 0 ? onnx_size_unknown() : onnx_size(in.rank), onnx_size_unknown()};
    onnx_say_shape(s, node, 0, 2, dims);
}

/* ---- made of numbers --------------------------------------------------------------------------------------------- */

static void shape_constant(OnnxSolver *s, int32_t node) {
    const OnnxNode *n = s->index->nodes[node].node;
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "value");
    if (a && a->type == ONNX_ATTR_TENSOR && a->t) {
        OnnxSize *dims = arena_array(s->arena, OnnxSize, a->t->dims.len + 1);
        for (int i = 0; i < a->t->dims.len; i++) dims[i] = onnx_size(a->t->dims.data[i]);
        onnx_say_same(s, node, 0, (OnnxValueShape){a->t->dims.len, dims});
        return;
    }
    for (int i = 0; i < n->attributes.len; i++) {
        a = &n->attributes.data[i];
        OnnxSize count = onnx_size(a->type == ONNX_ATTR_INTS      ? a->ints.len
                                   : a->type == ONNX_ATTR_FLOATS  ? a->floats.len
                                   : a->type == ONNX_ATTR_STRINGS ? a->strings.len
                                                                  : 0);
        bool list = a->type == ONNX_ATTR_INTS || a->type == ONNX_ATTR_FLOATS || a->type == ONNX_ATTR_STRINGS;
        if (strncmp(a->name, "value_", 6) == 0) onnx_say_shape(s, node, 0, list, &count);
    }
}

static void shape_by_input(OnnxSolver *s, int32_t node) {
    OnnxSize dims[ONNX_RANK];
    int rank;
    if (shape_from(s, node, 0, dims, &rank)) onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_shape(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    int64_t start = onnx_int_of(s, node, "start", 0), end = onnx_int_of(s, node, "end", in.rank);
    OnnxSize count = onnx_size_unknown();
    if (in.rank >= 0) count = slice_size(s, onnx_size(in.rank), onnx_size(start), onnx_size(end), 1);
    onnx_say_shape(s, node, 0, 1, &count);
}

static void shape_scalar(OnnxSolver *s, int32_t node) { onnx_say_shape(s, node, 0, 0, NULL); }

static void shape_range(OnnxSolver *s, int32_t node) {
    OnnxKnownInts start = onnx_input_ints(s, node, 0), end = onnx_input_ints(s, node, 1);
    OnnxKnownInts step = onnx_input_ints(s, node, 2);
    OnnxSize count = onnx_size_unknown();
    if (start.data && end.data && start.count == 1 && end.count == 1 && step.count == 1 && onnx_size_is(*step.data, 1))
        count = onnx_size_sub(sizes(s), end.data[0], start.data[0]);
    if (onnx_size_is_number(count) && count.add < 0) count = onnx_size(0);
    onnx_say_shape(s, node, 0, 1, &count);
}

static void shape_random(OnnxSolver *s, int32_t node) {
    OnnxKnownInts dims = onnx_ints_of(s, node, "shape", -1);
    if (dims.data && dims.count <= ONNX_RANK) onnx_say_shape(s, node, 0, dims.count, dims.data);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void shape_reduce(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts axes = onnx_ints_of(s, node, "axes", 1);
    bool keep = onnx_int_of(s, node, "keepdims", 1) != 0, set[ONNX_RANK];
    OnnxSize dims[ONNX_RANK];
    int rank = 0;
    if (in.rank < 0 || in.rank > ONNX_RANK) return;
    bool all = (!axes.data && onnx_input(s, node, 1) == ONNX_NONE) || (axes.data && axes.count == 0);
    if (all && onnx_int_of(s, node, "noop_with_empty_axes", 0)) return onnx_say_same(s, node, 0, in);
    if (!all && !onnx_axis_set(axes, in.rank, set)) {
        if (keep) onnx_say_rank(s, node, 0, in.rank);
        return;
    }
    for (int i = 0; i < in.rank; i++) {
        if (!all && !set[i]) dims[rank++] = in.dims[i];
        else if (keep) dims[rank++] = onnx_size(1);
    }
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_arg(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxSize one = onnx_size(1);
    int axis = onnx_axis(onnx_int_of(s, node, "axis", 0), in.rank);
    if (in.rank < 1 || axis < 0) return;
    say_joined(s, node, in, axis, (OnnxValueShape){1, &one}, onnx_int_of(s, node, "keepdims", 1) != 0, axis + 1);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static void shape_depth_to_space(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    bool to_depth = strcmp(s->index->nodes[node].node->op_type, "SpaceToDepth") == 0;
    int64_t block = onnx_int_of(s, node, "blocksize", 0);
    if (in.rank != 4 || block < 1 || block > 1 << 20) return;
    OnnxSize b = onnx_size(block), area = onnx_size(block * block);
    OnnxSize dims[4] = {in.dims[0]};
    dims[1] = to_depth ? onnx_size_mul(sizes(s), in.dims[1], area) : onnx_size_divide(sizes(s), in.dims[1], area);
    for (int i = 2; i < 4; i++)
        dims[i] = to_depth ? onnx_size_divide(sizes(s), in.dims[i], b) : onnx_size_mul(sizes(s), in.dims[i], b);
    onnx_say_shape(s, node, 0, 4, dims);
}

static bool resize_scales(OnnxSolver *s, int32_t node, int rank, double scales[ONNX_RANK]) {
    int32_t v = onnx_input(s, node, 2);
    const OnnxTensor *t = v == ONNX_NONE ? NULL : s->index->values[v].initializer;
    amp_error err;
    if (v != ONNX_NONE && !t && s->index->values[v].producer != ONNX_NONE) {
        const OnnxNode *from = s->index->nodes[s->index->values[v].producer].node;
        const OnnxAttribute *a = onnx_solver_attribute(s, from, "value");
        if (strcmp(from->op_type, "Constant") == 0 && a && a->type == ONNX_ATTR_TENSOR) t = a->t;
    }
    if (!t || onnx_elements(t) != (uint64_t)rank || onnx_data_doubles(s->model, t, scales, (uint64_t)rank, &err))
        return false;
    for (int i = 0; i < rank; i++)
        if (!(scales[i] > 0 && scales[i] < 1e6)) return false;
    return true;
}

static void shape_resize(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts to = onnx_input_ints(s, node, 3), axes = onnx_ints_of(s, node, "axes", -1);
    double scales[ONNX_RANK];
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 0 || in.rank > ONNX_RANK) return;
    int count = axes.data ? axes.count : in.rank;
    bool scaled = count <= ONNX_RANK && !to.data && resize_scales(s, node, count, scales);
    bool stretched = !onnx_solver_attribute(s, s->index->nodes[node].node, "keep_aspect_ratio_policy");
    memcpy(dims, in.dims, sizeof *dims * (size_t)in.rank);
    for (int i = 0; i < count; i++) {
        int64_t number = i;
        if (axes.data) onnx_number(axes, i, &number);
        int at = onnx_axis(number, in.rank);
        if (at < 0) return;
        if (to.count == count) dims[at] = stretched ? to.data[i] : onnx_size_unknown();
        else if (scaled && onnx_size_is_number(dims[at]) && scales[i] * (double)dims[at].add < 1e15)
            dims[at] = onnx_size((int64_t)((double)dims[at].add * (double)(float)scales[i]));
        else if (scaled && scales[i] == (double)(int32_t)scales[i])
            dims[at] = onnx_size_mul(sizes(s), dims[at], onnx_size((int32_t)scales[i]));
        else dims[at] = onnx_size_unknown();
    }
    onnx_say_shape(s, node, 0, in.rank, dims);
}

const OnnxRule onnx_rules_move[] = {
    {"Reshape", shape_reshape},
    {"Flatten", shape_flatten},
    {"Squeeze", shape_squeeze},
    {"Unsqueeze", shape_unsqueeze},
    {"Transpose", shape_transpose},
    {"Expand", shape_expand},
    {"Tile", shape_tile},
    {"Concat", shape_concat},
    {"Split", shape_split},
    {"Slice", shape_slice},
    {"Pad", shape_pad},
    {"Gather", shape_gather},
    {"GatherND", shape_gather_nd},
    {"GatherElements", shape_as_indices},
    {"OneHot", shape_one_hot},
    {"TopK", shape_top_k},
    {"NonZero", shape_non_zero},
    {"Constant", shape_constant},
    {"ConstantOfShape", shape_by_input},
    {"Shape", shape_shape},
    {"Size", shape_scalar},
    {"Range", shape_range},
    {"RandomNormal RandomUniform", shape_random},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
     "ReduceSumSquare",
     shape_reduce},
    {"ArgMax ArgMin", shape_arg},
    {"DepthToSpace SpaceToDepth", shape_depth_to_space},
    {"Resize", shape_resize},
    {NULL, NULL},
};
