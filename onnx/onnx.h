/* onnx.h: an ONNX model in memory: as the messages of onnx.proto have it, and as numbered values.
 *
 *     OnnxModel model = {0};
 *     if (setjmp(arena.out_of_memory)) { onnx_close(&model); arena_free(&arena); return ...; }
 *     AMP_TRY(onnx_read("model.onnx", &arena, &model, err));
 *     AMP_TRY(onnx_index(&model, &arena, &index, err));           numbers for nodes and values, checked
 *     ...                                                          change nodes, attributes, tensors, types
 *     AMP_TRY(onnx_write(&model, "out.onnx", &options, err));
 *     onnx_close(&model);                                          the files; all else is in the arena
 *
 * The structs are the messages, field by field.  Fields that nothing here needs (documentation, training, fields of
 * later versions, ...) are in `rest`, as the bytes that they had, and are written again.  Names are NUL-terminated and
 * never NULL in what was read: "" where the file has none.  `has` has bit N if field N was there: a zero or an empty
 * name that was written is written again.  What is not zero is written in any case, so `has` is needed for zeros only.
 *
 * Elements of large tensors stay in their files and are read by pieces (onnx_data_each).
 */
#ifndef AMP_ONNX_ONNX_H
#define AMP_ONNX_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element types (TensorProto.DataType) ------------------------------------------------------------------------ */

typedef enum OnnxDtype {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_COMPLEX64 = 14,
    ONNX_COMPLEX128 = 15,
    ONNX_BFLOAT16 = 16,
    ONNX_FLOAT8E4M3FN = 17,
    ONNX_FLOAT8E4M3FNUZ = 18,
    ONNX_FLOAT8E5M2 = 19,
    ONNX_FLOAT8E5M2FNUZ = 20,
    ONNX_UINT4 = 21,
    ONNX_INT4 = 22,
    ONNX_FLOAT4E2M1 = 23,
    ONNX_FLOAT8E8M0 = 24,
    ONNX_UINT2 = 25,
    ONNX_INT2 = 26,
    ONNX_FLOAT6E2M3 = 27,
    ONNX_FLOAT6E3M2 = 28,
    ONNX_DTYPES /* their number, and less than any that a later version adds */
} OnnxDtype;

const char *onnx_dtype_name(int32_t dtype); /* "float16"; "type 31" is "unknown" */
int onnx_dtype_named(const char *name);     /* -1: none */
int onnx_dtype_bits(int32_t dtype);         /* of an element as raw data; 0: string, undefined and unknown */

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

typedef struct OnnxBytes {
    const uint8_t *data;
    size_t size;
} OnnxBytes;

typedef VEC(const char *) OnnxNames;
typedef VEC(int64_t) OnnxInts;
typedef VEC(float) OnnxFloats;
typedef VEC(OnnxBytes) OnnxStrings;

typedef struct OnnxProp { /* StringStringEntryProto */
    const char *key, *value;
    OnnxBytes rest;
    uint32_t has;
} OnnxProp;
typedef VEC(OnnxProp) OnnxProps;

typedef struct OnnxOpset { /* OperatorSetIdProto */
    const char *domain;    /* "": ai.onnx */
    int64_t version;
    OnnxBytes rest;
    uint32_t has;
} OnnxOpset;
typedef VEC(OnnxOpset) OnnxOpsets;

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The field of TensorProto that has the elements. */
typedef enum OnnxDataField {
    ONNX_NO_DATA = 0,
    ONNX_FLOAT_DATA = 4,
    ONNX_INT32_DATA = 5,
    ONNX_STRING_DATA = 6,
    ONNX_INT64_DATA = 7,
    ONNX_RAW_DATA = 9,
    ONNX_DOUBLE_DATA = 10,
    ONNX_UINT64_DATA = 11,
    ONNX_EXTERNAL_DATA = 13
} OnnxDataField;

typedef struct OnnxData {
    const uint8_t *memory; /* NULL: in a file */
    uint64_t at, size;     /* bytes: of the model's file, or of the external one */
    uint64_t numbers;      /* of them, if they are varints */
    const char *location;  /* of the external file, beside the model; NULL: the model's own */
    uint8_t field;         /* OnnxDataField: how elements are stored there */
    int32_t type;          /* OnnxDtype of what is stored there: data_type, until that is changed */
} OnnxData;

/* To convert a tensor, change data_type alone: elements are converted from data.type as they are written.  Only from
 * and to FLOAT, FLOAT16, BFLOAT16 and DOUBLE.  Several tensors may have the same data. */
