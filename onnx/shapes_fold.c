/* shapes_fold.c: arithmetic on shapes: what is known of the elements of small integer tensors. */
#include <string.h>

#include "onnx/shapes.h"

static OnnxSizes *sizes(OnnxSolver *s) { return &s->out->sizes; }

static bool of_integers(const OnnxSolver *s, int32_t v) {
    int dtype = v == ONNX_NONE ? 0 : s->out->types[v].dtype;
    return dtype == ONNX_INT64 || dtype == ONNX_INT32 || dtype == ONNX_BOOL;
}

/* ---- where they come from ---------------------------------------------------------------------------------------- */

static void fold_constant(OnnxSolver *s, int32_t node) {
    const OnnxNode *n = s->index->nodes[node].node;
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "value");
    if (a && a->type == ONNX_ATTR_TENSOR && a->t) {
        onnx_ints_of_tensor(s, a->t, &s->out->ints[onnx_output(s, node, 0)]);
        return;
    }
    OnnxKnownInts list = onnx_ints_of(s, node, "value_ints", -1);
    if (list.data) onnx_say_ints(s, node, 0, list.data, list.count);
    a = onnx_solver_attribute(s, n, "value_int");
    OnnxSize one = onnx_size(a && a->type == ONNX_ATTR_INT ? a->i : 0);
    if (a) onnx_say_ints(s, node, 0, &one, 1);
}

/* Of Shape, which may leave out dimensions at both ends. */
static void fold_shape(OnnxSolver *s, int32_t node) {
    OnnxValueShape shape = onnx_input_shape(s, node, 0);
    if (shape.rank < 0) return;
    int64_t start = onnx_int_of(s, node, "start", 0), end = onnx_int_of(s, node, "end", shape.rank);
    start += start < 0 ? shape.rank : 0;
    end += end < 0 ? shape.rank : 0;
    start = start < 0 ? 0 : start > shape.rank ? shape.rank : start;
    end = end < start ? start : end > shape.rank ? shape.rank : end;
    onnx_say_ints(s, node, 0, shape.dims + start, (int)(end - start));
}

static void fold_size(OnnxSolver *s, int32_t node) {
    OnnxValueShape shape = onnx_input_shape(s, node, 0);
    if (shape.rank < 0) return;
    OnnxSize count = onnx_count(s, shape, 0, shape.rank);
    onnx_say_ints(s, node, 0, &count, 1);
}

static void fold_constant_of_shape(OnnxSolver *s, int32_t node) {
    const OnnxAttribute *a = onnx_solver_attribute(s, s->index->nodes[node].node, "value");
    OnnxKnownInts dims = onnx_input_ints(s, node, 0), value = {NULL, 0};
    OnnxSize data[ONNX_KNOWN_INTS];
    int64_t count = 1, dim = 0;
    if (!dims.data || dims.count > 1 || !a || a->type != ONNX_ATTR_TENSOR || !a->t) return;
    if (dims.count && (!onnx_number(dims, 0, &dim) || (count = dim) > ONNX_KNOWN_INTS)) return;
    onnx_ints_of_tensor(s, a->t, &value);
    if (!value.data || value.count != 1) return;
    for (int i = 0; i < count; i++) data[i] = value.data[0];
    if (count >= 0) onnx_say_ints(s, node, 0, data, (int)count);
}

static void fold_range(OnnxSolver *s, int32_t node) {
    int64_t start, limit, delta;
    OnnxSize data[ONNX_KNOWN_INTS];
    if (!onnx_number(onnx_input_ints(s, node, 0), 0, &start) || !onnx_number(onnx_input_ints(s, node, 1), 0, &limit) ||
        !onnx_number(onnx_input_ints(s, node, 2), 0, &delta) || !delta)
        return;
    int count = 0;
    for (__int128 at = start; delta > 0 ? at < limit : at > limit; at += delta) {
        if (count == ONNX_KNOWN_INTS) return;
        data[count++] = onnx_size((int64_t)at);
    }
    onnx_say_ints(s, node, 0, data, count);
}

/* ---- movement ---------------------------------------------------------------------------------------------------- */

/* The same elements in another shape, or type of integers. */
static void fold_same(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0);
    if (ints.data && of_integers(s, onnx_output(s, node, 0))) onnx_say_ints(s, node, 0, ints.data, ints.count);
}

/* Of integers that are not known, those that they are at least: as many unknown ones, if that is known. */
static OnnxKnownInts known_or_new(OnnxSolver *s, int32_t node, int i) {
    OnnxKnownInts ints = onnx_input_ints(s, node, i);
    OnnxValueShape shape = onnx_input_shape(s, node, i);
    if (ints.data || shape.rank != 1 || !onnx_size_is_number(shape.dims[0]) || shape.dims[0].add > ONNX_KNOWN_INTS)
        return ints;
    OnnxSize *data = arena_array(s->arena, OnnxSize, ONNX_KNOWN_INTS);
    int count = (int)shape.dims[0].add;
    for (int k = 0; k < count; k++) data[k] = onnx_size_unknown();
    return (OnnxKnownInts){data, count};
}

