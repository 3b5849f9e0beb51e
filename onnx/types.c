/* types.c: types of values, node by node: what inputs bind type variables to, outputs have. */
#include "onnx/types.h"

#include <string.h>

#include "onnx/solve.h"

/* Nodes in the bodies of functions, all calls of different types together. */
enum { MOST_WORK = 10000000 };

/* ---- nodes with a schema ----------------------------------------------------------------------------------------- */

static const char *set_text(const OnnxSolver *s, const OnnxTypeSet *set) {
    Text t;
    text_init(&t, s->arena);
    onnx_set_print(&t, set);
    return text_str(&t);
}

/* A node's variables: their types, and the first input that has it. */
typedef struct Bound {
    OnnxValueType type[ONNX_VARIABLES];
    int32_t input[ONNX_VARIABLES];
} Bound;

static amp_status refuse(OnnxSolver *s, int32_t node, const OnnxSchema *schema, const char *which, int32_t v,
                         OnnxValueType type, const OnnxTypeSet *allowed) {
    return onnx_node_fail(s, AMP_BAD_FILE, node,
                          "%s '%s' is %s, and %s (of opset %d) takes %s; cast it, or convert the model to an opset "
                          "that takes it",
                          which, s->index->values[v].name, onnx_type_text(s, type), schema->op, schema->since,
                          set_text(s, allowed));
}

static amp_status bind_input(OnnxSolver *s, int32_t node, const OnnxSchema *schema, const OnnxParam *p, int32_t v,
                             Bound *bound) {
    OnnxValueType type = s->out->types[v];
    if (type.kind == ONNX_KIND_UNKNOWN) return AMP_OK; /* of a function's input that its caller leaves out */
    if (p->variable < 0) {
        OnnxTypeSet only = {{0}};
        only.of[ONNX_KIND_TENSOR] = 1u << p->dtype;
        return onnx_type_in(type, &only) ? AMP_OK : refuse(s, node, schema, "its input", v, type, &only);
    }
    const OnnxVariable *variable = &schema->variable[p->variable];
    if (!onnx_type_in(type, &variable->allowed))
        return refuse(s, node, schema, "its input", v, type, &variable->allowed);
    OnnxValueType *is = &bound->type[p->variable];
    if (p->mixed) return AMP_OK;
    if (is->kind == ONNX_KIND_UNKNOWN) {
        *is = type;
        bound->input[p->variable] = v;
    } else if (!onnx_type_equal(*is, type)) {
        return onnx_node_fail(s, AMP_BAD_FILE, node,
                              "its inputs '%s' and '%s' must have one type, and are %s and %s; cast one of them",
                              s->index->values[bound->input[p->variable]].name, s->index->values[v].name,
                              onnx_type_text(s, *is), onnx_type_text(s, type));
    }
    return AMP_OK;
}

static amp_status bind_inputs(OnnxSolver *s, int32_t node, const OnnxSchema *schema, Bound *bound) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    for (int i = 0; i < e->node->inputs.len; i++) {
        const OnnxParam *p = onnx_param(schema->input, schema->inputs, i);
        int32_t v = s->index->operands[e->first_input + i];
        if (!p && v == ONNX_NONE) continue;
        if (!p)
            return onnx_node_fail(s, AMP_BAD_FILE, node, "it has %d inputs, and %s (of opset %d) has at most %d",
                                  e->node->inputs.len, schema->op, schema->since, schema->inputs);
        if (v == ONNX_NONE && !p->optional && !p->any_number)
            return onnx_node_fail(s, AMP_BAD_FILE, node, "its input %d is left out, and %s (of opset %d) needs it", i,
                                  schema->op, schema->since);
        if (v != ONNX_NONE) AMP_TRY(bind_input(s, node, schema, p, v, bound));
    }
    for (int i = e->node->inputs.len; i < schema->inputs; i++)
        if (!schema->input[i].optional && !schema->input[i].any_number)
            return onnx_node_fail(s, AMP_BAD_FILE, node, "it has %d inputs, and %s (of opset %d) needs more",
                                  e->node->inputs.len, schema->op, schema->since);
    return AMP_OK;
}

/* The type that |set| has alone, if it is one. */
static OnnxValueType only_type(const OnnxTypeSet *set) {
    uint32_t bits = set->of[ONNX_KIND_TENSOR];
    for (int kind = 1; kind < ONNX_KINDS; kind++)
        if (kind != ONNX_KIND_TENSOR && set->of[kind]) return (OnnxValueType){.kind = ONNX_KIND_UNKNOWN};
    return bits && !(bits & (bits - 1)) ? onnx_tensor_of_dtype(__builtin_ctz(bits))
                                        : (OnnxValueType){.kind = ONNX_KIND_UNKNOWN};
}

