/* casting.h: giving one op its dtype: the choice that policy and overrides make, the casts of its operands, the dtypes
 * of its results, and the reasons of all of these (casting.c).  The algorithms say which dtypes. */
#ifndef AMP_PASSES_PRECISION_CASTING_H
#define AMP_PASSES_PRECISION_CASTING_H

#include "base/dtypes.h"
#include "passes/passes.h"
#include "precision/least_bytes.h"
#include "precision/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Casting { /* of a function */
    Module *m;
    Func *f;
    const Policy *policy;
    Val (*casts)[AMP_DTYPES]; /* by value id and dtype: the cast of the value */
    bool shares_casts;        /* one cast of any value for all its readers: else of parameters alone, as PyTorch */
    bool has_overrides;       /* the model's precision block holds: else the policy alone */
    bool has_decisions;       /* they are recorded */
} Casting;

typedef struct Choice { /* what policy and overrides say of an op */
    PolicyClass op_class;
    Reason why; /* the rule, and its place in the policy or model */
    const char *policy_text;
} Choice;

/* Nothing is cast yet; only values that exist now can be. */
Casting casting_new(Module *m, Func *f, const Policy *policy);

/* Whether autodiff made the op. */
bool casting_is_backward(const Op *o);

Choice casting_choose(const Casting *x, const Op *o);

/* Casts the operands, appends the casts to the body, sets the dtypes of the results and the reason. */
void casting_apply(Casting *x, Op *o, const Choice *choice, const OpTypes *types);

/* Calls |decide| for each op of the body, in order, while the body is made anew, so that casts precede readers.
 * Constants stay f32, and a conversion that the model itself writes stays as written: their reasons say so. */
void casting_walk(Casting *x, void (*decide)(Casting *x, Op *o, void *user), void *user);

/* The rule of an op that is not decided, or NULL. */
const char *casting_undecided(const Op *o);

/* A buffer keeps its own dtype, whatever its next value was computed in. */
void casting_updates(const Casting *x);

/* The op that makes |v|, or the name of an input or state. */
const char *casting_maker(const Func *f, Val v);

/* What the op computes in if it is of a class. */
OpTypes casting_types(const Casting *x, const Op *o, PolicyClass op_class);

/* How many of its leading operands are factors: 0 where |o| is no product. */
int factor_count(const Op *o);

/* ---- operands.c -------------------------------------------------------------------------------------------------- */

/* Whether operand |i| takes part and may be cast: a float whose elements the op reads, in any float type, and that is
 * no constant; of batch norm the first alone, of its gradient the result's gradient and the first;
 * of a loss's gradient all but the scalar.
 * Constants are weak: they never decide a dtype and are never cast; a kernel computes with the f32 number, as PyTorch
 * does with a Python number. */
bool operand_is_castable(const Func *f, const Op *o, int i);

/* Of an op of the graph: whether its result |v| is of the type that the op has, not f32 or an integer whatever that is,
 * as the statistics of a norm. */
bool result_has_type_of_op(const Op *o, Val v);

/* ---- overrides.c: the lines of a model's precision block, which overrule the policy ------------------------------ */

/* The override that applies to |o|, with its class, or NULL.  A path beats an op name; among equals the last wins. */
const Override *override_for(const Module *m, const Policy *p, const Op *o, PolicyClass *op_class);

/* Checks every override against the policy and the function: known words, known ops, globs that match an op.
 * false: errors are in the diagnostics. */
bool overrides_check(PassContext *c, const Policy *p, const Func *f);

/* ---- weigh.c: the algorithm `min_cut` over a function ----------------------------------------------------------- */

/* By op id.  |classes|: the class of each op, by op id.  |n|: the batch for which bytes are counted. */
LeastBytes *least_bytes_of(const Func *f, const PolicyClass *classes, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
