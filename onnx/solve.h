/* solve.h: what the parts of onnx_solve_types share. */
#ifndef AMP_ONNX_SOLVE_H
#define AMP_ONNX_SOLVE_H

#include "onnx/types.h"

/* A call of a local function, in whose body the solver is. */
typedef struct OnnxCall {
    const OnnxNode *node;
    const OnnxFunction *function;
    const struct OnnxCall *around;
    int depth;
} OnnxCall;

typedef struct OnnxSolver {
    const OnnxModel *model;
    const OnnxIndex *index;
    const OnnxTypeOptions *options;
    Arena *arena;
    OnnxSolution *out;
    amp_error *err;
    OnnxSchemas schemas;
    Table assumed; /* by name: OnnxAssumption */
    Table calls;   /* of functions, by what their results depend on: the types of the results */
    bool *called;  /* by graph, of the body of a function */
    bool *differs; /* by graph: calls of it have different types */
    int64_t work;  /* nodes in the bodies of functions, visited */
    const OnnxCall *call;
    Table rules, folds; /* of shapes, and of integers: OnnxRule by the op's name */
} OnnxSolver;

/* ---- solve.c --------------------------------------------------------------------------------------------------- */

/* The attribute of |node|, in a function's body what it refers to; NULL: none. */
const OnnxAttribute *onnx_solver_attribute(const OnnxSolver *s, const OnnxNode *node, const char *name);
int64_t onnx_solver_int(const OnnxSolver *s, const OnnxNode *node, const char *name, int64_t otherwise);
int64_t onnx_opset_of(const OnnxSolver *s, const OnnxNode *node); /* of its domain, for it; 0: not imported */
/* Fails with "FILE: node 12 'conv1' (Conv): ..". */
amp_status onnx_node_fail(const OnnxSolver *s, amp_status status, int32_t node, const char *format, ...)
    AMP_PRINTF(4, 5);
const char *onnx_type_text(const OnnxSolver *s, OnnxValueType type);
OnnxValueType onnx_tensor_of_dtype(int64_t dtype);    /* unknown if it is none */
OnnxValueType onnx_type_stated(const OnnxType *type); /* of a TypeProto; NULL: unknown */
/* Sets the type of value |v|, which |node| makes (or ONNX_NONE), and compares it with what the graph states. */
amp_status onnx_set_type(OnnxSolver *s, int32_t node, int32_t v, OnnxValueType type);
/* The same of an output whose type nothing but the graph or an assumption says. */
amp_status onnx_type_by_statement(OnnxSolver *s, int32_t node, int32_t v);

/* ---- types.c --------------------------------------------------------------------------------------------------- */

amp_status onnx_solve_graph(OnnxSolver *s, int32_t graph);

/* ---- types_special.c --------------------------------------------------------------------------------------------- */

/* Types of variables that an op's outputs have and its inputs have not, for the ops that need a function.  Leaves
 * unknown what it does not know. */
void onnx_special_variables(const OnnxSolver *s, int32_t node, const OnnxSchema *schema, OnnxValueType *bound);
/* Ops with graphs: the types of their results; *done: false if the op is none of these. */
amp_status onnx_type_graphs(OnnxSolver *s, int32_t node, bool *done);

/* ---- types_call.c ------------------------------------------------------------------------------------------------ */

amp_status onnx_type_call(OnnxSolver *s, int32_t node);

/* ---- types_groups.c ---------------------------------------------------------------------------------------------- */

void onnx_find_groups(OnnxSolver *s);

/* ---- shapes.c ---------------------------------------------------------------------------------------------------- */

void onnx_shapes_begin(OnnxSolver *s);                   /* rules, initializers */
void onnx_shapes_of_graph(OnnxSolver *s, int32_t graph); /* its inputs */
void onnx_shapes_of_node(OnnxSolver *s, int32_t node);   /* its outputs */

#endif
