/* simplify.h: what the rules of simplify share. */
#ifndef AMP_PASSES_SIMPLIFY_SIMPLIFY_H
#define AMP_PASSES_SIMPLIFY_SIMPLIFY_H

#include "base/dtypes.h"
#include "passes/common/common.h"
#include "passes/passes.h"

typedef struct Simplify {
    Func *f;
    Renames renames;
    const int *uses;            /* by value id, of the function as it came */
    const bool *only_optimizer; /* by value id: only the update of a parameter reads it */
    Val (*casts)[AMP_DTYPES];   /* by value id and dtype: the first such cast */
} Simplify;

/* A rule returns the value that |o|'s result equals, or NO_VAL; it may change |o| in place. */

/* Movement of one operand, for ops that move no element when the shape does not change. */
Val move_nothing(Simplify *s, Op *o);

Val slice_again(Simplify *s, Op *o);
Val slice_of_concat(Simplify *s, Op *o);
Val concat_again(Simplify *s, Op *o);

/* Before the rules: sums of padded parts of one value. */
void join_padded_parts(Func *f);
/* After the rules: gradients of relu read bf16 copies. */
void mask_by_copies(Func *f);

#endif
