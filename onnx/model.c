/* model.c: what is asked of nodes and models, and what is made for them (onnx.h). */
#include "base/protobuf.h"
#include "onnx/fields.h"

bool onnx_is_default_domain(const char *domain) { return !*domain || !strcmp(domain, "ai.onnx"); }

int64_t onnx_opset(const OnnxOpsets *opsets, const char *domain) {
    for (int i = 0; i < opsets->len; i++) {
        const OnnxOpset *o = &opsets->data[i];
        const bool both = onnx_is_default_domain(domain) && onnx_is_default_domain(o->domain);
        if (both || !strcmp(o->domain, domain)) return o->version;
    }
    return 0;
}

OnnxAttribute *onnx_attribute(const OnnxNode *node, const char *name) {
    for (int i = 0; i < node->attributes.len; i++)
        if (!strcmp(node->attributes.data[i].name, name)) return &node->attributes.data[i];
    return NULL;
}

int64_t onnx_attribute_int(const OnnxNode *node, const char *name, int64_t otherwise) {
    const OnnxAttribute *a = onnx_attribute(node, name);
    return a && a->type == ONNX_ATTR_INT && !*a->ref_name ? a->i : otherwise;
}

float onnx_attribute_float(const OnnxNode *node, const char *name, float otherwise) {
    const OnnxAttribute *a = onnx_attribute(node, name);
    return a && a->type == ONNX_ATTR_FLOAT && !*a->ref_name ? a->f : otherwise;
}

/* Bytes of the field at the start of |rest|, which was checked when it was read. */
static size_t field_size(OnnxBytes rest, uint64_t *number) {
    uint64_t tag, value = 0;
    size_t size = amp_varint_get(rest.data, rest.size, &tag);
    *number = tag >> 3;
    switch (tag & 7) {
    case AMP_WIRE_VARINT: return size + amp_varint_get(rest.data + size, rest.size - size, &value);
    case AMP_WIRE_64: return size + 8;
    case AMP_WIRE_32: return size + 4;
    default: size += amp_varint_get(rest.data + size, rest.size - size, &value); return size + (size_t)value;
    }
}

size_t onnx_rest_next(OnnxBytes rest, uint64_t *number) { return rest.size ? field_size(rest, number) : 0; }

bool onnx_rest_has(OnnxBytes rest, int field) {
    uint64_t number;
    for (size_t size; (size = onnx_rest_next(rest, &number)); rest.data += size, rest.size -= size)
        if (number == (uint64_t)field) return true;
    return false;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

OnnxNode onnx_node(Arena *arena, const char *op_type, const char *name) {
    return (OnnxNode){.name = arena_strdup(arena, name), .op_type = op_type, .domain = "", .overload = ""};
}

OnnxAttribute onnx_attribute_of_int(const char *name, int64_t value) {
    return (OnnxAttribute){.name = name, .ref_name = "", .type = ONNX_ATTR_INT, .i = value, .has = 1u << 3};
}

OnnxTensor onnx_tensor_of(Arena *arena, const char *name, int32_t dtype, const int64_t *dims, int rank,
                          const void *elements) {
    OnnxTensor t = {.name = name, .data_type = dtype};
    for (int i = 0; i < rank; i++) vec_push(arena, &t.dims, dims[i]);
    t.data = (OnnxData){.memory = elements, .field = ONNX_RAW_DATA, .type = dtype, .size = onnx_data_bytes(&t)};
    return t;
}

OnnxType *onnx_tensor_type(Arena *arena, int32_t dtype, OnnxShape *shape) {
    OnnxType *type = arena_new(arena, OnnxType);
    type->kind = ONNX_TYPE_TENSOR;
    type->tensor = arena_new(arena, OnnxTensorType);
    type->tensor->elem_type = dtype;
    type->tensor->shape = shape;
    return type;
}

void onnx_set_prop(Arena *arena, OnnxProps *props, const char *key, const char *value) {
    for (int i = 0; i < props->len; i++) {
        if (strcmp(props->data[i].key, key)) continue;
        props->data[i].value = value;
        return;
    }
    const OnnxProp prop = {.key = key, .value = value};
    vec_push(arena, props, prop);
}
