/* onnx_counts.c: see onnx_autocast.h. */
#include <string.h>

#include "compiler/onnx/onnx_autocast.h"

/* ---- bytes that nodes read and write ----------------------------------------------------------------------------- */

/* Of a value as |dtype|; 0 and counted where its size is not known. */
static double bytes_as(Autocast *a, int32_t value, int dtype) {
    const int bits = onnx_dtype_bits(dtype);
    if (!bits) return 0.0;
    const double elements = onnx_typical_elements(&a->solution, value);
    if (elements >= 0.0) return elements * bits / 8.0;
    a->unknown_sizes++;
    return 0.0;
}

static void count_operand(Autocast *a, int32_t operand, bool is_dropped) {
    const int32_t value = a->index.operands[operand];
    if (value == ONNX_NONE) return;
    const OnnxDecisions *d = &a->decisions;
    const int read = d->reads[operand] ? d->reads[operand] : d->stored[d->sources[value]];
    a->counts.moved_bytes_before += bytes_as(a, value, a->solution.types[value].dtype);
    if (!is_dropped) a->counts.moved_bytes += bytes_as(a, value, read);
}

bool autocast_is_cast(const Autocast *a, int32_t node) {
    const OnnxNodeEntry *e = &a->index.nodes[node];
    if (strcmp(e->node->op_type, "Cast") != 0 || e->node->inputs.len != 1 || e->node->outputs.len != 1) return false;
    const int32_t from = a->index.operands[e->first_input], to = a->index.operands[e->first_output];
    return from != ONNX_NONE && to != ONNX_NONE && onnx_is_float(a->solution.types[from].dtype) &&
           onnx_is_float(a->solution.types[to].dtype);
}

void autocast_count(Autocast *a) {
    const OnnxDecisions *d = &a->decisions;
    a->is_copied = arena_array(&a->arena, bool, a->index.value_count + 1);
    a->counts.nodes = a->index.node_count;
    a->counts.lowered = d->lowered;
    a->counts.kept = d->f32;
    for (int32_t i = 0; i < a->index.node_count; i++) {
        const OnnxNodeEntry *e = &a->index.nodes[i];
        const bool is_dropped = d->nodes[i].fate == ONNX_DROPPED;
        a->counts.casts_before += autocast_is_cast(a, i);
        for (int k = 0; k < e->node->inputs.len; k++) count_operand(a, e->first_input + k, is_dropped);
        for (int k = 0; k < e->node->outputs.len; k++) count_operand(a, e->first_output + k, is_dropped);
    }
    for (int i = 0; i < d->casts.len; i++) {
        const OnnxCast *c = &d->casts.data[i];
        a->is_copied[c->value] |= c->dtype == a->low;
        if (c->is_weight) continue;
        a->counts.moved_bytes += bytes_as(a, c->value, d->stored[c->value]) + bytes_as(a, c->value, c->dtype);
    }
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static int64_t constant_bytes(const OnnxNode *node) {
    int64_t bytes = 0;
    for (int i = 0; i < node->attributes.len; i++) {
        const OnnxAttribute *at = &node->attributes.data[i];
        if (at->type == ONNX_ATTR_TENSOR) bytes += (int64_t)onnx_data_bytes(at->t);
        if (at->type == ONNX_ATTR_FLOAT) bytes += 4;
        if (at->type == ONNX_ATTR_FLOATS) bytes += 4 * (int64_t)at->floats.len;
    }
    return bytes;
}

int64_t autocast_weight_bytes(const Autocast *a) {
    int64_t bytes = 0;
    for (int32_t g = 0; g < a->index.graph_count; g++) {
        const OnnxGraphEntry *e = &a->index.graphs[g];
        for (int i = 0; e->graph && i < e->graph->initializers.len; i++)
            bytes += (int64_t)onnx_data_bytes(&e->graph->initializers.data[i]);
        for (int i = 0; e->graph && i < e->graph->sparse_initializers.len; i++)
            bytes += (int64_t)onnx_data_bytes(e->graph->sparse_initializers.data[i].values);
        for (int i = 0; i < e->nodes->len; i++)
            if (!strcmp(e->nodes->data[i].op_type, "Constant")) bytes += constant_bytes(&e->nodes->data[i]);
    }
    return bytes;
}

/* In the low type, alone or beside what it was. */
bool autocast_is_converted(const Autocast *a, int32_t value) {
    const OnnxDecisions *d = &a->decisions;
    if (!onnx_is_float(a->solution.types[value].dtype) || a->solution.types[value].dtype == a->low) return false;
    const OnnxValue *v = &a->index.values[value];
    const bool is_constant = v->producer != ONNX_NONE && !strcmp(a->index.nodes[v->producer].node->op_type, "Constant");
    if (!v->initializer && !v->sparse && !is_constant) return false;
    return d->stored[value] == a->low || a->is_copied[value];
}

void autocast_count_weights(Autocast *a) {
    for (int32_t i = 0; i < a->index.value_count; i++) {
        if (!autocast_is_converted(a, i)) continue;
        a->counts.weights++;
        a->counts.over += (int64_t)a->losses[i].over;
        a->counts.under += (int64_t)a->losses[i].under;
    }
}
