/* casting.h: giving one op its dtype: the choice that policy and overrides make, the casts of its operands, the dtypes
 * of its results, and the reasons of all of these.  The algorithms say which dtypes.
 */
#ifndef AMP_PASSES_PRECISION_CASTING_H
#define AMP_PASSES_PRECISION_CASTING_H

#include "base/dtypes.h"
#include "passes/passes.h"
#include "passes/precision/policy.h"

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

/* The dtypes in which an op of a class runs.  NONE: operands are read as they are. */
typedef struct OpTypes {
    Dtype read;    /* float operands */
    Dtype factors; /* of a product */
    Dtype out;
    int forced_by; /* the operand that decided; -1: none did */
} OpTypes;

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

/* How many of its leading operands are factors: 0 where |o| is no product. */
int factor_count(const Op *o);

#ifdef __cplusplus
}
#endif

#endif
