/* loss_scale.c: gradients below 2^-25 are 0 in f16, which a loss scale is there for. */
#include <string.h>

#include "compiler/casts.h"
#include "compiler/lint/check.h"

static bool has_f16_gradient(const LintFunc *g) {
    for (int i = 0; i < g->f->body.len; i++) {
        const Op *o = ir_op_at(g->f, i);
        if (casts_is_gradient(o) && lint_dtype(g, o) == AMP_DT_F16) return true;
    }
    return false;
}

void lint_loss_scale(Lint *x) {
    const Call *scale = &x->in->m->loss_scale;
    if (!scale->name || strcmp(scale->name, "none") != 0) return;
    for (int i = 0; i < x->funcs.len; i++)
        if (has_f16_gradient(&x->funcs.data[i]))
            lint_add_at(
                x, scale->pos, NULL, NULL,
                "loss_scale = dynamic(init = 65536.0) in the precision block, which is what there is without a line",
                "gradients are f16 and not scaled: those below 2.9e-8 are 0");
}
