/* types_special.c: ops whose results have a type that no attribute states by a number: constants, sequences, optionals,
 * encoders of ai.onnx.ml; and ops that have graphs. */
#include <string.h>

#include "onnx/solve.h"

static OnnxValueType of_kind(OnnxKind kind, int64_t dtype) {
    bool known = dtype > 0 && dtype < ONNX_DTYPES;
    return (OnnxValueType){.kind = known ? (uint8_t)kind : ONNX_KIND_UNKNOWN, .dtype = known ? (uint8_t)dtype : 0};
}

static int variable_named(const OnnxSchema *schema, const char *name) {
    for (int i = 0; i < schema->variables; i++)
        if (strcmp(schema->variable[i].name, name) == 0) return i;
    return -1;
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static OnnxValueType type_of_constant(const OnnxSolver *s, const OnnxNode *n) {
    static const struct {
        const char *attribute;
        int dtype;
    } rows[] = {{"value_float", ONNX_FLOAT}, {"value_floats", ONNX_FLOAT},  {"value_int", ONNX_INT64},
                {"value_ints", ONNX_INT64},  {"value_string", ONNX_STRING}, {"value_strings", ONNX_STRING}};
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "value");
    if (a && a->type == ONNX_ATTR_TENSOR && a->t) return onnx_tensor_of_dtype(a->t->data_type);
    a = onnx_solver_attribute(s, n, "sparse_value");
    if (a && a->type == ONNX_ATTR_SPARSE_TENSOR && a->sparse) return onnx_tensor_of_dtype(a->sparse->values->data_type);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (onnx_solver_attribute(s, n, rows[i].attribute)) return onnx_tensor_of_dtype(rows[i].dtype);
    return onnx_tensor_of_dtype(0);
}

static OnnxValueType type_of_constant_of_shape(const OnnxSolver *s, const OnnxNode *n) {
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "value");
    return onnx_tensor_of_dtype(a && a->type == ONNX_ATTR_TENSOR && a->t ? a->t->data_type : ONNX_FLOAT);
}

/* ---- sequences and optionals ------------------------------------------------------------------------------------- */

/* A variable that has the elements of another: its kind, by the kind of the other. */
typedef struct Wrap {
    const char *op, *from, *to;
    uint8_t kinds[ONNX_KINDS];
} Wrap;

static const Wrap wraps[] = {
    {"SequenceConstruct", "T", "S", {[ONNX_KIND_TENSOR] = ONNX_KIND_SEQUENCE}},
    {"SplitToSequence", "T", "S", {[ONNX_KIND_TENSOR] = ONNX_KIND_SEQUENCE}},
    {"SequenceAt", "S", "T", {[ONNX_KIND_SEQUENCE] = ONNX_KIND_TENSOR}},
    {"ConcatFromSequence", "S", "T", {[ONNX_KIND_SEQUENCE] = ONNX_KIND_TENSOR}},
    {"Optional",
     "V",
     "O",
     {[ONNX_KIND_TENSOR] = ONNX_KIND_OPTIONAL, [ONNX_KIND_SEQUENCE] = ONNX_KIND_OPTIONAL_SEQUENCE}},
    {"OptionalGetElement",
     "O",
     "V",
     {[ONNX_KIND_TENSOR] = ONNX_KIND_TENSOR,
      [ONNX_KIND_SEQUENCE] = ONNX_KIND_SEQUENCE,
      [ONNX_KIND_OPTIONAL] = ONNX_KIND_TENSOR,
      [ONNX_KIND_OPTIONAL_SEQUENCE] = ONNX_KIND_SEQUENCE}},
};

static void bind_wrapped(const OnnxSchema *schema, OnnxValueType *bound) {
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++) {
        if (strcmp(wraps[i].op, schema->op) != 0) continue;
        OnnxValueType from = bound[variable_named(schema, wraps[i].from)];
        if (from.kind) bound[variable_named(schema, wraps[i].to)] = of_kind(wraps[i].kinds[from.kind], from.dtype);
    }
}

