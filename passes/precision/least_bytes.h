/* least_bytes.h: the algorithm `min_cut`: which ops of class `follow` run in the low type, and which in f32, so that a
 * training step moves the fewest bytes.
 *
 * The other classes are fixed, as are parameters and inputs.  docs/policies.md, "What `min_cut` does", has the prices.
 */
#ifndef AMP_PASSES_PRECISION_LEAST_BYTES_H
#define AMP_PASSES_PRECISION_LEAST_BYTES_H

#include "ir/ir.h"
#include "passes/precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LeastBytes { /* of an op that the algorithm decides */
    bool is_decided;        /* by it: else the op goes by its class alone */
    bool is_f32;
    bool is_forced;      /* f32 because an operand is, whatever that costs */
    double other_bytes;  /* how many more a step would move, were this op alone of the other type */
    int64_t other_casts; /* how many more casts it would have */
} LeastBytes;

/* By op id.  |classes|: the class of each op, by op id.  |n|: the batch for which bytes are counted. */
LeastBytes *least_bytes(const Func *f, const PolicyClass *classes, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
