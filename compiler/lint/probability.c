/* probability.c: see probability.h. */
#include "compiler/lint/probability.h"

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

bool lint_log_of(const LintFunc *g, const Op *o, Probability *out) {
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