static void bind_empty_optional(const OnnxSolver *s, const OnnxNode *n, const OnnxSchema *schema,
                                OnnxValueType *bound) {
    OnnxValueType *o = &bound[variable_named(schema, "O")];
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "type");
    if (o->kind || !a || a->type != ONNX_ATTR_TYPE || !a->tp) return;
    OnnxValueType in = onnx_type_stated(a->tp);
    *o = of_kind(in.kind == ONNX_KIND_SEQUENCE ? ONNX_KIND_OPTIONAL_SEQUENCE : ONNX_KIND_OPTIONAL, in.dtype);
}

/* ---- ai.onnx.ml -------------------------------------------------------------------------------------------------- */

static bool has_list(const OnnxSolver *s, const OnnxNode *n, const char *name) {
    const OnnxAttribute *a = onnx_solver_attribute(s, n, name);
    return a && ((a->type == ONNX_ATTR_STRINGS && a->strings.len) || (a->type == ONNX_ATTR_INTS && a->ints.len) ||
                 (a->type == ONNX_ATTR_FLOATS && a->floats.len));
}

/* Classes are strings or integers, as the attribute that lists them. */
static int dtype_of_classes(const OnnxSolver *s, const OnnxNode *n) {
    return has_list(s, n, "classlabels_strings") || has_list(s, n, "classlabels_strings_list") ? ONNX_STRING
                                                                                               : ONNX_INT64;
}

static int dtype_of_encoder(const OnnxSolver *s, const OnnxNode *n, int from) {
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "values_tensor");
    if (a && a->type == ONNX_ATTR_TENSOR && a->t) return a->t->data_type;
    if (has_list(s, n, "values_strings")) return ONNX_STRING;
    if (has_list(s, n, "values_int64s")) return ONNX_INT64;
    if (has_list(s, n, "values_floats")) return ONNX_FLOAT;
    return from == ONNX_STRING ? ONNX_INT64 : ONNX_STRING; /* version 1: from one to the other */
}

static int dtype_of_cast_map(const OnnxSolver *s, const OnnxNode *n) {
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "cast_to");
    if (!a || a->type != ONNX_ATTR_STRING) return ONNX_FLOAT;
    if (a->s.size == 9 && memcmp(a->s.data, "TO_STRING", 9) == 0) return ONNX_STRING;
    return a->s.size == 8 && memcmp(a->s.data, "TO_INT64", 8) == 0 ? ONNX_INT64 : ONNX_FLOAT;
}

static void bind_ml(const OnnxSolver *s, const OnnxNode *n, const OnnxSchema *schema, OnnxValueType *bound) {
    const char *op = schema->op;
    int from = variable_named(schema, "T1"), to = variable_named(schema, "T2");
    if (strcmp(op, "ZipMap") == 0) {
        OnnxValueType maps = {.kind = ONNX_KIND_MAP_SEQUENCE, .dtype = ONNX_FLOAT, .key = ONNX_INT64};
        if (has_list(s, n, "classlabels_strings")) maps.key = ONNX_STRING;
        bound[variable_named(schema, "T")] = maps;
    } else if (strcmp(op, "LabelEncoder") == 0 || strcmp(op, "CategoryMapper") == 0) {
        bound[to] = onnx_tensor_of_dtype(dtype_of_encoder(s, n, bound[from].dtype));
    } else if (strcmp(op, "DictVectorizer") == 0) {
        bound[to] = onnx_tensor_of_dtype(bound[from].dtype);
    } else if (strcmp(op, "CastMap") == 0) {
        bound[to] = onnx_tensor_of_dtype(dtype_of_cast_map(s, n));
    } else if (strstr(op, "Classifier")) {
        bound[to] = onnx_tensor_of_dtype(dtype_of_classes(s, n));
    }
}

