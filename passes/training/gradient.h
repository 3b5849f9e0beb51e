/* gradient.h: the gradient of each op, as a table from GradRule to a function. */
#ifndef AMP_PASSES_TRAINING_GRADIENT_H
#define AMP_PASSES_TRAINING_GRADIENT_H

#include "passes/training/backward.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Gradient {
    /* Gives Backward.op's operands their gradients; false: an error is in the diagnostics.  NULL: no gradient goes
     * through the op. */
    bool (*make)(Backward *b);
    const char
        *operands[NAMED_OPERANDS]; /* their names in paths of backward ops; none where there is one operand, or any
                                           * number */
} Gradient;

/* NULL: ops with this rule are never differentiated. */
const Gradient *gradient_rule(GradRule rule);

#ifdef __cplusplus
}
#endif

#endif
