/* probability.c: logarithms of what sigmoid, softmax or exp made, and what 16 bits did to it in between; softmax and
 * logsumexp by hand. */
#include <math.h>

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

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* e^x is infinite in f32 and bf16 where x > 88.7228, and the quotient of two of them NaN; in f16 above 11.09. */

/* Also if a mask chooses among its results. */
static const Op *exp_at(const LintFunc *g, Val v) {
    const Op *o = lint_maker(g, v, NULL);
    if (!o || o->code == OP_exp) return o;
    for (int i = 0; (o->code == OP_mul || o->code == OP_where) && i < o->n_in; i++) {
        const Op *factor = lint_maker(g, o->in[i], NULL);
        if (factor && factor->code == OP_exp) return factor;
    }
    return NULL;
}

/* The exp whose results |v| adds; NULL: it is no such sum. */
static const Op *exp_in_sum(const LintFunc *g, Val v) {
    const Op *o = lint_maker(g, v, NULL);
    return o && o->code == OP_sum ? exp_at(g, o->in[0]) : NULL;
}

void lint_softmax_by_hand(Lint *x, const LintFunc *g, const Op *o) {
    if (o->code != OP_div && o->code != OP_log) return;
    const Op *of = exp_in_sum(g, o->in[o->code == OP_div ? 1 : 0]);
    const Op *above = o->code == OP_div ? exp_at(g, o->in[0]) : of;
    if (!of || !above || !lint_is_same(g, of->in[0], above->in[0])) return;
    const double most = log(lint_dtype(g, of) == AMP_DT_F16 ? F16_INFINITE : 0x1p128);
    if (lint_range(g, of->in[0]).high <= most) return;
    lint_add(x, o, NULL,
             o->code == OP_div ? "softmax(x; dim = ...), or log_softmax or cross_entropy if its logarithm follows"
                               : "logsumexp(x; dims = ...)",
             "%s by hand, without its largest subtracted: %s where x is above %.1f",
             o->code == OP_div ? "exp(x) / sum(exp(x)), a softmax" : "log(sum(exp(x)))",
             o->code == OP_div ? "NaN" : "infinite", most);
}
