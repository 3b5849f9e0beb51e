/* decide_graph.c: the algorithms that see all nodes at once: `min_cut` over values and ops, and `paint` over ops. */
#include <stdio.h>

#include "onnx/deciding.h"
#include "precision/paint.h"

/* ---- min_cut ----------------------------------------------------------------------------------------------------- */

/* Of a size that is not known: as large as the largest operand of its maker, or else this. */
enum { UNKNOWN_ELEMENTS = 1000 };

static bool is_constant(const OnnxDeciding *d, int32_t node) {
    return node != ONNX_NONE && onnx_has_trait(d->rows[node], 'C');
}

static BytesValue bytes_value(const OnnxDeciding *d, int32_t v) {
    const OnnxValue *value = &d->index->values[v];
    const double elements = onnx_typical_elements(d->solution, v);
    const bool is_float = onnx_is_float_value(d, v);
    return (BytesValue){.elements = elements < 0.0 ? UNKNOWN_ELEMENTS : elements,
                        .maker = -1,
                        .is_float = is_float,
                        .is_f32 = onnx_stored(d, v) == ONNX_FLOAT,
                        .is_weak = onnx_is_weak(d, v),
                        .is_given = value->is_input && !value->initializer && is_float,
                        .is_weight = d->is_weight[v] && (value->initializer || is_constant(d, value->producer)),
                        .is_result = value->is_output,
                        .has_dims = onnx_has_dims(d, v)};
}

/* A node that stays as it is needs its operands in f32, and makes f32. */
static BytesOp bytes_op_of(OnnxDeciding *d, int32_t node) {
    const OnnxUnit *unit = &d->units[node];
    const OnnxRow *row = d->rows[node];
    BytesOp op =
        bytes_op(unit->is_decided ? unit->named.code : OP_NONE, unit->is_decided ? unit->op_class : POLICY_F32);
    op.is_cast = row && !strcmp(row->names, "cast");
    op.is_constant = onnx_has_trait(row, 'C');
    return op;
}

static bool same_shape(const OnnxDeciding *d, int32_t a, int32_t b) {
    const OnnxValueShape *s = &d->solution->shapes[a], *t = &d->solution->shapes[b];
    if (s->rank < 0 || s->rank != t->rank) return false;
    for (int i = 0; i < s->rank; i++)
        if (!onnx_size_equal(s->dims[i], t->dims[i])) return false;
    return true;
}

static double largest_operand(const OnnxDeciding *d, const BytesGraph *g, int32_t node) {
    double largest = 0.0;
    for (int k = 0; k < d->index->nodes[node].node->inputs.len; k++) {
        const int32_t v = onnx_source_of(d, node, k);
        if (onnx_is_float_value(d, v) && g->values[v].elements > largest) largest = g->values[v].elements;
    }
    return largest > 0.0 ? largest : UNKNOWN_ELEMENTS;
}

static void add_node(OnnxDeciding *d, BytesGraph *g, int32_t node) {
    BytesOp *op = &g->ops[g->op_count];
    const bool is_decided = d->units[node].is_decided, is_stored = onnx_has_trait(d->rows[node], 'S');
    *op = bytes_op_of(d, node);
    for (int k = 0; k < d->index->nodes[node].node->outputs.len; k++) {
        const int32_t v = onnx_result_of(d, node, k);
        if (v == ONNX_NONE) continue;
        if (onnx_typical_elements(d->solution, v) < 0.0) g->values[v].elements = largest_operand(d, g, node);
        if (op->is_constant) continue;
        g->values[v].maker = g->op_count;
        vec_push(d->arena, &op->outs, v);
    }
    onnx_collect_reads(d, node);
    for (int i = 0; i < d->reads.len; i++) {
        const OnnxRead *r = &d->reads.data[i];
        const BytesRead read = {r->value, is_decided ? r->is_castable : !is_stored,
                                op->outs.len && same_shape(d, r->value, op->outs.data[0])};
        if (!is_stored) vec_push(d->arena, &op->reads, read);
    }
    g->op_count++;
}

/* An output of a fixed type is stored in f32: an op reads it so, and makes nothing of a size. */
static void add_reader(OnnxDeciding *d, BytesGraph *g, int32_t operand) {
    const int32_t group = d->solution->operand_groups[operand], value = d->index->operands[operand];
    if (group != ONNX_NONE && d->states[group] == GROUP_STORED) return;
    if (!onnx_is_float_value(d, value)) return;
    const BytesRead read = {d->out->sources[value], true, false};
    BytesOp *op = &g->ops[g->op_count];
    *op = bytes_op(OP_NONE, POLICY_F32);
    op->reads_own_type = true;
    vec_push(d->arena, &op->reads, read);
    vec_push(d->arena, &op->outs, g->value_count);
    g->values[read.value].is_result = false;
    g->values[g->value_count++] = (BytesValue){.maker = g->op_count++, .is_float = true, .is_f32 = true};
}

