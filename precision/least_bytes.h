/* least_bytes.h: the algorithm `min_cut`: which ops of class `follow` run in the low type, and which in f32, so that a
 * step moves the fewest bytes.
 *
 * It decides over a graph of values and ops, which knows neither the IR nor ONNX: both make one of theirs.  The other
 * classes are fixed, as is what no op makes.  docs/policies.md, "What `min_cut` does", has the prices.
 */
#ifndef AMP_PRECISION_LEAST_BYTES_H
#define AMP_PRECISION_LEAST_BYTES_H

#include "precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct BytesValue {
    double elements; /* of what is not weighed, too */
    int maker;       /* the op; -1: an input or a parameter */
    bool is_float, is_f32;
    bool is_weak;   /* a number of the model: stays f32, is never stored */
    bool is_given;  /* by the caller: of any size */
    bool is_weight; /* stored before a step in each type that a reader wants: no kernel converts it */
    bool is_result; /* of the graph */
    bool is_aside;  /* only metrics and updates of buffers need it */
    bool has_grad;  /* it depends on a parameter, and the model is trained */
    bool has_dims;  /* it is of no rank 0 */
} BytesValue;

typedef struct BytesRead { /* of a float whose elements an op reads */
    int value;
    bool is_castable; /* as Operand says */
    bool same_shape;  /* the value has the shape of the op's first result */
} BytesRead;

typedef struct BytesOp {
    PolicyClass op_class;
    bool is_constant, is_cast; /* is left as it is */
    bool is_view;              /* its result is its operand's memory */
    bool reads_own_type;       /* it reads its operands from memory in its own type; all others convert as they load */
    bool forgets_operands;     /* its gradient needs no operand of its own */
    bool bounds_result;        /* its result is small whatever it reads */
    bool is_elementwise;
    VEC(BytesRead) reads; /* in the order of its operands */
    VEC(int) outs;        /* its results; the first is of the op's type */
} BytesOp;

/* Of an op of ours, without reads and results (bytes_op.c). */
BytesOp bytes_op(Opcode code, PolicyClass op_class);

typedef struct BytesGraph {
    BytesValue *values;
    BytesOp *ops; /* makers come before readers */
    int value_count, op_count;
} BytesGraph;

typedef struct LeastBytes { /* of an op that the algorithm decides */
    bool is_decided;        /* by it: else the op goes by its class alone */
    bool is_f32;
    bool is_forced;      /* f32 because an operand is, whatever that costs */
    double other_bytes;  /* how many more a step would move, were this op alone of the other type */
    int64_t other_casts; /* how many more casts it would have */
} LeastBytes;

/* By op, in |a|. */
LeastBytes *least_bytes(Arena *a, const BytesGraph *g);

/* What the other type would cost, in the words of a reason.  |n|, |t|: for which bytes were counted; |t| 0: none. */
const char *least_bytes_because(Arena *a, const LeastBytes *b, Dtype low, int64_t n, int64_t t);

/* ---- any_size.c: which ops `min_cut` leaves in f32 because what they read may be of any size --------------------- */

/* By op: of class `follow`, `widest` or `first`, and f32 for that reason. */
bool *any_size_find(Arena *a, const BytesGraph *g);

#ifdef __cplusplus
}
#endif

#endif
