/* no_gain.c: a step that is bound by launches takes as long in any type; the times are the caller's. */
#include "compiler/lint/check.h"

static const double least_gain = 0.05; /* below, a model of time says nothing */

void lint_no_gain(Lint *x) {
    const LintInput *in = x->in;
    const double low = in->microseconds, full = in->microseconds_f32;
    if (!in->device || in->m->low == AMP_DT_F32 || low <= 0.0 || low < full * (1.0 - least_gain)) return;
    lint_add_at(x, in->m->precision_pos, NULL, NULL, "precision fp32, or a larger batch",
                arena_printf(x->arena,
                             "%s does not pay: at N = %lld a step takes %.4g us on %s, and %.4g us as if in f32",
                             amp_precision_word(in->m->low), (long long)in->batch, low, in->device, full));
}
