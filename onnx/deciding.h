/* deciding.h: what the files of onnx/decide.h share. */
#ifndef AMP_ONNX_DECIDING_H
#define AMP_ONNX_DECIDING_H

#include "onnx/decide.h"
#include "precision/least_bytes.h"
#include "precision/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- policy_names.c ---------------------------------------------------------------------------------------------- */

typedef struct OnnxRow { /* of policy_names.def */
    const char *op, *names, *traits;
} OnnxRow;

typedef struct OnnxNamed { /* what some names are to a policy */
    const char *name;
    const PolicyLine *line;
    Opcode code; /* of the language: the last of the names; OP_NONE: it has none */
} OnnxNamed;

/* NULL: the table has no such op. */
const OnnxRow *onnx_row(const char *op);
bool onnx_has_trait(const OnnxRow *row, char trait); /* |row| may be NULL */
/* |dims|: what # means. */
OnnxNamed onnx_named(Arena *a, const Policy *p, const char *names, int dims);

/* ---- decide.c ---------------------------------------------------------------------------------------------------- */

typedef struct OnnxUnit { /* a node, or the nodes of a pattern: what is decided at once */
    OnnxNamed named;
    PolicyClass op_class;
    bool is_decided;     /* else it stays as it is */
    const char *because; /* what overrules the policy; NULL: nothing */
} OnnxUnit;

typedef struct OnnxRead {         /* of a unit */
    int32_t operand, node, value; /* the value is no result of a dropped cast */
    bool is_castable;             /* as Operand says */
} OnnxRead;
typedef VEC(OnnxRead) OnnxReads;

/* How a group gets its type. */
typedef enum OnnxGroupState {
    GROUP_KEPT,    /* as in the model */
    GROUP_SHARED,  /* the same, because several nodes have it */
    GROUP_DECIDED, /* with its node */
    GROUP_STORED   /* as the values that it reads */
} OnnxGroupState;

typedef struct OnnxDeciding {
    const OnnxModel *model;
    const OnnxIndex *index;
    const OnnxSolution *solution;
    const OnnxDecideOptions *options;
    Arena *arena;
    OnnxDecisions *out;
    amp_error *err;
    OnnxDtype low;
    const OnnxRow **rows;  /* by node; NULL: it stays as it is */
    OnnxUnit *units;       /* by node; of a pattern, its last */
    uint8_t *states;       /* by group: OnnxGroupState */
    Table named;           /* to OnnxNamed, by names */
    bool *is_weight;       /* by value: an initializer, a constant, or moved elements of one */
    OnnxReads reads;       /* of the unit at hand */
    VEC(Operand) operands; /* the same, as precision/types.h sees them */
} OnnxDeciding;

Dtype onnx_to_dtype(int32_t dtype); /* AMP_DT_NONE: none of f32, f16 and bf16 */
OnnxDtype onnx_from_dtype(Dtype dtype);
bool onnx_is_float_value(const OnnxDeciding *d, int32_t value); /* a tensor of these */
/* The type that a value has by now. */
OnnxDtype onnx_stored(const OnnxDeciding *d, int32_t value);
bool onnx_has_dims(const OnnxDeciding *d, int32_t value);
/* A number of the model. */
bool onnx_is_weak(const OnnxDeciding *d, int32_t value);
/* Input |k| of a node, across dropped casts; ONNX_NONE: it is left out. */
int32_t onnx_source_of(const OnnxDeciding *d, int32_t node, int k);
int32_t onnx_result_of(const OnnxDeciding *d, int32_t node, int k);
/* The group of a node's results, or else of its operands; ONNX_NONE: it has none. */
int32_t onnx_main_group(const OnnxDeciding *d, int32_t node);
/* What names are to the policy; looked up once. */
const OnnxNamed *onnx_name_of(OnnxDeciding *d, const char *names, int dims);
/* The nodes that are decided with |node|, which is the last of them. */
const int32_t *onnx_members(const OnnxDeciding *d, const int32_t *node, int *count);
/* Fills d->reads. */
void onnx_collect_reads(OnnxDeciding *d, int32_t node);
/* Gives the unit's groups their type. */
void onnx_give_type(OnnxDeciding *d, int32_t node, OnnxDtype dtype);

/* By the types that its inputs have by now, if the unit is of a class; d->reads are its own then. */
OpTypes onnx_types_of(OnnxDeciding *d, int32_t node, PolicyClass op_class);
/* Reasons name what made the unit's read number |read|; -1: none. */
void onnx_follow(OnnxDeciding *d, int32_t node, int read);
/* As `eager` does. */
void onnx_decide_by_class(OnnxDeciding *d, int32_t node);

/* ---- patterns.c -------------------------------------------------------------------------------------------------- */

/* Fills out->patterns and the `pattern` of nodes. */
void onnx_find_patterns(OnnxDeciding *d);

/* ---- decide_graph.c: the algorithms that see all nodes at once --------------------------------------------------- */

void onnx_decide_by_bytes(OnnxDeciding *d);
void onnx_decide_by_paint(OnnxDeciding *d);

/* ---- casts.c ----------------------------------------------------------------------------------------------------- */

/* Gives weights, constants, inputs and outputs the types that their readers want, and lists the casts. */
void onnx_place_casts(OnnxDeciding *d);

#ifdef __cplusplus
}
#endif

#endif
