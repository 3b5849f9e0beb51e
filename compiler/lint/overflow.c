/* overflow.c: results that end in f16, which is infinite above 65504. */
#include <math.h>

#include "compiler/lint/lint.h"

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Kernels add in f32 and round once, so a sum is right as long as f16 holds the result.  Where no op bounds what is
 * added, it is taken to be between -1 and 1. */

static double terms_of(const Lint *x, const LintFunc *g, const Op *o) {
    if (o->code != OP_cumsum) return lint_reduced(g, o, lint_at(&x->in->want));
    const Shape *s = ir_shape(g->f, o->in[0]);
    return (double)dim_eval(s->d[ir_dim_attr(o, "dim", s->rank)], lint_at(&x->in->want));
}

static bool adds(const Op *o) {
    return o->code == OP_sum || o->code == OP_cumsum || (o->code == OP_norm && ir_attr(o, "p")->f == 1.0);
}

void lint_sum_overflow(Lint *x, const LintFunc *g, const Op *o) {
    const char *reader, *word = "f32", *help;
    if (!adds(o) || !lint_ends_in_f16(g, o, &reader)) return;
    const double count = terms_of(x, g, o), largest = range_largest(lint_range(g, o->in[0]));
    const double each = isfinite(largest) ? largest : 1.0;
    if (count * each <= F16_MAX) return;
    help = lint_f32_for_readers(x, g, o, NULL);
    if (reader) {
        word = NULL;
        help =
            arena_printf(x->arena, "`\"%s\": f32' if that op need not be f16, or a mean in place of the sum", reader);
    }
    const char *given = isfinite(largest) ? "which are" : "if they are";
    const char *where = reader ? arena_printf(x->arena, "is rounded to f16 for %s", reader) : "is f16";
    lint_add(x, o, word, help,
             "the result %s; a sum of %.0f elements (at N = %lld), %s at most %g, reaches %.0f, beyond 65504", where,
             count, (long long)x->in->want.batch, given, each, count * each);
}

/* ---- exp --------------------------------------------------------------------------------------------------------- */

/* e^x is beyond f16 where x > ln 65520 = 11.0901.  Softmax, log_softmax, sigmoid and logsumexp subtract the largest
 * before; x - max(x), and what an op bounds below that, are safe too. */

void lint_exp_overflow(Lint *x, const LintFunc *g, const Op *o) {
    const char *reader;
    if (o->code != OP_exp && o->code != OP_expm1) return;
    if (!lint_ends_in_f16(g, o, &reader) || lint_range(g, o->in[0]).high <= log(F16_INFINITE)) return;
    const char *name = ir_op_info[o->code].name;
    if (reader)
        lint_add(x, o, NULL, "bound it: clamp(x; low = -20.0, high = 11.0), or x - max(x) if a quotient follows",
                 "%s of what nothing bounds: it is rounded to f16 for %s, and is infinite above x = 11.1", name,
                 reader);
    else
        lint_add(x, o, "f32", lint_f32_for_readers(x, g, o, "or bound it: clamp(x; low = -20.0, high = 11.0)"),
                 "%s of what nothing bounds: its result is f16, which is infinite above x = 11.1", name);
}

/* ---- squares and powers ------------------------------------------------------------------------------------------ */

/* x * x and pow(x; e) with e > 1 are beyond f16 where |x| > 65520^(1/e): a square, above 255.97. */

/* 0: no power. */
static double exponent_of(const LintFunc *g, const Op *o) {
    if (o->code == OP_pow) return ir_attr(o, "e")->f;
    return o->code == OP_mul && lint_is_same(g, o->in[0], o->in[1]) ? 2.0 : 0.0;
}

void lint_square_overflow(Lint *x, const LintFunc *g, const Op *o) {
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

/* ---- variances --------------------------------------------------------------------------------------------------- */

/* A variance that f16 stores is 0 for a deviation below sqrt(2^-25), infinite for one above 256.  The norms of the
 * language keep theirs in f32. */

void lint_variance_low(Lint *x, const LintFunc *g, const Op *o) {
    if (o->code != OP_var || lint_dtype(g, o) != AMP_DT_F16) return;
    lint_add(x, o, "f32", lint_f32_for_readers(x, g, o, NULL),
             "the variance is f16: 0 where the deviation is below 0.00017, infinite where it is above 256");
}
