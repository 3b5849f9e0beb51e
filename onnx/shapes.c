/* shapes.c: shapes of graph inputs, of results by the rule of their op, and what the graph says of them. */
#include "onnx/shapes.h"

#include <string.h>

static const OnnxValueShape no_shape = {-1, NULL};

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
    return left_out < 0 ? no_shape : (OnnxValueShape){rank, onnx_copy_sizes(s, dims, rank)};
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
     "Trilu FastGelu QuickGelu BiasGelu BiasAdd GroupNorm SkipGroupNorm",
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