/* Variables that no input has. */
static void bind_others(OnnxSolver *s, int32_t node, const OnnxSchema *schema, Bound *bound) {
    onnx_special_variables(s, node, schema, bound->type);
    for (int i = 0; i < schema->variables; i++) {
        const OnnxVariable *v = &schema->variable[i];
        OnnxValueType *is = &bound->type[i];
        const OnnxNode *n = s->index->nodes[node].node;
        if (is->kind == ONNX_KIND_UNKNOWN && v->attribute)
            *is = onnx_tensor_of_dtype(onnx_solver_int(s, n, v->attribute, 0));
        if (is->kind == ONNX_KIND_UNKNOWN) *is = onnx_tensor_of_dtype(v->default_dtype);
        if (is->kind == ONNX_KIND_UNKNOWN) *is = only_type(&v->allowed);
    }
    for (int i = 0; i < schema->variables; i++)
        if (bound->type[i].kind == ONNX_KIND_UNKNOWN && schema->variable[i].default_variable >= 0)
            bound->type[i] = bound->type[schema->variable[i].default_variable];
}

static amp_status type_of_output(OnnxSolver *s, int32_t node, const OnnxSchema *schema, int i, const Bound *bound,
                                 OnnxValueType *type) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    const OnnxParam *p = onnx_param(schema->output, schema->outputs, i);
    int32_t v = s->index->operands[e->first_output + i];
    if (!p)
        return onnx_node_fail(s, AMP_BAD_FILE, node, "it has %d outputs, and %s (of opset %d) has at most %d",
                              e->node->outputs.len, schema->op, schema->since, schema->outputs);
    if (p->variable < 0) {
        *type = onnx_tensor_of_dtype(p->dtype);
        return AMP_OK;
    }
    const OnnxVariable *variable = &schema->variable[p->variable];
    *type = bound->type[p->variable];
    if (type->kind == ONNX_KIND_UNKNOWN) return AMP_OK;
    return onnx_type_in(*type, &variable->allowed)
               ? AMP_OK
               : refuse(s, node, schema, "its output", v, *type, &variable->allowed);
}

/* ---- nodes and graphs -------------------------------------------------------------------------------------------- */

static amp_status type_by_schema(OnnxSolver *s, int32_t node, const OnnxSchema *schema) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    Bound bound = {.input = {0}};
    AMP_TRY(bind_inputs(s, node, schema, &bound));
    bool done;
    AMP_TRY(onnx_type_graphs(s, node, &done));
    if (done) return AMP_OK;
    bind_others(s, node, schema, &bound);
    for (int i = 0; i < e->node->outputs.len; i++) {
        int32_t v = s->index->operands[e->first_output + i];
        if (v == ONNX_NONE) continue;
        OnnxValueType type;
        AMP_TRY(type_of_output(s, node, schema, i, &bound, &type));
        if (type.kind == ONNX_KIND_UNKNOWN) AMP_TRY(onnx_type_by_statement(s, node, v));
        else AMP_TRY(onnx_set_type(s, node, v, type));
    }
    return AMP_OK;
}

static amp_status solve_node(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    if (e->function != ONNX_NONE) return onnx_type_call(s, node);
    int64_t opset = onnx_opset_of(s, e->node);
    const OnnxSchema *schema = onnx_schema(&s->schemas, e->node->domain, e->node->op_type, opset ? opset : 1);
    s->out->schemas[node] = schema;
    if (schema) return type_by_schema(s, node, schema);
    for (int i = 0; i < e->graph_count; i++) AMP_TRY(onnx_solve_graph(s, e->first_graph + i));
    for (int i = 0; i < e->node->outputs.len; i++) {
        int32_t v = s->index->operands[e->first_output + i];
        if (v != ONNX_NONE) AMP_TRY(onnx_type_by_statement(s, node, v));
    }
    return AMP_OK;
}

/* Inputs whose type the caller has not set have the one that the graph states. */
static amp_status begin_graph(OnnxSolver *s, int32_t graph) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    for (int i = 0; i < g->input_count; i++) {
        int32_t v = s->index->operands[g->first_input + i];
        const OnnxValue *value = &s->index->values[v];
        OnnxValueType *type = &s->out->types[v];
        if (type->kind == ONNX_KIND_UNKNOWN && value->info) *type = onnx_type_stated(value->info->type);
        if (type->kind == ONNX_KIND_UNKNOWN && table_get(&s->assumed, value->name))
            *type = onnx_tensor_of_dtype(((const OnnxAssumption *)table_get(&s->assumed, value->name))->dtype);
        if (type->kind == ONNX_KIND_UNKNOWN && !g->function)
            return amp_fail(s->err, AMP_UNSUPPORTED,
                            "%s: nothing says the type of the input '%s' of graph '%s'; give it by --assume %s=float32",
                            s->model->path, value->name, g->graph->name, value->name);
    }
    return AMP_OK;
}

