/* alignment.c: sizes that make tensor cores slow (compiler/tensor_cores.h).  `pad = true` is the line to add where that
 * mends all products of the finding.  Where padding takes more than a quarter more, none is told: it would cost what it
 * brings. */
#include <string.h>

#include "base/dtypes.h"
#include "compiler/casts.h"
#include "compiler/lint/lint.h"
#include "compiler/tensor_cores.h"

/* Whether products of |n| copy as they do now with `pad = true` too. */
static bool is_mended(const NarrowSizes *after, const NarrowSize *n) {
    for (int i = 0; i < after->len; i++)
        if (after->data[i].run == n->run && after->data[i].is_worth && !strcmp(after->data[i].path, n->path))
            return false;
    return true;
}

/* Of the whole model. */
static const char *price_of_padding(const Lint *x) {
    const LintSizes *now = &x->in->sizes, *then = &x->in->padded_sizes;
    const double more = then->bytes - now->bytes;
    const int kernels = then->kernels - now->kernels;
    Text t;
    text_init(&t, x->arena);
    text_printf(&t, "%.3g KB more of temporaries and copies of weights at N = %lld", more / 1000,
                (long long)x->in->want.batch);
    if (more > 1e-4 * now->bytes && now->bytes > 0) text_printf(&t, " (%.2g %%)", 100 * more / now->bytes);
    if (kernels > 0) text_printf(&t, ", %d kernel%s more in a step", kernels, kernels == 1 ? "" : "s");
    return text_str(&t);
}

static void tell(Lint *x, const NarrowSize *n, bool mended) {
    const char *help = tensor_cores_remedy(x->arena, x->in->m, n);
    if (mended) help = arena_printf(x->arena, "%s; or %s", price_of_padding(x), help);
    lint_add_at(x, n->pos, n->path, NULL, help, tensor_cores_problem(x->arena, n));
    if (mended) x->out->data[x->out->len - 1].setting = "pad = true";
}

void lint_alignment(Lint *x) {
    const LintInput *in = x->in;
    NarrowSizes now = {0}, after = {0};
    if (in->copies) now = tensor_cores_narrow(x->arena, in->funcs, in->copies);
    if (in->padded) after = tensor_cores_narrow(x->arena, in->funcs, in->padded);
    for (int i = 0; i < now.len; i++)
        if (now.data[i].is_worth)
            tell(x, &now.data[i], in->padded && !now.data[i].is_head && is_mended(&after, &now.data[i]));
}

/* ---- what padding costs ------------------------------------------------------------------------------------------ */

static double elements_of(const Shape *s, Sizes at) {
    double count = 1;
    for (int i = 0; i < s->rank; i++) count *= (double)dim_eval(s->d[i], at);
    return count;
}

LintSizes lint_sizes(const Module *planned, Sizes at) {
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    LintSizes out = {0};
    if (!planned) return out;
    for (int i = 0; i < planned->states.len; i++) {
        const State *s = planned->states.data[i];
        if (s->role != STATE_DERIVED) continue;
        Shape shape = ir_state_shape(s);
        if (s->pitch) shape.d[shape.rank - 1] = dim_const(s->pitch);
        out.bytes += elements_of(&shape, (Sizes){1, 1}) * (double)amp_storage_size(s->storage);
    }
    casts_step_funcs(planned, funcs);
    for (int i = 0; funcs[i]; i++) {
        out.kernels += funcs[i]->kernels.len;
        for (int j = 0; j < funcs[i]->buffers.len; j++) {
            const Buffer *b = funcs[i]->buffers.data[j];
            const Shape shape = ir_buffer_shape(funcs[i], b);
            if (b->kind == BUFFER_TEMP) out.bytes += elements_of(&shape, at) * (double)amp_storage_size(b->storage);
        }
    }
    return out;
}
