/* variance_low.c: a variance that f16 stores is 0 for a deviation below sqrt(2^-25), infinite for one above 256.  The
 * norms of the language keep theirs in f32. */
#include "compiler/lint/check.h"

static void check(Lint *x, const LintFunc *g, const Op *o) {
    if (o->code != OP_var || lint_dtype(g, o) != AMP_DT_F16) return;
    lint_add(x, o, "f32", lint_f32_for_readers(x, g, o, NULL),
             "the variance is f16: 0 where the deviation is below 0.00017, infinite where it is above 256");
}

void lint_variance_low(Lint *x) { lint_each_op(x, check); }