amp_status onnx_solve_graph(OnnxSolver *s, int32_t graph) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
    if (s->call && (s->work += g->nodes->len) > MOST_WORK)
        return amp_fail(s->err, AMP_UNSUPPORTED,
                        "%s: calls of local functions come to more than %d nodes; inline the functions first",
                        s->model->path, MOST_WORK);
    AMP_TRY(begin_graph(s, graph));
    onnx_shapes_of_graph(s, graph);
    for (int i = 0; i < g->nodes->len; i++) {
        AMP_TRY(solve_node(s, g->first_node + i));
        onnx_shapes_of_node(s, g->first_node + i);
    }
    return AMP_OK;
}

static amp_status check_opset(OnnxSolver *s) {
    int64_t opset = onnx_opset(&s->model->opsets, "");
    if (opset == 0 || (opset >= ONNX_OLDEST_OPSET && opset <= ONNX_NEWEST_OPSET)) return AMP_OK;
    return amp_fail(s->err, AMP_UNSUPPORTED, "%s: opset %lld of ai.onnx; ampc knows %d to %d; %s", s->model->path,
                    (long long)opset, ONNX_OLDEST_OPSET, ONNX_NEWEST_OPSET,
                    opset < ONNX_OLDEST_OPSET ? "convert the model by onnx.version_converter, or export it again"
                                              : "export the model with an older opset");
}

static amp_status initializer_types(OnnxSolver *s) {
    for (int32_t v = 0; v < s->index->value_count; v++) {
        const OnnxValue *value = &s->index->values[v];
        const OnnxTensor *t = value->initializer ? value->initializer : value->sparse ? value->sparse->values : NULL;
        if (!t) continue;
        OnnxValueType type = onnx_tensor_of_dtype(t->data_type);
        if (type.kind == ONNX_KIND_UNKNOWN)
            return amp_fail(s->err, AMP_UNSUPPORTED, "%s: the initializer '%s' has the data type %d, which ampc lacks",
                            s->model->path, value->name, (int)t->data_type);
        AMP_TRY(onnx_set_type(s, ONNX_NONE, v, type));
    }
    return AMP_OK;
}

/* Of functions whose calls differ in types nothing is known. */
static void forget_bodies(OnnxSolver *s) {
    for (int32_t v = 0; v < s->index->value_count; v++) {
        int32_t g = s->index->values[v].graph;
        while (s->index->graphs[g].parent != ONNX_NONE) g = s->index->graphs[g].parent;
        if (s->differs[g]) s->out->types[v] = (OnnxValueType){.kind = ONNX_KIND_UNKNOWN};
    }
}

amp_status onnx_solve_types(const OnnxModel *model, const OnnxIndex *index, const OnnxTypeOptions *options,
                            Arena *arena, OnnxSolution *out, amp_error *err) {
    static const OnnxTypeOptions none;
    if (!options) options = &none;
    *out = (OnnxSolution){.types = arena_array(arena, OnnxValueType, index->value_count),
                          .shapes = arena_array(arena, OnnxValueShape, index->value_count),
                          .ints = arena_array(arena, OnnxKnownInts, index->value_count),
                          .schemas = arena_array(arena, const OnnxSchema *, index->node_count)};
    OnnxSolver s = {.model = model, .index = index, .options = options, .arena = arena, .out = out, .err = err};
    s.called = arena_array(arena, bool, index->graph_count);
    s.differs = arena_array(arena, bool, index->graph_count);
    for (int32_t v = 0; v < index->value_count; v++) out->shapes[v].rank = -1;
    onnx_sizes_init(&out->sizes, arena, options->typical > 0 ? options->typical : 32);
    onnx_schemas_init(&s.schemas, arena);
    for (int i = 0; i < options->assumed_count; i++)
        table_set(arena, &s.assumed, options->assumed[i].name, (void *)&options->assumed[i]);
    onnx_shapes_begin(&s);
    AMP_TRY(check_opset(&s));
    AMP_TRY(initializer_types(&s));
    AMP_TRY(onnx_solve_graph(&s, 0));
    forget_bodies(&s);
    onnx_find_groups(&s);
    return AMP_OK;
}
