/* bce_logits.c: log(sigmoid(x)) and log(1 - sigmoid(x)) with a sigmoid of 16 bits.  PyTorch's autocast refuses
 * binary_cross_entropy for it: the gradient divides by p (1 - p), which 16 bits round to 0, or whose reciprocal is
 * beyond f16. */
#include "compiler/lint/probability.h"

static void check(Lint *x, const LintFunc *g, const Op *o) {
    Probability p;
    if (!lint_log_of(g, o, &p) || p.maker->code != OP_sigmoid || !p.rounded_to) return;
    if (!p.of_rest && p.rounded_to == AMP_DT_BF16) return; /* which has the small ones */
    const bool half = p.rounded_to == AMP_DT_F16;
    const char *where = !p.of_rest ? "x is below -17.4" : half ? "x is above 8.4" : "x is above 6.3";
    lint_add(x, o, NULL,
             p.of_rest ? "bce_with_logits(x, t), or -softplus(x) for this term, which are safe in any type"
                       : "bce_with_logits(x, t), or -softplus(-x) for this term, which are safe in any type",
             "log of %ssigmoid(x) in %s: -inf where %s, and the gradient divides by p (1 - p); PyTorch's autocast "
             "refuses binary_cross_entropy for that",
             p.of_rest ? "1 - " : "", amp_dtype_name(p.rounded_to), where);
}

void lint_bce_logits(Lint *x) { lint_each_op(x, check); }
