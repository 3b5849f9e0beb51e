/* whole_numbers.c: f16 has all whole numbers up to 2048, bf16 up to 256; beyond, neighbouring positions are one. */
#include "compiler/lint/check.h"

static void check(Lint *x, const LintFunc *g, const Op *o) {
    const Dtype t = lint_dtype(g, o);
    if (!is_low(t) || !o->n_in || (o->code == OP_cast && is_low(ir_dtype(g->f, o->in[0])))) return;
    const Range r = o->code == OP_cast ? lint_range(g, o->in[0]) : (Range){0};
    const double most = t == AMP_DT_F16 ? 2048.0 : 256.0;
    if (!r.whole || range_largest(r) <= most) return;
    const char *wanted = o->reason ? o->reason->neighbour : NULL;
    lint_add_at(x, o->pos, wanted ? wanted : o->path, "f32", NULL,
                arena_printf(x->arena,
                             "whole numbers up to %.0f are cast to %s, which has them up to %.0f: above, "
                             "several become one",
                             range_largest(r), amp_dtype_name(t), most));
}

void lint_whole_numbers(Lint *x) { lint_each_op(x, check); }
