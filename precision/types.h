/* types.h: the dtypes in which an op of a class runs, from the dtypes of its operands.  It knows no graph: ops of ours
 * and nodes of ONNX give their operands as an array. */
#ifndef AMP_PRECISION_TYPES_H
#define AMP_PRECISION_TYPES_H

#include "precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Operand {
    Dtype dtype;
    bool is_castable; /* it takes part in the choice: a float whose elements the op reads in any float type */
    bool has_dims;    /* it is of no rank 0 */
} Operand;

/* NONE: operands are read as they are. */
typedef struct OpTypes {
    Dtype read;    /* float operands */
    Dtype factors; /* of a product */
    Dtype out;
    int forced_by; /* the operand that decided; -1: none did */
} OpTypes;

/* Of a class that gives dtypes, of any algorithm but `paint`.  |factors|: how many leading operands are a
 * product's. */
OpTypes op_types(PolicyClass op_class, Dtype low, const Operand *operands, int count, int factors);

#ifdef __cplusplus
}
#endif

#endif
