/* shapes.c: shapes of graph inputs, of results by the rule of their op, and what the graph says of them. */
#include "onnx/shapes.h"

#include <string.h>

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

static const OnnxSize *copy_sizes(OnnxSolver *s, const OnnxSize *from, int count) {
    OnnxSize *to = arena_array(s->arena, OnnxSize, count + 1);
    if (count) memcpy(to, from, sizeof *to * (size_t)count);
    return to;
}

void onnx_say_same(OnnxSolver *s, int32_t node, int i, OnnxValueShape shape) {
    int32_t v = onnx_output(s, node, i);
    if (v != ONNX_NONE) s->out->shapes[v] = shape;
}

void onnx_say_shape(OnnxSolver *s, int32_t node, int i, int rank, const OnnxSize *dims) {
    onnx_say_same(s, node, i, (OnnxValueShape){rank, copy_sizes(s, dims, rank)});
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
        s->out->ints[v] = (OnnxKnownInts){copy_sizes(s, data, count), count};
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
    *out = (OnnxValueShape){rank, copy_sizes(s, dims, rank)};
    return true;
}

/* ---- what the graph says ----------------------------------------------------------------------------------------- */

static OnnxSize stated_size(OnnxSolver *s, const OnnxDim *d, bool input) {
    if (d->kind == ONNX_DIM_VALUE && (d->value > 0 || (d->value == 0 && !input))) return onnx_size(d->value);
    if (d->kind == ONNX_DIM_NAME && *d->name) return onnx_size_named(&s->out->sizes, d->name);
    return input ? onnx_size_new(&s->out->sizes) : onnx_size_unknown(); /* some exporters write 0 for a batch */
}

static const OnnxShape *stated_shape(const OnnxSolver *s, int32_t v) {
    const OnnxValueInfo *info = s->index->values[v].info;
    bool tensor = info && info->type && info->type->kind == ONNX_TYPE_TENSOR && info->type->tensor;
    return tensor ? info->type->tensor->shape : NULL;
}

static void take_stated(OnnxSolver *s, int32_t v, const OnnxShape *stated, bool input) {
    OnnxSize *dims = arena_array(s->arena, OnnxSize, stated->dims.len + 1);
    for (int i = 0; i < stated->dims.len; i++) dims[i] = stated_size(s, &stated->dims.data[i], input);
    s->out->shapes[v] = (OnnxValueShape){stated->dims.len, dims};
}

