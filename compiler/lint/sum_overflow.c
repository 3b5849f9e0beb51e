/* sum_overflow.c: kernels add in f32 and round once, so a sum is right as long as f16 holds the result.  Where no op
 * bounds what is added, it is taken to be between -1 and 1. */
#include <math.h>

#include "compiler/lint/check.h"

static double terms_of(const Lint *x, const LintFunc *g, const Op *o) {
    if (o->code != OP_cumsum) return lint_reduced(g, o, x->in->batch);
    const Shape *s = ir_shape(g->f, o->in[0]);
    return (double)dim_eval(s->d[ir_dim_attr(o, "dim", s->rank)], x->in->batch);
}

static bool adds(const Op *o) {
    return o->code == OP_sum || o->code == OP_cumsum || (o->code == OP_norm && ir_attr(o, "p")->f == 1.0);
}

static void check(Lint *x, const LintFunc *g, const Op *o) {
    const char *reader, *word = "f32", *help;
    if (!adds(o) || !lint_ends_in_f16(g, o, &reader)) return;
    const double count = terms_of(x, g, o), largest = range_largest(lint_range(g, o->in[0]));
    const double each = isfinite(largest) ? largest : 1.0;
    if (count * each <= F16_MAX) return;
    help = lint_f32_for_readers(x, g, o, NULL);
    if (reader) {
        word = NULL;
        help = arena_printf(x->arena, "`\"%s\": f32' where that op need not be f16, or a mean in place of the sum",
                            reader);
    }
    const char *given = isfinite(largest) ? "which are" : "if they are";
    const char *where = reader ? arena_printf(x->arena, "is rounded to f16 for %s", reader) : "is f16";
    lint_add(x, o, word, help,
             "the result %s; a sum of %.0f elements (at N = %lld), %s at most %g, reaches %.0f, beyond 65504", where,
             count, (long long)x->in->batch, given, each, count * each);
}

void lint_sum_overflow(Lint *x) { lint_each_op(x, check); }