static void fold_concat(OnnxSolver *s, int32_t node) {
    OnnxSize data[ONNX_KNOWN_INTS];
    int count = 0;
    if (!of_integers(s, onnx_output(s, node, 0))) return;
    for (int i = 0; i < s->index->nodes[node].node->inputs.len; i++) {
        OnnxKnownInts ints = known_or_new(s, node, i);
        if (!ints.data || onnx_input_shape(s, node, i).rank != 1 || count + ints.count > ONNX_KNOWN_INTS) return;
        for (int k = 0; k < ints.count; k++) data[count++] = ints.data[k];
    }
    onnx_say_ints(s, node, 0, data, count);
}

static void fold_gather(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0), at = onnx_input_ints(s, node, 1);
    OnnxSize data[ONNX_KNOWN_INTS];
    if (!ints.data || !at.data || onnx_input_shape(s, node, 0).rank != 1) return;
    for (int i = 0; i < at.count; i++) {
        int64_t k = 0;
        if (!onnx_number(at, i, &k)) return;
        if (k < 0) k += ints.count;
        if (k < 0 || k >= ints.count) return;
        data[i] = ints.data[k];
    }
    onnx_say_ints(s, node, 0, data, at.count);
}

static int64_t clamped(int64_t at, int64_t least, int64_t most) { return at < least ? least : at > most ? most : at; }

static void fold_slice(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0);
    OnnxSize data[ONNX_KNOWN_INTS];
    int64_t start, end, step = 1;
    if (!ints.data || onnx_input_shape(s, node, 0).rank != 1) return;
    if (!onnx_number(onnx_input_ints(s, node, 1), 0, &start) || !onnx_number(onnx_input_ints(s, node, 2), 0, &end))
        return;
    if (onnx_input(s, node, 4) != ONNX_NONE && !onnx_number(onnx_input_ints(s, node, 4), 0, &step)) return;
    if (!step) return;
    int64_t n = ints.count, count = 0;
    start = step > 0 ? clamped(start < 0 ? start + n : start, 0, n) : clamped(start < 0 ? start + n : start, 0, n - 1);
    end = step > 0 ? clamped(end < 0 ? end + n : end, 0, n) : clamped(end < 0 ? end + n : end, -1, n - 1);
    step = clamped(step, -ONNX_KNOWN_INTS, ONNX_KNOWN_INTS);
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step) data[count++] = ints.data[i];
    onnx_say_ints(s, node, 0, data, (int)count);
}

static void fold_split(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0), parts = onnx_ints_of(s, node, "split", 1);
    int outputs = s->index->nodes[node].node->outputs.len, at = 0;
    if (!ints.data || onnx_input_shape(s, node, 0).rank != 1) return;
    int each = (ints.count + outputs - 1) / outputs;
    for (int i = 0; i < outputs; i++) {
        int64_t n = each < ints.count - at ? each : ints.count - at;
        if (parts.data && !onnx_number(parts, i, &n)) return;
        if (n < 0 || n > ints.count - at) return;
        onnx_say_ints(s, node, i, ints.data + at, (int)n);
        at += (int)n;
    }
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static bool known_not_equal(OnnxSize a, OnnxSize b) {
    if (a.term && b.term) return false;
    OnnxSize number = a.term ? b : a;
    return onnx_size_is_number(a) && onnx_size_is_number(b) ? a.add != b.add : number.add < 0;
}

typedef bool Operation(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out);

static bool op_add(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    *out = onnx_size_add(c, a, b);
    return true;
}
static bool op_sub(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    *out = onnx_size_sub(c, a, b);
    return true;
}
static bool op_mul(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    *out = onnx_size_mul(c, a, b);
    return true;
}
/* Of integers it rounds towards zero, which is down unless one is negative. */
static bool op_div(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    bool negative = (!a.term && a.add < 0) || (!b.term && b.add < 0);
    if (onnx_size_is(b, 0) || (negative && (a.term || b.term || b.add == -1))) return false;
    *out = negative ? onnx_size(a.add / b.add) : onnx_size_floor(c, a, b);
    return true;
}
static bool op_max(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    *out = onnx_size_max(c, a, b);
    return true;
}
static bool op_min(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    *out = onnx_size_min(c, a, b);
    return true;
}
static bool op_equal(OnnxSizes *c, OnnxSize a, OnnxSize b, OnnxSize *out) {
    (void)c;
    *out = onnx_size(onnx_size_equal(a, b));
    return onnx_size_equal(a, b) || known_not_equal(a, b);
}

