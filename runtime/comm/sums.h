/* sums.h: adding the parts that came from ranks, in the ranks' order. */
#ifndef AMP_RUNTIME_COMM_SUMS_H
#define AMP_RUNTIME_COMM_SUMS_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* f32, f64, f16, bf16 */
bool amp_sums_have(amp_dtype dtype);

/* In which order parts are added. */
typedef enum amp_sums_order {
    AMP_SUMS_LEFT, /* ((0 + 1) + 2) + 3 */
    AMP_SUMS_TREE  /* (0 + 1) + (2 + 3): of 2^k parts and more, the sum of the first 2^k and of the others */
} amp_sums_order;

/* out[i] = part 0 [i] + part 1 [i] + part 2 [i] + ..  Part r is |count| elements from r * |count| on.  f32 and f64 are
 * added in their own type, f16 and bf16 in f32 and rounded once, at the end.  |out| is outside of the parts. */
void amp_sums_add(amp_dtype dtype, amp_sums_order order, const void *parts, int32_t ranks, size_t count, void *out);

#ifdef __cplusplus
}
#endif
#endif