typedef struct OnnxTensor {
    const char *name;
    OnnxInts dims; /* none is negative, and their product has no overflow */
    OnnxData data;
    OnnxStrings strings; /* of ONNX_STRING */
    OnnxProps external_data, metadata;
    OnnxBytes rest;
    int32_t data_type, data_location; /* of location 1, what external_data says is in |data| */
    uint32_t has;
} OnnxTensor;
typedef VEC(OnnxTensor) OnnxTensors;

typedef struct OnnxSparseTensor {
    OnnxTensor *values, *indices; /* its name is values->name */
    OnnxInts dims;
    OnnxBytes rest;
    uint32_t has;
} OnnxSparseTensor;
typedef VEC(OnnxSparseTensor) OnnxSparseTensors;

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef enum OnnxDimKind { ONNX_DIM_UNKNOWN = 0, ONNX_DIM_VALUE = 1, ONNX_DIM_NAME = 2 } OnnxDimKind;

typedef struct OnnxDim {
    OnnxDimKind kind;
    int64_t value;
    const char *name;
    OnnxBytes rest;
} OnnxDim;

typedef struct OnnxShape {
    VEC(OnnxDim) dims;
    OnnxBytes rest;
} OnnxShape;

typedef struct OnnxType OnnxType;

typedef struct OnnxTensorType { /* also of sparse tensors */
    OnnxShape *shape;           /* NULL: not even the rank is known */
    OnnxBytes rest;
    int32_t elem_type;
    uint32_t has;
} OnnxTensorType;

typedef struct OnnxElementType { /* of a sequence, an optional, and the values of a map */
    OnnxType *type;              /* NULL: not given */
    OnnxBytes rest;
    int32_t key_type; /* of a map */
    uint32_t has;
} OnnxElementType;

typedef enum OnnxTypeKind {
    ONNX_TYPE_NONE = 0,
    ONNX_TYPE_TENSOR = 1,
    ONNX_TYPE_SEQUENCE = 4,
    ONNX_TYPE_MAP = 5,
    ONNX_TYPE_OPAQUE = 7,
    ONNX_TYPE_SPARSE = 8,
    ONNX_TYPE_OPTIONAL = 9
} OnnxTypeKind;

struct OnnxType { /* TypeProto; an opaque type and the denotation are in rest */
    OnnxTypeKind kind;
    union {
        OnnxTensorType *tensor;   /* TENSOR, SPARSE */
        OnnxElementType *element; /* SEQUENCE, OPTIONAL, MAP */
    };
    OnnxBytes rest;
};
typedef VEC(OnnxType) OnnxTypes;

typedef struct OnnxValueInfo {
    const char *name;
    OnnxType *type; /* NULL: not given */
    OnnxProps metadata;
    OnnxBytes rest;
    uint32_t has;
} OnnxValueInfo;
typedef VEC(OnnxValueInfo) OnnxValueInfos;

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

typedef struct OnnxGraph OnnxGraph;
typedef VEC(OnnxGraph) OnnxGraphs;

/* Numbers of AttributeProto.AttributeType; `type` of what was read is never UNDEFINED unless it has no value. */
typedef enum OnnxAttributeType {
    ONNX_ATTR_UNDEFINED = 0,
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT = 2,
    ONNX_ATTR_STRING = 3,
    ONNX_ATTR_TENSOR = 4,
    ONNX_ATTR_GRAPH = 5,
    ONNX_ATTR_FLOATS = 6,
    ONNX_ATTR_INTS = 7,
    ONNX_ATTR_STRINGS = 8,
    ONNX_ATTR_TENSORS = 9,
    ONNX_ATTR_GRAPHS = 10,
    ONNX_ATTR_SPARSE_TENSOR = 11,
    ONNX_ATTR_SPARSE_TENSORS = 12,
    ONNX_ATTR_TYPE = 13,
    ONNX_ATTR_TYPES = 14
} OnnxAttributeType;

typedef struct OnnxAttribute {
    const char *name;
    const char *ref_name; /* not "": the value comes from this attribute of the function around */
    union {               /* as `type` says; zeroed if the file has no value */
        float f;
        int64_t i;
        OnnxBytes s;
        OnnxTensor *t;
        OnnxGraph *g;
        OnnxSparseTensor *sparse;
        OnnxType *tp;
        OnnxFloats floats;
        OnnxInts ints;
        OnnxStrings strings;
        OnnxTensors tensors;
        OnnxGraphs graphs;
        OnnxSparseTensors sparse_tensors;
        OnnxTypes types;
    };
    OnnxBytes rest;
    int32_t type; /* OnnxAttributeType */
    uint32_t has;
} OnnxAttribute;
typedef VEC(OnnxAttribute) OnnxAttributes;

