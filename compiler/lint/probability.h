/* probability.h: logarithms of what sigmoid, softmax or exp made, and what 16 bits did to it in between. */
#ifndef AMP_COMPILER_LINT_PROBABILITY_H
#define AMP_COMPILER_LINT_PROBABILITY_H

#include "compiler/lint/check.h"

typedef struct Probability {
    const Op *maker;  /* sigmoid, softmax, exp */
    bool of_rest;     /* the logarithm is of 1 - p */
    Dtype rounded_to; /* f16 or bf16: p, or 1 - p, on its way; NONE: it is f32 all along */
} Probability;

/* What |o| is the logarithm of; false: of nothing of that kind. */
bool lint_log_of(const LintFunc *g, const Op *o, Probability *out);

#endif
