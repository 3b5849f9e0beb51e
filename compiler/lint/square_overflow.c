/* square_overflow.c: x * x and pow(x; e) with e > 1 are beyond f16 where |x| > 65520^(1/e): a square, above 255.97. */
#include <math.h>

#include "compiler/lint/check.h"

/* 0: no power. */
static double exponent_of(const LintFunc *g, const Op *o) {
    if (o->code == OP_pow) return ir_attr(o, "e")->f;
    return o->code == OP_mul && lint_is_same(g, o->in[0], o->in[1]) ? 2.0 : 0.0;
}

static void check(Lint *x, const LintFunc *g, const Op *o) {
    const double e = exponent_of(g, o), most = pow(F16_INFINITE, 1.0 / e);
    const char *reader;
    if (e <= 1.0 || !lint_ends_in_f16(g, o, &reader) || range_largest(lint_range(g, o->in[0])) < most) return;
    const char *what = e == 2.0 ? "a square" : arena_printf(x->arena, "the power %g", e);
    if (reader)
        lint_add(x, o, NULL, "bound what it is of, or scale it before",
                 "%s is rounded to f16 for %s, and is infinite "
                 "where its operand is beyond about %.4g",
                 what, reader, most);
    else
        lint_add(x, o, "f32", lint_f32_for_readers(x, g, o, NULL),
                 "%s in f16: it is infinite where its operand is beyond about %.4g", what, most);
}

void lint_square_overflow(Lint *x) { lint_each_op(x, check); }