typedef struct OnnxNode {
    const char *name, *op_type, *domain, *overload;
    OnnxNames inputs, outputs; /* "": an optional one that is left out */
    OnnxAttributes attributes;
    OnnxProps metadata; /* IR version 10 on */
    OnnxBytes rest;
    uint32_t has;
} OnnxNode;
typedef VEC(OnnxNode) OnnxNodes;

/* ---- graphs and models ------------------------------------------------------------------------------------------- */

struct OnnxGraph {
    const char *name;
    OnnxNodes nodes;
    OnnxTensors initializers;
    OnnxSparseTensors sparse_initializers;
    OnnxValueInfos inputs, outputs, value_infos;
    OnnxProps metadata;
    OnnxBytes rest; /* quantization annotations, too */
    uint32_t has;
};

typedef struct OnnxFunction {
    const char *name, *domain, *overload;
    OnnxNames inputs, outputs, attributes; /* of these, calls must give a value */
    OnnxAttributes defaults;               /* the other attributes */
    OnnxNodes nodes;
    OnnxOpsets opsets;
    OnnxValueInfos value_infos;
    OnnxProps metadata;
    OnnxBytes rest;
    uint32_t has;
} OnnxFunction;
typedef VEC(OnnxFunction) OnnxFunctions;

typedef struct OnnxFiles OnnxFiles;

typedef struct OnnxModel {
    int64_t ir_version, model_version;
    const char *producer_name, *producer_version, *domain;
    OnnxGraph *graph; /* never NULL in what was read */
    OnnxOpsets opsets;
    OnnxFunctions functions;
    OnnxProps metadata;
    OnnxBytes rest;
    uint32_t has;
    OnnxFiles *files; /* that are open, for data */
    const char *path; /* for messages */
} OnnxModel;

/* |model| must be zeroed.  AMP_BAD_FILE, AMP_NOT_FOUND, AMP_IO; it must be closed in any case, also after the arena's
 * jump.  External data is checked, and not read.  |path| and |bytes| are used until then. */
amp_status onnx_read(const char *path, Arena *arena, OnnxModel *model, amp_error *err);
/* The same of bytes in memory; external data is beside |path|. */
amp_status onnx_read_memory(const void *bytes, size_t size, const char *path, Arena *arena, OnnxModel *model,
                            amp_error *err);
void onnx_close(OnnxModel *model); /* a zeroed one, and twice, too */

typedef enum OnnxExternal { ONNX_EXTERNAL_AUTO, ONNX_EXTERNAL_ALWAYS, ONNX_EXTERNAL_NEVER } OnnxExternal;

typedef struct OnnxWriteOptions {
    bool force;            /* an existing file is replaced */
    OnnxExternal external; /* AUTO: if the model had external data, or would have more than 2 GB */
} OnnxWriteOptions;

/* Writes |path|, and its external data into |path|.data.  Neither is ever there in part, and the model's own files may
 * be replaced, too. */
amp_status onnx_write(const OnnxModel *model, const char *path, const OnnxWriteOptions *options, amp_error *err);

/* ---- questions --------------------------------------------------------------------------------------------------- */

int64_t onnx_opset(const OnnxOpsets *opsets, const char *domain);      /* 0: not imported; "ai.onnx" is "" */
bool onnx_is_default_domain(const char *domain);                       /* "" or "ai.onnx" */
OnnxAttribute *onnx_attribute(const OnnxNode *node, const char *name); /* NULL: none */
int64_t onnx_attribute_int(const OnnxNode *node, const char *name, int64_t otherwise);
float onnx_attribute_float(const OnnxNode *node, const char *name, float otherwise);
uint64_t onnx_elements(const OnnxTensor *tensor);
uint64_t onnx_data_bytes(const OnnxTensor *tensor); /* as raw data in data_type */
bool onnx_rest_has(OnnxBytes rest, int field);

/* Elements as raw data, in data.type, by pieces of at most 16 KiB and whole elements (of 4 bits: bytes). */
typedef amp_status OnnxDataPiece(void *user, const void *elements, size_t bytes, amp_error *err);
amp_status onnx_data_each(const OnnxModel *model, const OnnxTensor *tensor, OnnxDataPiece *piece, void *user,
                          amp_error *err);
