/* constant.c: numbers of the model that f16 does not hold. */
#include <math.h>

#include "compiler/lint/lint.h"

/* ---- 0 in f16 ---------------------------------------------------------------------------------------------------- */

/* Numbers of the model are f32 in registers, and the result is rounded: so x + 1e-8 is x in f16, and max(x, 1e-8) may
 * be 0. */

static bool is_zero_in_f16(double v) { return v != 0.0 && fabs(v) <= F16_ZERO; }

/* The number beside another operand. */
static bool has_small_number(const LintFunc *g, const Op *o, double *out) {
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

void lint_small_constant(Lint *x, const LintFunc *g, const Op *o) {
    static const char help[] =
        "a constant of 1.0e-7 or more, which f16 has; or f32 for this op and for those that read it";
    const char *reader;
    double v;
    if (!has_small_number(g, o, &v) || !is_zero_in_f16(v) || !lint_ends_in_f16(g, o, &reader)) return;
    if (reader && !is_always_rounded(g, o)) return;
    const bool adds = o->code == OP_add || o->code == OP_sub;
    if (reader) lint_add(x, o, NULL, help, "%g is 0 in f16, to which %s rounds the result", v, reader);
    else if (adds) lint_add(x, o, NULL, help, "%g adds nothing in f16", v);
    else lint_add(x, o, NULL, help, "%g is 0 in f16: it keeps nothing away from 0", v);
}

/* ---- infinite in f16 --------------------------------------------------------------------------------------------- */

/* Finite numbers that are infinite in f16.  A mask of -1e9 is then -inf: a row that is masked as a whole becomes NaN in
 * softmax, and 0 * -inf is NaN.  inf itself is taken to be meant. */

static bool is_infinite_in_f16(double v) { return isfinite(v) && fabs(v) >= F16_INFINITE; }

/* One that is f16 already has a finding where it was made so. */
static bool is_number_beside(const LintFunc *g, Val v, double *out) {
    return ir_dtype(g->f, v) != AMP_DT_F16 && lint_number(g, v, out) && is_infinite_in_f16(*out);
}

/* The number that makes the result of |o| infinite. */
static bool has_large_number(const LintFunc *g, const Op *o, double *out) {
    switch (o->code) {
    case OP_cast:
    case OP_full: return lint_number(g, o->out[0], out) && is_infinite_in_f16(*out);
    case OP_where: return is_number_beside(g, o->in[1], out) || is_number_beside(g, o->in[2], out);
    case OP_add:
    case OP_sub:
    case OP_mul: return is_number_beside(g, o->in[0], out) || is_number_beside(g, o->in[1], out);
    default: return false;
    }
}

/* A cast is told of where it is, so full alone where it is f16 itself. */
static bool ends_in_f16(const LintFunc *g, const Op *o) {
    const char *reader;
    if (o->code == OP_cast || o->code == OP_full) return lint_dtype(g, o) == AMP_DT_F16;
    return lint_ends_in_f16(g, o, &reader);
}

static void check_factor(Lint *x, const LintFunc *g, const Op *o, double v) {
    if (range_largest(lint_range(g, o->out[0])) < F16_INFINITE) return; /* of what is small */
    lint_add(x, o, NULL, "a smaller factor, or f32 for this op and for those that read it",
             "x times %g in f16: infinite where |x| is above about %.3g", v, F16_INFINITE / fabs(v));
}

void lint_large_constant(Lint *x, const LintFunc *g, const Op *o) {
    double v;
    if (!has_large_number(g, o, &v) || !ends_in_f16(g, o)) return;
    if (o->code == OP_mul) {
        check_factor(x, g, o, v);
        return;
    }
    const char *inf = v < 0.0 ? "-inf" : "inf";
    const char *path = o->code == OP_cast && o->reason && o->reason->neighbour ? o->reason->neighbour : o->path;
    lint_add_at(
        x, o->pos, path, NULL,
        arena_printf(x->arena, "%s, which f16 has; or f32 for this op and for those that read it",
                     v < 0.0 ? "-60000.0" : "60000.0"),
        arena_printf(x->arena, "%g is %s in f16%s", v, inf, v < 0.0 ? ": softmax is NaN if it masks a whole row" : ""));
}
