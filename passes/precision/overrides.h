/* overrides.h: the lines of a model's precision block, which overrule the policy for some ops. */
#ifndef AMP_PASSES_PRECISION_OVERRIDES_H
#define AMP_PASSES_PRECISION_OVERRIDES_H

#include "passes/passes.h"
#include "passes/precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The override that applies to |o|, with its class, or NULL.  A path beats an op name; among equals the last wins. */
const Override *override_for(const Module *m, const Policy *p, const Op *o, PolicyClass *op_class);

/* Checks every override against the policy and the function: known words, known ops, globs that match an op.
 * false: errors are in the diagnostics. */
bool overrides_check(PassContext *c, const Policy *p, const Func *f);

#ifdef __cplusplus
}
#endif

#endif