/* What was inferred is compared with what the graph says, and completed by it. */
static void compare_stated(OnnxSolver *s, int32_t v) {
    const OnnxShape *stated = stated_shape(s, v);
    OnnxValueShape *shape = &s->out->shapes[v];
    if (!stated) return;
    if (shape->rank < 0) {
        take_stated(s, v, stated, false);
        return;
    }
    if (shape->rank != stated->dims.len) {
        s->out->stale_shapes++;
        return;
    }
    OnnxSize *dims = NULL;
    bool stale = false;
    for (int i = 0; i < shape->rank; i++) {
        const OnnxDim *d = &stated->dims.data[i];
        bool says = d->kind == ONNX_DIM_VALUE || d->kind == ONNX_DIM_NAME;
        stale |= d->kind == ONNX_DIM_VALUE && onnx_size_is_number(shape->dims[i]) && shape->dims[i].add != d->value;
        if (!says || onnx_size_is_number(shape->dims[i])) continue;
        if (d->kind == ONNX_DIM_NAME && !onnx_size_is_unknown(shape->dims[i])) continue;
        if (!dims) {
            dims = arena_array(s->arena, OnnxSize, shape->rank + 1);
            memcpy(dims, shape->dims, sizeof *dims * (size_t)shape->rank);
        }
        dims[i] = stated_size(s, d, false);
    }
    s->out->stale_shapes += stale;
    if (dims) shape->dims = dims;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

void onnx_ints_of_tensor(OnnxSolver *s, const OnnxTensor *t, OnnxKnownInts *out) {
    int64_t list[ONNX_KNOWN_INTS];
    if (t->data_type != ONNX_INT64 && t->data_type != ONNX_INT32 && t->data_type != ONNX_BOOL) return;
    uint64_t count = onnx_elements(t);
    amp_error err;
    if (count > ONNX_KNOWN_INTS || onnx_data_ints(s->model, t, list, count, &err) != AMP_OK) return;
    *out = ints_of_list(s, list, (int)count);
}

static void initializer_shape(OnnxSolver *s, int32_t v, const OnnxTensor *t, const OnnxInts *dims) {
    OnnxSize *sizes = arena_array(s->arena, OnnxSize, dims->len + 1);
    for (int i = 0; i < dims->len; i++) sizes[i] = onnx_size(dims->data[i]);
    s->out->shapes[v] = (OnnxValueShape){dims->len, sizes};
    if (t) onnx_ints_of_tensor(s, t, &s->out->ints[v]);
}

static void shapes_of_initializers(OnnxSolver *s) {
    for (int32_t v = 0; v < s->index->value_count; v++) {
        const OnnxValue *value = &s->index->values[v];
        if (value->initializer)
            initializer_shape(s, v, value->is_input ? NULL : value->initializer, &value->initializer->dims);
        else if (value->sparse) initializer_shape(s, v, NULL, &value->sparse->dims);
    }
}

/* What Scan gives its graph: the state as it is, and a slice of what it scans. */
static OnnxValueShape shape_for_scan(OnnxSolver *s, int32_t node, int i) {
    int states = s->index->nodes[node].node->inputs.len - (int)onnx_int_of(s, node, "num_scan_inputs", 0);
    OnnxValueShape shape = onnx_input_shape(s, node, i);
    if (i < states || shape.rank < 1 || shape.rank > ONNX_RANK) return shape;
    int64_t axis = 0;
    onnx_number(onnx_ints_of(s, node, "scan_input_axes", -1), i - states, &axis);
    int left_out = onnx_axis(axis, shape.rank);
    OnnxSize dims[ONNX_RANK];
    int rank = 0;
    for (int k = 0; k < shape.rank; k++)
        if (k != left_out) dims[rank++] = shape.dims[k];
    return left_out < 0 ? no_shape : (OnnxValueShape){rank, copy_sizes(s, dims, rank)};
}

void onnx_shapes_of_graph(OnnxSolver *s, int32_t graph) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    if (g->function) return;
    const OnnxNode *around = g->parent_node == ONNX_NONE ? NULL : s->index->nodes[g->parent_node].node;
    for (int i = 0; i < g->input_count; i++) {
        int32_t v = s->index->operands[g->first_input + i];
        const OnnxShape *stated = stated_shape(s, v);
        if (around && strcmp(around->op_type, "Scan") == 0) s->out->shapes[v] = shape_for_scan(s, g->parent_node, i);
        if (around && strcmp(around->op_type, "Loop") == 0 && i < 2) s->out->shapes[v] = (OnnxValueShape){0, NULL};
        if (s->out->shapes[v].rank < 0 && stated) take_stated(s, v, stated, true);
    }
}

/* ---- ops with graphs --------------------------------------------------------------------------------------------- */

static OnnxValueShape shape_of_result(const OnnxSolver *s, int32_t graph, int i) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    int32_t v = i < g->output_count ? s->index->operands[g->first_output + i] : ONNX_NONE;
    return v == ONNX_NONE ? no_shape : s->out->shapes[v];
}

static void shape_if(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    for (int i = 0; i < e->node->outputs.len && e->graph_count == 2; i++) {
        OnnxValueShape a = shape_of_result(s, e->first_graph, i), b = shape_of_result(s, e->first_graph + 1, i);
        if (a.rank < 0 || a.rank != b.rank || a.rank > ONNX_RANK) continue;
        OnnxSize dims[ONNX_RANK];
        for (int k = 0; k < a.rank; k++)
            dims[k] = onnx_size_equal(a.dims[k], b.dims[k]) ? a.dims[k] : onnx_size_unknown();
        onnx_say_shape(s, node, i, a.rank, dims);
    }
}

/* Output |i| is a stack of what the graph gives as |result|, along a first dimension |count|. */
static void say_stack(OnnxSolver *s, int32_t node, int i, int32_t graph, int result, OnnxSize count) {
    OnnxValueShape one = shape_of_result(s, graph, result);
    OnnxSize dims[ONNX_RANK];
    if (one.rank < 0 || one.rank >= ONNX_RANK) return;
    dims[0] = count;
    for (int k = 0; k < one.rank; k++) dims[k + 1] = one.dims[k];
    onnx_say_shape(s, node, i, one.rank + 1, dims);
}