/* Is it decided alone, or the last of a pattern? */
static bool is_unit(const OnnxDeciding *d, int32_t node) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    return d->out->nodes[node].fate != ONNX_DROPPED && members[count - 1] == node;
}

static void explain_all(OnnxDeciding *d, int32_t node, const char *because) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int i = 0; i < count; i++)
        if (!d->out->nodes[members[i]].reason.because) d->out->nodes[members[i]].reason.because = because;
}

static BytesGraph bytes_graph(OnnxDeciding *d) {
    const OnnxIndex *x = d->index;
    int outputs = 1;
    for (int32_t i = 0; i < x->graph_count; i++) outputs += x->graphs[i].output_count;
    BytesGraph g = {.values = arena_array(d->arena, BytesValue, x->value_count + outputs),
                    .ops = arena_array(d->arena, BytesOp, x->node_count + outputs),
                    .value_count = x->value_count};
    for (int32_t v = 0; v < x->value_count; v++) g.values[v] = bytes_value(d, v);
    for (int32_t n = 0; n < x->node_count; n++)
        if (is_unit(d, n)) add_node(d, &g, n);
    for (int32_t i = 0; i < x->graph_count; i++)
        for (int k = 0; k < x->graphs[i].output_count; k++) add_reader(d, &g, x->graphs[i].first_output + k);
    return g;
}

void onnx_decide_by_bytes(OnnxDeciding *d) {
    const BytesGraph g = bytes_graph(d);
    const LeastBytes *found = least_bytes(d->arena, &g);
    for (int32_t n = 0; n < d->index->node_count; n++) {
        if (!is_unit(d, n)) continue;
        const LeastBytes *b = found++;
        if (!d->units[n].is_decided) continue;
        if (!b->is_decided) {
            onnx_decide_by_class(d, n);
            continue;
        }
        onnx_give_type(d, n, b->is_f32 ? ONNX_FLOAT : d->low);
        if (b->is_forced) onnx_follow(d, n, onnx_types_of(d, n, POLICY_WIDEST).forced_by);
        if (!b->is_forced && onnx_has_dims(d, onnx_result_of(d, n, 0)))
            explain_all(d, n,
                        least_bytes_because(d->arena, b, onnx_to_dtype((int32_t)d->low), d->options->batch_hint, 0));
    }
}

/* ---- paint ------------------------------------------------------------------------------------------------------- */

static PaintList list_of(PolicyClass op_class) {
    switch (op_class) {
    case POLICY_ALLOW: return PAINT_LIST_ALLOW;
    case POLICY_INFER: return PAINT_LIST_INFER;
    case POLICY_DENY: return PAINT_LIST_DENY;
    case POLICY_CLEAR: return PAINT_LIST_CLEAR;
    default: return PAINT_LIST_NONE;
    }
}

/* Vertices are nodes.  The last of a pattern has the edges of all. */
void onnx_decide_by_paint(OnnxDeciding *d) {
    static const char *const passes[] = {
        [PAINT_UNTOUCHED] = "reached by no pass", [PAINT_BY_DENY] = "deny in pass 2",
        [PAINT_BETWEEN] = "allow in pass 3",      [PAINT_AFTER] = "allow in pass 4",
        [PAINT_BESIDE] = "allow in pass 5",       [PAINT_CAST] = NULL,
    };
    const int32_t nodes = d->index->node_count;
    PaintVertex *vertices = arena_array(d->arena, PaintVertex, nodes + 1);
    VEC(PaintEdge) edges = {0};
    for (int32_t n = 0; n < nodes; n++) {
        const bool varies = d->units[n].is_decided;
        vertices[n] = (PaintVertex){.list = varies ? list_of(d->units[n].op_class) : PAINT_LIST_NONE,
                                    .may_change = varies,
                                    .is_f32 = varies,
                                    .admits_low = varies,
                                    .has_low_kernel = varies};
        if (!varies) continue;
        onnx_collect_reads(d, n);
        for (int i = 0; i < d->reads.len; i++) {
            const PaintEdge edge = {d->index->values[d->reads.data[i].value].producer, n};
            if (d->reads.data[i].is_castable && edge.from != ONNX_NONE) vec_push(d->arena, &edges, edge);
        }
    }
    const PaintGraph graph = {vertices, edges.data, nodes, edges.len};
    const PaintMark *marks = paint_graph(d->arena, &graph);
    for (int32_t n = 0; n < nodes; n++) {
        if (!d->units[n].is_decided) continue;
        onnx_give_type(d, n, marks[n].colour == PAINT_ALLOW ? d->low : ONNX_FLOAT);
        explain_all(d, n, passes[marks[n].pass]);
    }
}
