/* types.h: the type, and as far as it can be known the shape, of each value of a model; and which inputs and outputs of
 * a node must have one type, so that whoever lowers a node knows what goes with it.
 *
 *     OnnxSolution s;
 *     AMP_TRY(onnx_solve_types(&model, &index, &options, arena, &s, err));
 *
 * Types follow from graph inputs, initializers, constants and attributes through the schemas of ops.def, and are
 * checked against them.  A result of an op that no schema describes has the type that the graph states for it, else the
 * one of options->assumed, else it is an error that names the node.
 *
 * A group is a set of operands (OnnxIndex.operands: inputs and outputs of nodes and of graphs) that have one float
 * type, and can have another only together: a type variable of a node; what goes in and out of If, Loop and Scan with
 * the inputs and outputs of their graphs; a sequence with all that reads it.  Between a value's definition and an
 * operand that reads it a cast can be inserted, so these are of different groups, unless the value is a sequence or an
 * optional. */
#ifndef AMP_ONNX_TYPES_H
#define AMP_ONNX_TYPES_H

#include "onnx/onnx.h"
#include "onnx/schema.h"
#include "onnx/sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OnnxGroup {
    uint32_t allowed; /* bits 1u << OnnxDtype, of FLOAT, FLOAT16 and BFLOAT16: what every operand of it may be */
    uint8_t dtype;    /* what it is in the model: one of these three */
    const char
        *attribute;       /* states the type of a result, so it changes with it ("to", "dtype", "value", ..); or NULL */
    int32_t node;         /* of the group's first operand; ONNX_NONE: of a graph's input, or an initializer */
    const char *variable; /* the schema's name for it there, "T1"; "" */
} OnnxGroup;

/* Dimensions; rank -1: not even their number is known.  A value may share its dims with others. */
typedef struct OnnxValueShape {
    int32_t rank;
    const OnnxSize *dims;
} OnnxValueShape;

/* Elements of a small integer tensor that are known, as in arithmetic on shapes; NULL: not. */
typedef struct OnnxKnownInts {
    const OnnxSize *data;
    int32_t count;
} OnnxKnownInts;

typedef struct OnnxSolution {
    OnnxValueType *types;       /* by value; of the body of a function that calls differ in: ONNX_KIND_UNKNOWN */
    OnnxValueShape *shapes;     /* by value */
    OnnxKnownInts *ints;        /* by value */
    int32_t *value_groups;      /* by value: the group of its definition; ONNX_NONE: its type stays as it is */
    int32_t *operand_groups;    /* by number in index->operands: the group; ONNX_NONE: its type stays as it is */
    const OnnxSchema **schemas; /* by node; NULL: no schema: a local function, or an unknown op */
    OnnxGroup *groups;
    int32_t group_count;
    OnnxSizes sizes;
    int32_t stale_shapes; /* value_infos that say another shape than was inferred */
} OnnxSolution;

typedef struct OnnxAssumption {
    const char *name; /* of a value in any graph */
    int32_t dtype;
} OnnxAssumption;

typedef struct OnnxTypeOptions {
    const OnnxAssumption *assumed;
    int assumed_count;
    double typical; /* the size of a dimension that has only a name, where sizes are compared; 0: 32 */
} OnnxTypeOptions;

/* AMP_BAD_FILE: the types contradict each other or a schema; AMP_UNSUPPORTED: an opset older or newer than the table,
 * or a type that nothing says.  |options| may be NULL. */
amp_status onnx_solve_types(const OnnxModel *model, const OnnxIndex *index, const OnnxTypeOptions *options,
                            Arena *arena, OnnxSolution *solution, amp_error *err);

/* How many elements a value has if each name has its typical size; -1: unknown. */
double onnx_typical_elements(const OnnxSolution *s, int32_t value);
/* Over how many products or addends an element of the node's first output is summed (MatMul, Gemm, Conv, ReduceSum,
 * norms, ..), if each name has its typical size; 0: it isn't, or that is not known. */
double onnx_summed(const OnnxIndex *index, const OnnxSolution *s, int32_t node);
/* "float16[N, 3, 224]". */
const char *onnx_value_text(const OnnxSolution *s, Arena *arena, int32_t value);

#ifdef __cplusplus
}
#endif

#endif
