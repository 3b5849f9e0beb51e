/* types.c: types of values, node by node: what inputs bind type variables to, outputs have. */
#include "onnx/types.h"

#include <string.h>

#include "onnx/solve.h"

/* ---- messages and attributes ------------------------------------------------------------------------------------- */

amp_status onnx_node_fail(const OnnxSolver *s, amp_status status, int32_t node, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(s->arena, format, args);
    va_end(args);
    return amp_fail(s->err, status, "%s: %s: %s", s->model->path, onnx_node_text(s->index, s->arena, node), what);
}

const char *onnx_type_text(const OnnxSolver *s, OnnxValueType type) {
    Text t;
    text_init(&t, s->arena);
    onnx_type_print(&t, type);
    return text_str(&t);
}

static const char *set_text(const OnnxSolver *s, const OnnxTypeSet *set) {
    Text t;
    text_init(&t, s->arena);
    onnx_set_print(&t, set);
    return text_str(&t);
}

static const OnnxAttribute *find_attribute(const OnnxAttributes *list, const char *name) {
    for (int i = 0; i < list->len; i++)
        if (strcmp(list->data[i].name, name) == 0) return &list->data[i];
    return NULL;
}

const OnnxAttribute *onnx_solver_attribute(const OnnxSolver *s, const OnnxNode *node, const char *name) {
    const OnnxAttribute *a = find_attribute(&node->attributes, name);
    for (const OnnxCall *call = s->call; a && a->ref_name && *a->ref_name; call = call->around) {
        if (!call) return NULL;
        const char *wanted = a->ref_name;
        a = find_attribute(&call->node->attributes, wanted);
        if (!a) a = find_attribute(&call->function->defaults, wanted);
    }
    return a;
}

int64_t onnx_solver_int(const OnnxSolver *s, const OnnxNode *node, const char *name, int64_t otherwise) {
    const OnnxAttribute *a = onnx_solver_attribute(s, node, name);
    return a && a->type == ONNX_ATTR_INT ? a->i : otherwise;
}

/* ---- what the graph states --------------------------------------------------------------------------------------- */

static OnnxValueType tensor_of(int64_t dtype) {
    bool known = dtype > 0 && dtype < ONNX_DTYPES;
    return (OnnxValueType){.kind = known ? ONNX_KIND_TENSOR : ONNX_KIND_UNKNOWN, .dtype = known ? (uint8_t)dtype : 0};
}

OnnxValueType onnx_type_stated(const OnnxType *type) {
    const OnnxValueType other = {.kind = ONNX_KIND_OTHER}, unknown = {.kind = ONNX_KIND_UNKNOWN};
    if (!type || type->kind == ONNX_TYPE_NONE) return unknown;
    if (type->kind == ONNX_TYPE_TENSOR) return tensor_of(type->tensor ? type->tensor->elem_type : 0);
    if (type->kind == ONNX_TYPE_SPARSE || type->kind == ONNX_TYPE_OPAQUE || !type->element) return other;
    OnnxValueType in = onnx_type_stated(type->element->type);
    if (in.kind == ONNX_KIND_UNKNOWN) return unknown;
    if (type->kind == ONNX_TYPE_MAP)
        return (OnnxValueType){.kind = ONNX_KIND_MAP, .dtype = in.dtype, .key = (uint8_t)type->element->key_type};
    static const uint8_t around[2][ONNX_KINDS] = {
        {[ONNX_KIND_TENSOR] = ONNX_KIND_SEQUENCE, [ONNX_KIND_MAP] = ONNX_KIND_MAP_SEQUENCE},
        {[ONNX_KIND_TENSOR] = ONNX_KIND_OPTIONAL, [ONNX_KIND_SEQUENCE] = ONNX_KIND_OPTIONAL_SEQUENCE},
    };
    in.kind = around[type->kind == ONNX_TYPE_OPTIONAL][in.kind];
    return in.kind ? in : other;
}

