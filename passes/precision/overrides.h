/* overrides.h: the lines of a model's precision block that say more than the policy. */
#ifndef AMP_PASSES_PRECISION_OVERRIDES_H
#define AMP_PASSES_PRECISION_OVERRIDES_H

#include "passes/passes.h"
#include "passes/precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks every override against the policy and the function: known words, known ops, globs that match something.
 * false: errors. */
bool overrides_check(PassContext *c, const Policy *p, const Func *f);

/* The override that holds for |o| and its class, or NULL.  Path beats op; among equals the last wins. */
const Override *override_for(const Module *m, const Policy *p, const Op *o, PolicyClass *op_class);

#ifdef __cplusplus
}
#endif

#endif
