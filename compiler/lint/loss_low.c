/* loss_low.c: policies know losses by their ops and layers; one that is made of other ops may end in 16 bits. */
#include <string.h>

#include "compiler/lint/check.h"

/* The loss of a train block that has a name is there twice: "loss.0" is nobody's word. */
static bool is_named_too(const Func *f, const Result *r) {
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].kind == RESULT_NAMED_LOSS && f->results.data[i].value.id == r->value.id) return true;
    return false;
}

static void check_result(Lint *x, const LintFunc *g, const Result *r) {
    const Dtype t = ir_dtype(g->f, r->value);
    const Op *o = ir_def(g->f, r->value);
    if ((r->kind != RESULT_LOSS && r->kind != RESULT_NAMED_LOSS) || !is_low(t) || !o) return;
    if (r->kind == RESULT_LOSS && is_named_too(g->f, r)) return;
    const char *name = r->kind == RESULT_NAMED_LOSS ? arena_printf(x->arena, "loss %s", r->of) : "loss";
    const char *what = t == AMP_DT_F16 ? "f16: 11 bits, infinite above 65504" : "bf16: 8 bits";
    lint_add(x, o, "f32", NULL, "the %s is %s", name, what);
}

void lint_loss_low(Lint *x) {
    for (int i = 0; i < x->funcs.len; i++) {
        const LintFunc *g = &x->funcs.data[i];
        for (int k = 0; k < g->f->results.len; k++) check_result(x, g, &g->f->results.data[k]);
    }
}
