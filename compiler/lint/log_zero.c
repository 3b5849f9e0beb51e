/* log_zero.c: a softmax or exp below 2^-25 is 0 in f16, and its logarithm -inf; 1 - p is 0 where p rounds to 1. */
#include "compiler/lint/probability.h"

static const char *fix_of(const Op *maker) {
    return maker->code == OP_softmax ? "log_softmax(x; dim = ...), or cross_entropy(x, targets), which never make the "
                                       "probability"
                                     : "the argument of exp itself, or clamp(p; low = 1.0e-7) before the logarithm";
}

static void check(Lint *x, const LintFunc *g, const Op *o) {
    Probability p;
    if (!lint_log_of(g, o, &p) || p.maker->code == OP_sigmoid || p.rounded_to != AMP_DT_F16) return;
    if (p.of_rest && p.maker->code == OP_exp) return; /* no probability */
    const char *name = ir_op_info[p.maker->code].name;
    if (p.of_rest)
        lint_add(x, o, NULL, fix_of(p.maker), "log of 1 - %s in f16: -inf where %s is above 0.9998", name, name);
    else lint_add(x, o, NULL, fix_of(p.maker), "log of %s, which is f16 before: -inf where it is below 2.9e-8", name);
}

void lint_log_zero(Lint *x) { lint_each_op(x, check); }