void onnx_special_variables(const OnnxSolver *s, int32_t node, const OnnxSchema *schema, OnnxValueType *bound) {
    const OnnxNode *n = s->index->nodes[node].node;
    const char *op = schema->op;
    if (!onnx_is_default_domain(n->domain)) {
        if (strcmp(n->domain, "ai.onnx.ml") == 0) bind_ml(s, n, schema, bound);
    } else if (strcmp(op, "Constant") == 0) {
        bound[variable_named(schema, "T")] = type_of_constant(s, n);
    } else if (strcmp(op, "ConstantOfShape") == 0) {
        bound[variable_named(schema, "T2")] = type_of_constant_of_shape(s, n);
    } else if (strcmp(op, "SequenceEmpty") == 0) {
        bound[variable_named(schema, "S")] = of_kind(ONNX_KIND_SEQUENCE, onnx_solver_int(s, n, "dtype", ONNX_FLOAT));
    } else {
        bind_wrapped(schema, bound);
        if (strcmp(op, "Optional") == 0) bind_empty_optional(s, n, schema, bound);
    }
}

/* ---- ops with graphs --------------------------------------------------------------------------------------------- */

static amp_status give_input(OnnxSolver *s, int32_t node, int32_t graph, int i, OnnxValueType type) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    if (i >= g->input_count)
        return onnx_node_fail(s, AMP_BAD_FILE, node, "its graph '%s' has %d inputs, and gets more", g->graph->name,
                              g->input_count);
    int32_t v = s->index->operands[g->first_input + i];
    const OnnxValue *value = &s->index->values[v];
    OnnxValueType stated = value->info ? onnx_type_stated(value->info->type) : (OnnxValueType){.kind = 0};
    if (type.kind && stated.kind && !onnx_type_equal(type, stated))
        return onnx_node_fail(s, AMP_BAD_FILE, node, "the input '%s' of its graph '%s' is said to be %s, and gets %s",
                              value->name, g->graph->name, onnx_type_text(s, stated), onnx_type_text(s, type));
    if (type.kind) s->out->types[v] = type;
    return AMP_OK;
}

static OnnxValueType type_of_input(const OnnxSolver *s, int32_t node, int i) {
    int32_t v = s->index->operands[s->index->nodes[node].first_input + i];
    return v == ONNX_NONE ? (OnnxValueType){.kind = 0} : s->out->types[v];
}

static OnnxValueType type_of_result(const OnnxSolver *s, int32_t graph, int i) {
    int32_t v = s->index->operands[s->index->graphs[graph].first_output + i];
    return v == ONNX_NONE ? (OnnxValueType){.kind = 0} : s->out->types[v];
}

/* The node gives what |graph| gives from output |first| on, as |kind|. */
static amp_status take_results(OnnxSolver *s, int32_t node, int32_t graph, int first, OnnxKind kind) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    if (e->node->outputs.len > g->output_count - first)
        return onnx_node_fail(s, AMP_BAD_FILE, node, "it has %d outputs, and its graph '%s' gives %d",
                              e->node->outputs.len, g->graph->name, g->output_count - first);
    for (int i = 0; i < e->node->outputs.len; i++) {
        int32_t v = s->index->operands[e->first_output + i];
        OnnxValueType type = type_of_result(s, graph, first + i);
        if (kind != ONNX_KIND_TENSOR) type = of_kind(kind, type.dtype);
        if (v != ONNX_NONE) AMP_TRY(onnx_set_type(s, node, v, type));
    }
    return AMP_OK;
}

/* What goes round: input |in| of the graph comes from its output |out|. */
static amp_status check_carried(OnnxSolver *s, int32_t node, int32_t graph, int in, int out) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    if (out >= g->output_count || in >= g->input_count) return AMP_OK;
    int32_t v = s->index->operands[g->first_input + in];
    OnnxValueType before = s->out->types[v], after = type_of_result(s, graph, out);
    if (!before.kind || !after.kind || onnx_type_equal(before, after)) return AMP_OK;
    bool optional = before.kind == ONNX_KIND_OPTIONAL || before.kind == ONNX_KIND_OPTIONAL_SEQUENCE;
    if (optional && before.dtype == after.dtype) return AMP_OK; /* there is something after an iteration */
    return onnx_node_fail(s, AMP_BAD_FILE, node, "'%s' of its graph '%s' is %s before an iteration, and %s after it",
                          s->index->values[v].name, g->graph->name, onnx_type_text(s, before),
                          onnx_type_text(s, after));
}

