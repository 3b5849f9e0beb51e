/* solve.c: messages, attributes, and types that the graph states. */
#include "onnx/solve.h"

#include <string.h>

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

OnnxValueType onnx_tensor_of_dtype(int64_t dtype) {
    bool known = dtype > 0 && dtype < ONNX_DTYPES;
    return (OnnxValueType){.kind = known ? ONNX_KIND_TENSOR : ONNX_KIND_UNKNOWN, .dtype = known ? (uint8_t)dtype : 0};
}

OnnxValueType onnx_type_stated(const OnnxType *type) {
    const OnnxValueType other = {.kind = ONNX_KIND_OTHER}, unknown = {.kind = ONNX_KIND_UNKNOWN};
    if (!type || type->kind == ONNX_TYPE_NONE) return unknown;
    if (type->kind == ONNX_TYPE_TENSOR) return onnx_tensor_of_dtype(type->tensor ? type->tensor->elem_type : 0);
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
        type = onnx_tensor_of_dtype(a->dtype);
    }
    s->out->types[v] = type;
    return AMP_OK;
}

int64_t onnx_opset_of(const OnnxSolver *s, const OnnxNode *n) {
    int64_t opset = s->call ? onnx_opset(&s->call->function->opsets, n->domain) : 0;
    return opset ? opset : onnx_opset(&s->model->opsets, n->domain);
}
