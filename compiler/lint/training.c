/* training.c: what a step of training is made of: its losses, their scale, what ranks send, and the time it takes. */
#include <string.h>

#include "compiler/casts.h"
#include "compiler/lint/lint.h"

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Policies know losses by their ops and layers; one that is made of other ops may end in 16 bits. */

/* The loss of a train block that has a name is there twice: "loss.0" is not a name from the model. */
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

/* ---- their scale ------------------------------------------------------------------------------------------------- */

/* Gradients below 2^-25 are 0 in f16, which a loss scale is there for. */

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
            lint_add_at(x, scale->pos, NULL, NULL,
                        "loss_scale = dynamic(init = 65536.0) in the precision block, which is the default",
                        "gradients are f16 and not scaled: those below 2.9e-8 are 0");
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* Gradients that travel between ranks in f32, of a model that computes in 16 bits, unless the user chose that. */

void lint_wide_reduce(Lint *x) {
    const Module *m = x->in->m;
    const ExchangeCost cost = exchange_cost(m);
    if (!cost.messages || m->reduce || !is_low(m->low) || !m->trains.len) return;
    lint_add_at(x, m->trains.data[0].pos, NULL, NULL,
                "each gradient is rounded to bf16, added in f32 and rounded once; or write reduce = f32 to keep f32",
                arena_printf(x->arena,
                             "ranks add up %lld bytes of gradients in f32 in each step, and the model computes in %s: "
                             "in bf16 they are %lld",
                             (long long)exchange_bytes(&cost, AMP_DT_F32), amp_dtype_name(m->low),
                             (long long)exchange_bytes(&cost, AMP_DT_BF16)));
    x->out->data[x->out->len - 1].setting = "reduce = bf16";
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* A step that is bound by launches takes as long in any type; the times are the caller's. */

static const double least_gain = 0.05; /* below, a model of time says nothing */

void lint_no_gain(Lint *x) {
    const LintInput *in = x->in;
    const double low = in->want.microseconds, full = in->want.microseconds_f32;
    if (!in->want.device || in->m->low == AMP_DT_F32 || low <= 0.0 || low < full * (1.0 - least_gain)) return;
    lint_add_at(x, in->m->precision_pos, NULL, NULL, "precision fp32, or a larger batch",
                arena_printf(x->arena,
                             "%s does not pay: at N = %lld a step takes %.4g us on %s, and %.4g us as if in f32",
                             amp_precision_word(in->m->low), (long long)in->want.batch, low, in->want.device, full));
}
