/* probability.c: logarithms of what sigmoid, softmax or exp made, and what 16 bits did to it in between. */
#include "compiler/lint/lint.h"

typedef struct Probability {
    const Op *maker;  /* sigmoid, softmax, exp */
    bool of_rest;     /* the logarithm is of 1 - p */
    Dtype rounded_to; /* f16 or bf16: p, or 1 - p, on its way; NONE: it is f32 all along */
} Probability;

/* 1 - p, (-p) + 1: p. */
static bool is_rest(const LintFunc *g, const Op *o, Val *p) {
    double one;
    if (o->code == OP_sub && lint_number(g, o->in[0], &one) && one == 1.0) {
        *p = o->in[1];
        return true;
    }
    for (int i = 0; o->code == OP_add && i < 2; i++) {
        const Op *negated = lint_maker(g, o->in[i], NULL);
        if (!negated || negated->code != OP_neg || !lint_number(g, o->in[1 - i], &one) || one != 1.0) continue;
        *p = negated->in[0];
        return true;
    }
    return false;
}

/* What |o| is the logarithm of; false: of nothing of that kind. */
static bool is_log_of(const LintFunc *g, const Op *o, Probability *out) {
    *out = (Probability){0};
    if (o->code != OP_log) return false;
    const Op *made = lint_maker(g, o->in[0], &out->rounded_to);
    Val p;
    if (made && is_rest(g, made, &p)) {
        out->of_rest = true;
        made = lint_maker(g, p, &out->rounded_to);
    }
    out->maker = made;
    return made && (made->code == OP_sigmoid || made->code == OP_softmax || made->code == OP_exp);
}

/* ---- softmax and exp --------------------------------------------------------------------------------------------- */

/* A softmax or exp below 2^-25 is 0 in f16, and its logarithm -inf; 1 - p is 0 where p rounds to 1. */

static const char *fix_of(const Op *maker) {
    return maker->code == OP_softmax ? "log_softmax(x; dim = ...), or cross_entropy(x, targets), which never make the "
                                       "probability"
                                     : "the argument of exp itself, or clamp(p; low = 1.0e-7) before the logarithm";
}

void lint_log_zero(Lint *x, const LintFunc *g, const Op *o) {
    Probability p;
    if (!is_log_of(g, o, &p) || p.maker->code == OP_sigmoid || p.rounded_to != AMP_DT_F16) return;
    if (p.of_rest && p.maker->code == OP_exp) return; /* no probability */
    const char *name = ir_op_info[p.maker->code].name;
    if (p.of_rest)
        lint_add(x, o, NULL, fix_of(p.maker), "log of 1 - %s in f16: -inf where %s is above 0.9998", name, name);
    else lint_add(x, o, NULL, fix_of(p.maker), "log of %s, which is f16 before: -inf where it is below 2.9e-8", name);
}

/* ---- sigmoid ----------------------------------------------------------------------------------------------------- */

/* log(sigmoid(x)) and log(1 - sigmoid(x)) with a sigmoid of 16 bits.  PyTorch's autocast refuses binary_cross_entropy
 * for it: the gradient divides by p (1 - p), which 16 bits round to 0, or whose reciprocal is beyond f16. */

void lint_bce_logits(Lint *x, const LintFunc *g, const Op *o) {
    Probability p;
    if (!is_log_of(g, o, &p) || p.maker->code != OP_sigmoid || !p.rounded_to) return;
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
