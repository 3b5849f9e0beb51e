/* policy_select.h: which policy a compilation uses. */
#ifndef AMP_PASSES_PRECISION_POLICY_SELECT_H
#define AMP_PASSES_PRECISION_POLICY_SELECT_H

#include "passes/passes.h"
#include "passes/precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the options, else from the model, else "fp32".  NULL: the errors are in the diagnostics.
 *   --policy P       a built-in policy's name or a file; with --precision X too, X must agree with its low type
 *   --precision X    fp16, bf16, tf32 or fp32: the word's default policy
 *   precision X {    the same, in the model; a string there is P */
const Policy *policy_select(PassContext *c);

#ifdef __cplusplus
}
#endif

#endif