static void shape_loop(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    int carried = e->node->inputs.len > 2 ? e->node->inputs.len - 2 : 0;
    OnnxSize count = onnx_size_unknown();
    for (int i = 0; i < e->node->outputs.len; i++) {
        if (i >= carried) say_stack(s, node, i, e->first_graph, i + 1, count);
        else onnx_say_same(s, node, i, shape_of_result(s, e->first_graph, i + 1));
    }
}

static void shape_scan(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    int states = e->node->inputs.len - (int)onnx_int_of(s, node, "num_scan_inputs", 0);
    OnnxValueShape scanned = onnx_input_shape(s, node, states);
    bool plain = !onnx_solver_attribute(s, e->node, "scan_output_axes") &&
                 !onnx_solver_attribute(s, e->node, "scan_input_axes") && scanned.rank > 0;
    for (int i = 0; i < e->node->outputs.len; i++) {
        if (i < states) onnx_say_same(s, node, i, onnx_input_shape(s, node, i));
        else if (plain) say_stack(s, node, i, e->first_graph, i, scanned.dims[0]);
    }
}

/* ---- elements by elements ---------------------------------------------------------------------------------------- */

static void shape_same(OnnxSolver *s, int32_t node) {
    int outputs = s->index->nodes[node].node->outputs.len;
    onnx_say_same(s, node, 0, onnx_input_shape(s, node, 0));
    if (outputs > 1 && strcmp(s->index->nodes[node].node->op_type, "Dropout") == 0)
        onnx_say_same(s, node, 1, onnx_input_shape(s, node, 0));
}

static void shape_broadcast(OnnxSolver *s, int32_t node) {
    OnnxValueShape shape = onnx_input_shape(s, node, 0);
    for (int i = 1; i < s->index->nodes[node].node->inputs.len; i++)
        if (!onnx_broadcast(s, shape, onnx_input_shape(s, node, i), &shape)) return;
    onnx_say_same(s, node, 0, shape);
}

static const OnnxRule rules[] = {
    {"Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli Binarizer BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh "
     "CumProd "
     "CumSum DequantizeLinear Dropout Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax "
     "Identity Imputer InstanceNormalization IsInf IsNaN LRN LabelEncoder LeakyRelu Log LogSoftmax LpNormalization "
     "MeanVarianceNormalization Mish Neg Normalizer Not QuantizeLinear RMSNormalization RandomNormalLike "
     "RandomUniformLike Reciprocal Relu ReverseSequence RotaryEmbedding Round Scaler ScatterElements ScatterND Selu "
     "Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt SwiGLU Swish Tan Tanh TensorScatter ThresholdedRelu "
     "Trilu FastGelu QuickGelu BiasGelu SkipLayerNormalization SkipSimplifiedLayerNormalization",
     shape_same},
    {"Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min "
     "Mod Mul Or PRelu Pow Sub Sum Where Xor",
     shape_broadcast},
    {"If", shape_if},
    {"Loop", shape_loop},
    {"Scan", shape_scan},
    {NULL, NULL},
};

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void add_rules(OnnxSolver *s, Table *table, const OnnxRule *list) {
    for (; list->ops; list++) {
        for (const char *at = list->ops; *at;) {
            size_t n = strcspn(at, " ");
            const char *name = arena_strndup(s->arena, at, n);
            table_set(s->arena, table, name, (void *)list);
            at += n + (at[n] == ' ');
        }
    }
}

void onnx_shapes_begin(OnnxSolver *s) {
    add_rules(s, &s->rules, rules);
    add_rules(s, &s->rules, onnx_rules_move);
    add_rules(s, &s->rules, onnx_rules_nn);
    add_rules(s, &s->folds, onnx_rules_fold);
    shapes_of_initializers(s);
}

void onnx_shapes_of_node(OnnxSolver *s, int32_t node) {
    const OnnxNode *n = s->index->nodes[node].node;
    if (s->call) return;
    if (s->out->schemas[node]) {
        const OnnxRule *shape = table_get(&s->rules, n->op_type), *fold = table_get(&s->folds, n->op_type);
        if (shape) shape->say(s, node);
        if (fold) fold->say(s, node);
    }
    for (int i = 0; i < n->outputs.len; i++)
        if (onnx_output(s, node, i) != ONNX_NONE) compare_stated(s, onnx_output(s, node, i));
}