/* All elements of a tensor of at most |most|, of any integer type or bool, or any float type: AMP_INVALID_ARGUMENT for
 * others and more. */
amp_status onnx_data_ints(const OnnxModel *model, const OnnxTensor *tensor, int64_t *to, uint64_t most, amp_error *err);
amp_status onnx_data_doubles(const OnnxModel *model, const OnnxTensor *tensor, double *to, uint64_t most,
                             amp_error *err);

/* ---- making what is written -------------------------------------------------------------------------------------- */

OnnxNode onnx_node(Arena *arena, const char *op_type, const char *name); /* of the default domain; nothing else */
OnnxAttribute onnx_attribute_of_int(const char *name, int64_t value);
OnnxTensor onnx_tensor_of(Arena *arena, const char *name, int32_t dtype, const int64_t *dims, int rank,
                          const void *elements); /* which are not copied; dims are */
OnnxType *onnx_tensor_type(Arena *arena, int32_t dtype, OnnxShape *shape);
void onnx_set_prop(Arena *arena, OnnxProps *props, const char *key, const char *value);

/* ---- the index: nodes and values by numbers ---------------------------------------------------------------------- */

/* One for a model: its graph, all subgraphs and all functions.  Numbers of graphs, nodes and values are of the whole
 * model; nodes of one graph follow each other, in their order.  An inner graph sees the values of those around it, and
 * a name inside hides one outside.  Arrays are of the index's arena and hold until the model changes. */

enum { ONNX_NONE = -1 };

typedef struct OnnxGraphEntry {
    OnnxGraph *graph;       /* NULL: the body of a function */
    OnnxFunction *function; /* NULL: none around */
    OnnxNodes *nodes;       /* of either */
    int32_t parent;         /* graph around; ONNX_NONE */
    int32_t parent_node;    /* whose attribute it is; ONNX_NONE */
    int32_t first_node;     /* node number = first_node + position; nodes->len of them */
    int32_t first_input;    /* of operands: values of graph->inputs or function->inputs */
    int32_t first_output;   /* the same of outputs */
    int32_t input_count, output_count;
    int32_t depth; /* 0: of the model or a function */
} OnnxGraphEntry;

typedef struct OnnxNodeEntry {
    OnnxNode *node;
    int32_t graph;
    int32_t first_input;  /* of operands: node->inputs.len of them, ONNX_NONE for those left out */
    int32_t first_output; /* the same of outputs */
    int32_t first_graph;  /* its attributes, graph_count graphs in a row */
    int32_t graph_count;
    int32_t function; /* of model->functions, which it calls; ONNX_NONE */
} OnnxNodeEntry;

typedef struct OnnxUse {
    int32_t node;  /* ONNX_NONE: an output of a graph */
    int32_t input; /* its position; of a graph's output, the graph */
} OnnxUse;

typedef struct OnnxValue {
    const char *name;
    int32_t graph;
    int32_t producer;        /* node; ONNX_NONE: an input or an initializer */
    int32_t output;          /* its position of the producer's outputs, or of the graph's inputs; else ONNX_NONE */
    int32_t first_use, uses; /* of index->uses; uses in inner graphs, too */
    OnnxTensor *initializer; /* NULL: none; an input with one has it as its default */
    OnnxSparseTensor *sparse;
    OnnxValueInfo *info; /* of graph->inputs, outputs or value_infos; NULL: none */
    bool is_input, is_output;
} OnnxValue;

typedef struct OnnxIndex {
    OnnxGraphEntry *graphs; /* 0: the model's; 1 + N: the body of function N; then the others, each after its parent */
    OnnxNodeEntry *nodes;
    OnnxValue *values;
    OnnxUse *uses;
    int32_t *operands; /* values */
    int32_t graph_count, node_count, value_count, use_count, operand_count;
    int32_t *slots; /* by a hash of graph and name: values */
    uint64_t seed;
    uint32_t slot_count;
} OnnxIndex;

/* Checks what makes a graph one: names defined once and before their use, no cycle, also of functions, known outputs.
 * AMP_BAD_FILE. */
amp_status onnx_index(const OnnxModel *model, Arena *arena, OnnxIndex *index, amp_error *err);
/* The value that |name| means in |graph|; ONNX_NONE.  Linear in depth. */
int32_t onnx_find(const OnnxIndex *index, int32_t graph, const char *name);
/* "node 12 'conv1' (Conv)", with what is around it, for messages. */
const char *onnx_node_text(const OnnxIndex *index, Arena *arena, int32_t node);

#ifdef __cplusplus
}
#endif

#endif