amp_status onnx_set_type(OnnxSolver *s, int32_t node, int32_t v, OnnxValueType type) {
    const OnnxValue *value = &s->index->values[v];
    OnnxValueType stated = value->info ? onnx_type_stated(value->info->type) : (OnnxValueType){.kind = 0};
    s->out->types[v] = type;
    if (stated.kind == ONNX_KIND_UNKNOWN || type.kind == ONNX_KIND_UNKNOWN || onnx_type_equal(stated, type))
        return AMP_OK;
    if (node == ONNX_NONE)
        return amp_fail(s->err, AMP_BAD_FILE, "%s: '%s' is %s, but the graph says %s; correct one of them",
                        s->model->path, value->name, onnx_type_text(s, type), onnx_type_text(s, stated));
    return onnx_node_fail(s, AMP_BAD_FILE, node,
                          "its output '%s' is %s, but the graph says %s; correct the type that the graph says, or the "
                          "node's inputs and attributes",
                          value->name, onnx_type_text(s, type), onnx_type_text(s, stated));
}

/* ---- nodes with a schema ----------------------------------------------------------------------------------------- */

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
    return bits && !(bits & (bits - 1)) ? tensor_of(__builtin_ctz(bits)) : (OnnxValueType){.kind = ONNX_KIND_UNKNOWN};
}

/* Variables that no input has. */
static void bind_others(OnnxSolver *s, int32_t node, const OnnxSchema *schema, Bound *bound) {
    onnx_special_variables(s, node, schema, bound->type);
    for (int i = 0; i < schema->variables; i++) {
        const OnnxVariable *v = &schema->variable[i];
        OnnxValueType *is = &bound->type[i];
        const OnnxNode *n = s->index->nodes[node].node;
        if (is->kind == ONNX_KIND_UNKNOWN && v->attribute) *is = tensor_of(onnx_solver_int(s, n, v->attribute, 0));
        if (is->kind == ONNX_KIND_UNKNOWN) *is = tensor_of(v->default_dtype);
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
        *type = tensor_of(p->dtype);
        return AMP_OK;
    }
    const OnnxVariable *variable = &schema->variable[p->variable];
    *type = bound->type[p->variable];
    if (type->kind == ONNX_KIND_UNKNOWN) return AMP_OK;
    return onnx_type_in(*type, &variable->allowed)
               ? AMP_OK
               : refuse(s, node, schema, "its output", v, *type, &variable->allowed);
}

/* ---- results that no schema describes ---------------------------------------------------------------------------- */

static amp_status nothing_says(OnnxSolver *s, int32_t node, int32_t v) {
    const OnnxNode *n = s->index->nodes[node].node;
    int first = onnx_schema_first(&s->schemas, n->domain, n->op_type);
    const char *why = !first ? "ampc does not know this op"
                      : s->out->schemas[node]
                          ? "its attributes do not say the type"
                          : arena_printf(s->arena, "ampc knows it from opset %d on, which the model is not of", first);
    const char *name = s->index->values[v].name;
    return onnx_node_fail(s, AMP_UNSUPPORTED, node,
                          "nothing says the type of its output '%s': %s, and the graph has no value info of it; give "
                          "it by --assume %s=float32, or export the model with value infos",
                          name, why, name);
}

amp_status onnx_type_by_statement(OnnxSolver *s, int32_t node, int32_t v) {
    const OnnxValue *value = &s->index->values[v];
    OnnxValueType type = value->info ? onnx_type_stated(value->info->type) : (OnnxValueType){.kind = 0};
    if (type.kind == ONNX_KIND_UNKNOWN) {
        const OnnxAssumption *a = table_get(&s->assumed, value->name);
        if (!a) return nothing_says(s, node, v);
        type = tensor_of(a->dtype);
    }
    s->out->types[v] = type;
    return AMP_OK;
}

/* ---- nodes and graphs -------------------------------------------------------------------------------------------- */

int64_t onnx_opset_of(const OnnxSolver *s, const OnnxNode *n) {
    int64_t opset = s->call ? onnx_opset(&s->call->function->opsets, n->domain) : 0;
    return opset ? opset : onnx_opset(&s->model->opsets, n->domain);
}

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
            *type = tensor_of(((const OnnxAssumption *)table_get(&s->assumed, value->name))->dtype);
        if (type->kind == ONNX_KIND_UNKNOWN && !g->function)
            return amp_fail(s->err, AMP_UNSUPPORTED,
                            "%s: nothing says the type of the input '%s' of graph '%s'; give it by --assume %s=float32",
                            s->model->path, value->name, g->graph->name, value->name);
    }
    return AMP_OK;
}

amp_status onnx_solve_graph(OnnxSolver *s, int32_t graph) {
    const OnnxGraphEntry *g = &s->index->graphs[graph];
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
        OnnxValueType type = tensor_of(t->data_type);
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
