/* decide.h: autocast's decisions for an ONNX model: which nodes compute in the low type, why, and what is cast.
 *
 *     OnnxDecisions d;
 *     AMP_TRY(onnx_decide(&model, &index, &solution, &options, arena, &d, err));
 *
 * A policy decides by ops of ours; a table says which op a node is for it, and some nodes are one op together, such as
 * the nodes of a layer norm that is spelled out.  The result is a type for each group (types.h), from which all else
 * follows: a value is stored in the type of the group that defines it, an operand is read in its own group's, and where
 * these differ the value is cast, once for all its readers.  Nothing in the model is changed.
 */
#ifndef AMP_ONNX_DECIDE_H
#define AMP_ONNX_DECIDE_H

#include "onnx/types.h"
#include "precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OnnxMagnitude { /* of the elements of a value that are finite and not zero */
    double smallest, largest;  /* magnitudes; 0: there are none, or nothing is known */
} OnnxMagnitude;

typedef struct OnnxDecideOptions {
    const Policy *policy;
    bool keep_io;             /* inputs and outputs of the model keep their types */
    const char *const *keeps; /* ops ("Softmax") and globs of node names ("*layer.3*") that stay f32 */
    int keep_count;
    const OnnxMagnitude *ranges; /* by value; NULL: nothing is known */
    int64_t batch_hint;          /* what solution->sizes has as typical: for words alone */
} OnnxDecideOptions;

typedef enum OnnxFate {
    ONNX_AS_IS,  /* in the types that it has: no float, unknown, or bound to other nodes */
    ONNX_LOWER,  /* in the low type */
    ONNX_IN_F32, /* in f32 */
    ONNX_DROPPED /* a cast between float types: its readers read what it reads */
} OnnxFate;

typedef struct OnnxDecision { /* of a node */
    OnnxFate fate;
    int32_t pattern;         /* of OnnxDecisions.patterns; ONNX_NONE: it is decided alone */
    const char *op;          /* what it is for the policy: "conv2d"; of a pattern, the whole; NULL: nothing */
    Reason reason;           /* its rule is never NULL; ir_print_reason prints it */
    const char *policy_text; /* the policy's line, as written; NULL: none decided */
} OnnxDecision;

typedef struct OnnxPattern { /* nodes that are one op together */
    const char *op;          /* of ours: "layer_norm" */
    VEC(int32_t) nodes;      /* in order; the last one makes its result */
} OnnxPattern;

typedef struct OnnxCast {
    int32_t value;     /* that is cast; never the result of a dropped cast */
    uint8_t dtype;     /* to this one, from d.stored[value] */
    bool is_weight;    /* of an initializer: rounded now, not when the model runs */
    int32_t graph;     /* where: the value's */
    int32_t wanted_by; /* the first node that reads it; ONNX_NONE: an output */
} OnnxCast;

typedef struct OnnxDecisions {
    OnnxDecision *nodes; /* by node */
    VEC(OnnxPattern) patterns;
    uint8_t *groups;      /* by group: its OnnxDtype */
    uint8_t *stored;      /* by value: its OnnxDtype; of what is no tensor of floats, as OnnxSolution.types has it */
    int32_t *sources;     /* by value: itself, or the value that its readers read instead, across dropped casts */
    uint8_t *reads;       /* by number in index->operands: the OnnxDtype in which a node or a graph's
                         output reads its source; 0: as stored */
    VEC(OnnxCast) casts;  /* each pair of value and type once, by value */
    int32_t lowered, f32; /* nodes */
} OnnxDecisions;

/* AMP_UNSUPPORTED: the policy's low type is none of ONNX; AMP_INVALID_ARGUMENT: it bans an op, or a keep matches
 * nothing.  Time and memory are linear in the model, but for the cut of `min_cut`. */
amp_status onnx_decide(const OnnxModel *model, const OnnxIndex *index, const OnnxSolution *solution,
                       const OnnxDecideOptions *options, Arena *arena, OnnxDecisions *decisions, amp_error *err);

/* "range: weight conv1.weight has 7.1e4 > 65504": why |value| does not fit |dtype|; NULL: it does, or nothing is known
 * of it. */
const char *onnx_range_fault(Arena *arena, const OnnxValue *value, OnnxMagnitude range, int32_t dtype);

#ifdef __cplusplus
}
#endif

#endif
