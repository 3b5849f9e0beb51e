/* wide_reduce.c: gradients that travel between ranks in f32, of a model that computes in 16 bits, where nobody has
 * chosen that. */
#include "compiler/exchange_cost.h"
#include "compiler/lint/check.h"

void lint_wide_reduce(Lint *x) {
    const Module *m = x->in->m;
    const ExchangeCost cost = exchange_cost(m);
    if (!cost.messages || m->reduce || !is_low(m->low) || !m->trains.len) return;
    lint_add_at(x, m->trains.data[0].pos, NULL, NULL,
                "each gradient is rounded to bf16, added in f32 and rounded once; or reduce = f32, where that is meant",
                arena_printf(x->arena,
                             "ranks add up %lld bytes of gradients in f32 in each step, and the model computes in %s: "
                             "in bf16 they are %lld",
                             (long long)exchange_bytes(&cost, AMP_DT_F32), amp_dtype_name(m->low),
                             (long long)exchange_bytes(&cost, AMP_DT_BF16)));
    x->out->data[x->out->len - 1].setting = "reduce = bf16";
}