/* Element by element; one of them may be a single element. */
static void fold_pairs(OnnxSolver *s, int32_t node, Operation *operation) {
    OnnxKnownInts a = onnx_input_ints(s, node, 0), b = onnx_input_ints(s, node, 1);
    OnnxSize data[ONNX_KNOWN_INTS];
    if (!a.data || !b.data || !of_integers(s, onnx_output(s, node, 0))) return;
    if (onnx_input_shape(s, node, 0).rank > 1 || onnx_input_shape(s, node, 1).rank > 1) return;
    int count = a.count == 1 ? b.count : a.count;
    if (a.count != 1 && b.count != 1 && a.count != b.count) return;
    for (int i = 0; i < count; i++)
        if (!operation(sizes(s), a.data[a.count == 1 ? 0 : i], b.data[b.count == 1 ? 0 : i], &data[i])) return;
    onnx_say_ints(s, node, 0, data, count);
}

static void fold_neg(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0);
    OnnxSize data[ONNX_KNOWN_INTS];
    if (!ints.data || !of_integers(s, onnx_output(s, node, 0))) return;
    for (int i = 0; i < ints.count; i++) data[i] = onnx_size_sub(sizes(s), onnx_size(0), ints.data[i]);
    onnx_say_ints(s, node, 0, data, ints.count);
}
static void fold_add(OnnxSolver *s, int32_t node) { fold_pairs(s, node, op_add); }
static void fold_sub(OnnxSolver *s, int32_t node) { fold_pairs(s, node, op_sub); }
static void fold_mul(OnnxSolver *s, int32_t node) { fold_pairs(s, node, op_mul); }
static void fold_div(OnnxSolver *s, int32_t node) { fold_pairs(s, node, op_div); }
static void fold_equal(OnnxSolver *s, int32_t node) { fold_pairs(s, node, op_equal); }

static void fold_max(OnnxSolver *s, int32_t node) {
    if (s->index->nodes[node].node->inputs.len == 2) fold_pairs(s, node, op_max);
}
static void fold_min(OnnxSolver *s, int32_t node) {
    if (s->index->nodes[node].node->inputs.len == 2) fold_pairs(s, node, op_min);
}

static void fold_where(OnnxSolver *s, int32_t node) {
    OnnxKnownInts of[3];
    OnnxSize data[ONNX_KNOWN_INTS];
    int count = 1;
    for (int i = 0; i < 3; i++) {
        of[i] = onnx_input_ints(s, node, i);
        if (!of[i].data || onnx_input_shape(s, node, i).rank > 1) return;
        if (of[i].count != 1) count = of[i].count;
    }
    for (int i = 0; i < 3; i++)
        if (of[i].count != 1 && of[i].count != count) return;
    for (int i = 0; i < count; i++) {
        int64_t condition;
        if (!onnx_number(of[0], of[0].count == 1 ? 0 : i, &condition)) return;
        OnnxKnownInts from = of[condition ? 1 : 2];
        data[i] = from.data[from.count == 1 ? 0 : i];
    }
    onnx_say_ints(s, node, 0, data, count);
}

/* The product of all, as in a count of elements. */
static void fold_product(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0);
    if (!ints.data || onnx_input_shape(s, node, 0).rank != 1) return;
    OnnxSize product = onnx_size(1);
    for (int i = 0; i < ints.count; i++) product = onnx_size_mul(sizes(s), product, ints.data[i]);
    onnx_say_ints(s, node, 0, &product, 1);
}

/* A single element, repeated. */
static void fold_expand(OnnxSolver *s, int32_t node) {
    OnnxKnownInts ints = onnx_input_ints(s, node, 0), dims = onnx_input_ints(s, node, 1);
    OnnxSize data[ONNX_KNOWN_INTS];
    int64_t count;
    if (!ints.data || ints.count != 1 || dims.count != 1 || !onnx_number(dims, 0, &count)) return;
    if (count < 1 || count > ONNX_KNOWN_INTS) return;
    for (int i = 0; i < count; i++) data[i] = ints.data[0];
    onnx_say_ints(s, node, 0, data, (int)count);
}

const OnnxRule onnx_rules_fold[] = {
    {"Constant", fold_constant}, {"Shape", fold_shape},
    {"Size", fold_size},         {"ConstantOfShape", fold_constant_of_shape},
    {"Range", fold_range},       {"Identity Cast Squeeze Unsqueeze Reshape Flatten", fold_same},
    {"Concat", fold_concat},     {"Gather", fold_gather},
    {"Slice", fold_slice},       {"Split", fold_split},
    {"Neg", fold_neg},           {"Add", fold_add},
    {"Sub", fold_sub},           {"Mul", fold_mul},
    {"Div", fold_div},           {"Max", fold_max},
    {"Min", fold_min},           {"Equal", fold_equal},
    {"Where", fold_where},       {"ReduceProd", fold_product},
    {"Expand", fold_expand},     {NULL, NULL},
};
