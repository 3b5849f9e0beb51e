/* fields.c: see fields.h.  Numbers are of onnx.proto (github.com/onnx/onnx, IR version 14). */
#include "onnx/fields.h"

#include <assert.h>

#define FIELD(NUMBER, NAME, KIND, STRUCT, MEMBER)                                                                      \
    { .number = (NUMBER), .name = (NAME), .kind = FIELD_##KIND, .at = offsetof(STRUCT, MEMBER) }
#define INNER(NUMBER, NAME, KIND, STRUCT, MEMBER, MESSAGE_OF)                                                          \
    {                                                                                                                  \
        .number = (NUMBER), .name = (NAME), .kind = FIELD_##KIND, .at = offsetof(STRUCT, MEMBER),                      \
        .message = &(MESSAGE_OF)                                                                                       \
    }
#define CHOICE(NUMBER, NAME, KIND, STRUCT, MEMBER, MESSAGE_OF)                                                         \
    {                                                                                                                  \
        .number = (NUMBER), .name = (NAME), .kind = FIELD_##KIND, .at = offsetof(STRUCT, MEMBER),                      \
        .message = (MESSAGE_OF), .choice = true                                                                        \
    }
#define MESSAGE_OF(NAME, STRUCT, FIELDS, HAS, CHOICE_AT, TITLE)                                                        \
    {                                                                                                                  \
        .name = (NAME), .fields = (FIELDS), .field_count = sizeof(FIELDS) / sizeof *(FIELDS), .size = sizeof(STRUCT),  \
        .rest = offsetof(STRUCT, rest), .has = (HAS), .choice = (CHOICE_AT), .title = (TITLE)                          \
    }
#define HAS(STRUCT) offsetof(STRUCT, has)

static const Message type_message;

static const Field prop_fields[] = {
    FIELD(1, "key", NAME, OnnxProp, key),
    FIELD(2, "value", NAME, OnnxProp, value),
};
static const Message prop_message =
    MESSAGE_OF("StringStringEntryProto", OnnxProp, prop_fields, HAS(OnnxProp), NOWHERE, offsetof(OnnxProp, key));

static const Field opset_fields[] = {
    FIELD(1, "domain", NAME, OnnxOpset, domain),
    FIELD(2, "version", INT64, OnnxOpset, version),
};
static const Message opset_message =
    MESSAGE_OF("OperatorSetIdProto", OnnxOpset, opset_fields, HAS(OnnxOpset), NOWHERE, offsetof(OnnxOpset, domain));

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static const Field tensor_fields[] = {
    FIELD(1, "dims", INTS, OnnxTensor, dims),
    FIELD(2, "data_type", INT32, OnnxTensor, data_type),
    FIELD(4, "float_data", DATA, OnnxTensor, data),
    FIELD(5, "int32_data", DATA, OnnxTensor, data),
    FIELD(6, "string_data", STRINGS, OnnxTensor, strings),
    FIELD(7, "int64_data", DATA, OnnxTensor, data),
    FIELD(8, "name", NAME, OnnxTensor, name),
    FIELD(9, "raw_data", DATA, OnnxTensor, data),
    FIELD(10, "double_data", DATA, OnnxTensor, data),
    FIELD(11, "uint64_data", DATA, OnnxTensor, data),
    INNER(13, "external_data", MESSAGES, OnnxTensor, external_data, prop_message),
    FIELD(14, "data_location", INT32, OnnxTensor, data_location),
    INNER(16, "metadata_props", MESSAGES, OnnxTensor, metadata, prop_message),
};
const Message onnx_tensor_message =
    MESSAGE_OF("TensorProto", OnnxTensor, tensor_fields, HAS(OnnxTensor), NOWHERE, offsetof(OnnxTensor, name));

static const Field sparse_fields[] = {
    INNER(1, "values", MESSAGE, OnnxSparseTensor, values, onnx_tensor_message),
    INNER(2, "indices", MESSAGE, OnnxSparseTensor, indices, onnx_tensor_message),
    FIELD(3, "dims", INTS, OnnxSparseTensor, dims),
};
static const Message sparse_message =
    MESSAGE_OF("SparseTensorProto", OnnxSparseTensor, sparse_fields, HAS(OnnxSparseTensor), NOWHERE, NOWHERE);

/* ---- types ------------------------------------------------------------------------------------------------------- */

static const Field dim_fields[] = {
    CHOICE(1, "dim_value", INT64, OnnxDim, value, NULL),
    CHOICE(2, "dim_param", NAME, OnnxDim, name, NULL),
};
const Message onnx_dim_message =
    MESSAGE_OF("Dimension", OnnxDim, dim_fields, NOWHERE, offsetof(OnnxDim, kind), NOWHERE);

static const Field shape_fields[] = {INNER(1, "dim", MESSAGES, OnnxShape, dims, onnx_dim_message)};
static const Message shape_message = MESSAGE_OF("TensorShapeProto", OnnxShape, shape_fields, NOWHERE, NOWHERE, NOWHERE);

static const Field tensor_type_fields[] = {
    FIELD(1, "elem_type", INT32, OnnxTensorType, elem_type),
    INNER(2, "shape", MESSAGE, OnnxTensorType, shape, shape_message),
};
static const Message tensor_type_message =
    MESSAGE_OF("Tensor", OnnxTensorType, tensor_type_fields, HAS(OnnxTensorType), NOWHERE, NOWHERE);

static const Field element_type_fields[] = {INNER(1, "elem_type", MESSAGE, OnnxElementType, type, type_message)};
static const Message element_type_message =
    MESSAGE_OF("Sequence", OnnxElementType, element_type_fields, HAS(OnnxElementType), NOWHERE, NOWHERE);

static const Field map_type_fields[] = {
    FIELD(1, "key_type", INT32, OnnxElementType, key_type),
    INNER(2, "value_type", MESSAGE, OnnxElementType, type, type_message),
};
static const Message map_type_message =
    MESSAGE_OF("Map", OnnxElementType, map_type_fields, HAS(OnnxElementType), NOWHERE, NOWHERE);

static const Message opaque_type_message = {.name = "Opaque",
                                            .size = sizeof(OnnxElementType),
                                            .rest = offsetof(OnnxElementType, rest),
                                            .has = NOWHERE,
                                            .choice = NOWHERE,
                                            .title = NOWHERE};

static const Field type_fields[] = {
    CHOICE(ONNX_TYPE_TENSOR, "tensor_type", MESSAGE, OnnxType, tensor, &tensor_type_message),
    CHOICE(ONNX_TYPE_SEQUENCE, "sequence_type", MESSAGE, OnnxType, element, &element_type_message),
    CHOICE(ONNX_TYPE_MAP, "map_type", MESSAGE, OnnxType, element, &map_type_message),
    CHOICE(ONNX_TYPE_OPAQUE, "opaque_type", MESSAGE, OnnxType, element, &opaque_type_message),
    CHOICE(ONNX_TYPE_SPARSE, "sparse_tensor_type", MESSAGE, OnnxType, tensor, &tensor_type_message),
    CHOICE(ONNX_TYPE_OPTIONAL, "optional_type", MESSAGE, OnnxType, element, &element_type_message),
};
static const Message type_message =
    MESSAGE_OF("TypeProto", OnnxType, type_fields, NOWHERE, offsetof(OnnxType, kind), NOWHERE);

static const Field value_info_fields[] = {
    FIELD(1, "name", NAME, OnnxValueInfo, name),
    INNER(2, "type", MESSAGE, OnnxValueInfo, type, type_message),
    INNER(4, "metadata_props", MESSAGES, OnnxValueInfo, metadata, prop_message),
};
static const Message value_info_message = MESSAGE_OF("ValueInfoProto", OnnxValueInfo, value_info_fields,
                                                     HAS(OnnxValueInfo), NOWHERE, offsetof(OnnxValueInfo, name));

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const Field attribute_fields[] = {
    FIELD(1, "name", NAME, OnnxAttribute, name),
    CHOICE(2, "f", FLOAT, OnnxAttribute, f, NULL),
    CHOICE(3, "i", INT64, OnnxAttribute, i, NULL),
    CHOICE(4, "s", BYTES, OnnxAttribute, s, NULL),
    CHOICE(5, "t", MESSAGE, OnnxAttribute, t, &onnx_tensor_message),
    CHOICE(6, "g", MESSAGE, OnnxAttribute, g, &onnx_graph_message),
    CHOICE(7, "floats", FLOATS, OnnxAttribute, floats, NULL),
    CHOICE(8, "ints", INTS, OnnxAttribute, ints, NULL),
    CHOICE(9, "strings", STRINGS, OnnxAttribute, strings, NULL),
    CHOICE(10, "tensors", MESSAGES, OnnxAttribute, tensors, &onnx_tensor_message),
    CHOICE(11, "graphs", MESSAGES, OnnxAttribute, graphs, &onnx_graph_message),
    CHOICE(14, "tp", MESSAGE, OnnxAttribute, tp, &type_message),
    CHOICE(15, "type_protos", MESSAGES, OnnxAttribute, types, &type_message),
    FIELD(20, "type", INT32, OnnxAttribute, type),
    FIELD(21, "ref_attr_name", NAME, OnnxAttribute, ref_name),
    CHOICE(22, "sparse_tensor", MESSAGE, OnnxAttribute, sparse, &sparse_message),
    CHOICE(23, "sparse_tensors", MESSAGES, OnnxAttribute, sparse_tensors, &sparse_message),
};
const Message onnx_attribute_message = MESSAGE_OF("AttributeProto", OnnxAttribute, attribute_fields, HAS(OnnxAttribute),
                                                  offsetof(OnnxAttribute, type), offsetof(OnnxAttribute, name));

static const Field node_fields[] = {
    FIELD(1, "input", NAMES, OnnxNode, inputs),
    FIELD(2, "output", NAMES, OnnxNode, outputs),
    FIELD(3, "name", NAME, OnnxNode, name),
    FIELD(4, "op_type", NAME, OnnxNode, op_type),
    INNER(5, "attribute", MESSAGES, OnnxNode, attributes, onnx_attribute_message),
    FIELD(7, "domain", NAME, OnnxNode, domain),
    FIELD(8, "overload", NAME, OnnxNode, overload),
    INNER(9, "metadata_props", MESSAGES, OnnxNode, metadata, prop_message),
};
const Message onnx_node_message =
    MESSAGE_OF("NodeProto", OnnxNode, node_fields, HAS(OnnxNode), NOWHERE, offsetof(OnnxNode, name));

/* ---- graphs and models ------------------------------------------------------------------------------------------- */

static const Field graph_fields[] = {
    INNER(1, "node", MESSAGES, OnnxGraph, nodes, onnx_node_message),
    FIELD(2, "name", NAME, OnnxGraph, name),
    INNER(5, "initializer", MESSAGES, OnnxGraph, initializers, onnx_tensor_message),
    INNER(11, "input", MESSAGES, OnnxGraph, inputs, value_info_message),
    INNER(12, "output", MESSAGES, OnnxGraph, outputs, value_info_message),
    INNER(13, "value_info", MESSAGES, OnnxGraph, value_infos, value_info_message),
    INNER(15, "sparse_initializer", MESSAGES, OnnxGraph, sparse_initializers, sparse_message),
    INNER(16, "metadata_props", MESSAGES, OnnxGraph, metadata, prop_message),
};
const Message onnx_graph_message = MESSAGE_OF("GraphProto", OnnxGraph, graph_fields, HAS(OnnxGraph), NOWHERE, NOWHERE);

static const Field function_fields[] = {
    FIELD(1, "name", NAME, OnnxFunction, name),
    FIELD(4, "input", NAMES, OnnxFunction, inputs),
    FIELD(5, "output", NAMES, OnnxFunction, outputs),
    FIELD(6, "attribute", NAMES, OnnxFunction, attributes),
    INNER(7, "node", MESSAGES, OnnxFunction, nodes, onnx_node_message),
    INNER(9, "opset_import", MESSAGES, OnnxFunction, opsets, opset_message),
    FIELD(10, "domain", NAME, OnnxFunction, domain),
    INNER(11, "attribute_proto", MESSAGES, OnnxFunction, defaults, onnx_attribute_message),
    INNER(12, "value_info", MESSAGES, OnnxFunction, value_infos, value_info_message),
    FIELD(13, "overload", NAME, OnnxFunction, overload),
    INNER(14, "metadata_props", MESSAGES, OnnxFunction, metadata, prop_message),
};
const Message onnx_function_message = MESSAGE_OF("FunctionProto", OnnxFunction, function_fields, HAS(OnnxFunction),
                                                 NOWHERE, offsetof(OnnxFunction, name));

static const Field model_fields[] = {
    FIELD(1, "ir_version", INT64, OnnxModel, ir_version),
    FIELD(2, "producer_name", NAME, OnnxModel, producer_name),
    FIELD(3, "producer_version", NAME, OnnxModel, producer_version),
    FIELD(4, "domain", NAME, OnnxModel, domain),
    FIELD(5, "model_version", INT64, OnnxModel, model_version),
    INNER(7, "graph", MESSAGE, OnnxModel, graph, onnx_graph_message),
    INNER(8, "opset_import", MESSAGES, OnnxModel, opsets, opset_message),
    INNER(14, "metadata_props", MESSAGES, OnnxModel, metadata, prop_message),
    INNER(25, "functions", MESSAGES, OnnxModel, functions, onnx_function_message),
};
const Message onnx_model_message = MESSAGE_OF("ModelProto", OnnxModel, model_fields, HAS(OnnxModel), NOWHERE, NOWHERE);

/* ---- questions --------------------------------------------------------------------------------------------------- */

static_assert(sizeof attribute_fields / sizeof *attribute_fields <= MOST_FIELDS, "room for the longest message");
static_assert(sizeof(AnyVec) == sizeof(OnnxInts), "one form of all VECs");

const Field *onnx_field(const Message *message, uint64_t number) {
    for (int i = 0; i < message->field_count && message->fields[i].number <= number; i++)
        if (message->fields[i].number == number) return &message->fields[i];
    return NULL;
}

int onnx_attribute_field(int32_t type) {
    static const uint8_t fields[] = {
        [ONNX_ATTR_FLOAT] = 2,          [ONNX_ATTR_INT] = 3,
        [ONNX_ATTR_STRING] = 4,         [ONNX_ATTR_TENSOR] = 5,
        [ONNX_ATTR_GRAPH] = 6,          [ONNX_ATTR_FLOATS] = 7,
        [ONNX_ATTR_INTS] = 8,           [ONNX_ATTR_STRINGS] = 9,
        [ONNX_ATTR_TENSORS] = 10,       [ONNX_ATTR_GRAPHS] = 11,
        [ONNX_ATTR_TYPE] = 14,          [ONNX_ATTR_TYPES] = 15,
        [ONNX_ATTR_SPARSE_TENSOR] = 22, [ONNX_ATTR_SPARSE_TENSORS] = 23,
    };
    return type >= 0 && type < (int)sizeof fields ? fields[type] : 0;
}

bool onnx_has_choice(const Message *type, const void *message, const Field *field) {
    int32_t choice;
    memcpy(&choice, onnx_field_at(message, type->choice), sizeof choice);
    return field->number == (type == &onnx_attribute_message ? onnx_attribute_field(choice) : choice);
}
