/* large_constant.c: finite numbers that are infinite in f16.  A mask of -1e9 is then -inf: a row that is masked as a
 * whole becomes NaN in softmax, and 0 * -inf is NaN.  inf itself is taken to be meant. */
#include <math.h>

#include "compiler/lint/check.h"

static bool is_infinite_in_f16(double v) { return isfinite(v) && fabs(v) >= F16_INFINITE; }

/* One that is f16 already has a finding where it was made so. */
static bool is_number_beside(const LintFunc *g, Val v, double *out) {
    return ir_dtype(g->f, v) != AMP_DT_F16 && lint_number(g, v, out) && is_infinite_in_f16(*out);
}

/* The number that makes the result of |o| infinite. */
static bool has_number(const LintFunc *g, const Op *o, double *out) {
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

static void check(Lint *x, const LintFunc *g, const Op *o) {
    double v;
    if (!has_number(g, o, &v) || !ends_in_f16(g, o)) return;
    if (o->code == OP_mul) {
        check_factor(x, g, o, v);
        return;
    }
    const char *inf = v < 0.0 ? "-inf" : "inf";
    const char *path = o->code == OP_cast && o->reason && o->reason->neighbour ? o->reason->neighbour : o->path;
    lint_add_at(x, o->pos, path, NULL,
                arena_printf(x->arena, "%s, which f16 has; or f32 for this op and for those that read it",
                             v < 0.0 ? "-60000.0" : "60000.0"),
                arena_printf(x->arena, "%g is %s in f16%s", v, inf,
                             v < 0.0 ? ": softmax is NaN where a whole row is masked by it" : ""));
}

void lint_large_constant(Lint *x) { lint_each_op(x, check); }
