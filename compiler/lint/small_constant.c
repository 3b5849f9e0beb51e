/* small_constant.c: numbers of the model are f32 in registers, and the result is rounded: so x + 1e-8 is x in f16, and
 * max(x, 1e-8) may be 0. */
#include <math.h>

#include "compiler/lint/check.h"

static bool is_zero_in_f16(double v) { return v != 0.0 && fabs(v) <= F16_ZERO; }

/* The number beside another operand. */
static bool has_number(const LintFunc *g, const Op *o, double *out) {
    if (o->code == OP_clamp) {
        *out = ir_attr(o, "low")->f;
        return true;
    }
    if (o->code != OP_add && o->code != OP_sub && o->code != OP_maximum) return false;
    return lint_number(g, o->in[0], out) || lint_number(g, o->in[1], out);
}

/* Nothing of the forward pass reads the result as it is. */
static bool is_always_rounded(const LintFunc *g, const Op *o) {
    const LintOps *readers = &g->readers[o->out[0].id];
    for (int i = 0; i < readers->len; i++) {
        const Op *reader = readers->data[i];
        if (lint_is_forward(reader) && (reader->code != OP_cast || lint_dtype(g, reader) != AMP_DT_F16)) return false;
    }
    return true;
}

static void check(Lint *x, const LintFunc *g, const Op *o) {
    static const char help[] =
        "a constant of 1.0e-7 or more, which f16 has; or f32 for this op and for those that read it";
    const char *reader;
    double v;
    if (!has_number(g, o, &v) || !is_zero_in_f16(v) || !lint_ends_in_f16(g, o, &reader)) return;
    if (reader && !is_always_rounded(g, o)) return;
    const bool adds = o->code == OP_add || o->code == OP_sub;
    if (reader) lint_add(x, o, NULL, help, "%g is 0 in f16, to which %s rounds the result", v, reader);
    else if (adds) lint_add(x, o, NULL, help, "%g adds nothing in f16", v);
    else lint_add(x, o, NULL, help, "%g is 0 in f16: it keeps nothing away from 0", v);
}

void lint_small_constant(Lint *x) { lint_each_op(x, check); }