static amp_status type_if(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    for (int i = 0; i < e->graph_count; i++) AMP_TRY(onnx_solve_graph(s, e->first_graph + i));
    for (int k = 1; k < e->graph_count; k++) {
        int32_t a = e->first_graph, b = e->first_graph + k;
        for (int i = 0; i < e->node->outputs.len; i++) {
            if (i >= s->index->graphs[a].output_count || i >= s->index->graphs[b].output_count) continue;
            OnnxValueType x = type_of_result(s, a, i), y = type_of_result(s, b, i);
            if (!onnx_type_equal(x, y))
                return onnx_node_fail(s, AMP_BAD_FILE, node,
                                      "its branches give %s and %s as output %d; cast one of them",
                                      onnx_type_text(s, x), onnx_type_text(s, y), i);
        }
        AMP_TRY(take_results(s, node, b, 0, ONNX_KIND_TENSOR));
    }
    return take_results(s, node, e->first_graph, 0, ONNX_KIND_TENSOR);
}

static amp_status type_loop(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    int32_t body = e->first_graph;
    AMP_TRY(give_input(s, node, body, 0, onnx_tensor_of_dtype(ONNX_INT64)));
    AMP_TRY(give_input(s, node, body, 1, onnx_tensor_of_dtype(ONNX_BOOL)));
    for (int i = 2; i < e->node->inputs.len; i++) AMP_TRY(give_input(s, node, body, i, type_of_input(s, node, i)));
    AMP_TRY(onnx_solve_graph(s, body));
    for (int i = 2; i < e->node->inputs.len; i++) AMP_TRY(check_carried(s, node, body, i, i - 1));
    return take_results(s, node, body, 1, ONNX_KIND_TENSOR);
}

static amp_status type_scan(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    int32_t body = e->first_graph;
    int64_t scanned = onnx_solver_int(s, e->node, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > e->node->inputs.len)
        return onnx_node_fail(s, AMP_BAD_FILE, node, "its num_scan_inputs is %lld, and it has %d inputs",
                              (long long)scanned, e->node->inputs.len);
    for (int i = 0; i < e->node->inputs.len; i++) AMP_TRY(give_input(s, node, body, i, type_of_input(s, node, i)));
    AMP_TRY(onnx_solve_graph(s, body));
    for (int i = 0; i < e->node->inputs.len - scanned; i++) AMP_TRY(check_carried(s, node, body, i, i));
    return take_results(s, node, body, 0, ONNX_KIND_TENSOR);
}

static amp_status type_sequence_map(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    for (int i = 0; i < e->node->inputs.len; i++) {
        OnnxValueType type = type_of_input(s, node, i);
        if (type.kind == ONNX_KIND_SEQUENCE) type.kind = ONNX_KIND_TENSOR;
        AMP_TRY(give_input(s, node, e->first_graph, i, type));
    }
    AMP_TRY(onnx_solve_graph(s, e->first_graph));
    return take_results(s, node, e->first_graph, 0, ONNX_KIND_SEQUENCE);
}

amp_status onnx_type_graphs(OnnxSolver *s, int32_t node, bool *done) {
    static const struct {
        const char *op;
        int graphs;
        amp_status (*type)(OnnxSolver *s, int32_t node);
    } rows[] = {
        {"If", 2, type_if}, {"Loop", 1, type_loop}, {"Scan", 1, type_scan}, {"SequenceMap", 1, type_sequence_map}};
    const OnnxNodeEntry *e = &s->index->nodes[node];
    *done = false;
    if (!onnx_is_default_domain(e->node->domain)) return AMP_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].op, e->node->op_type) != 0) continue;
        *done = true;
        if (e->graph_count != rows[i].graphs)
            return onnx_node_fail(s, AMP_BAD_FILE, node, "it has %d graphs, and %s has %d", e->graph_count, rows[i].op,
                                  rows[i].graphs);
        return rows[i].type(s, node);
    }
    return AMP_OK;
}
