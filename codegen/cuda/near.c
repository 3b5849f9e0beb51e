/* near.c: which functions of a program are approximate, from prelude/near.cuh.
 *
 * functions.h gives the CPU's bits, but takes 27 instructions for exp and 60 for erf: longer than the memory access
 * that most kernels wait for.  If every user of a result rounds it to 16 bits, or adds it to a sum, whose order is not
 * the CPU's anyway, those bits make no difference.  Then the special function unit is good enough: its results are off
 * by a few units in the last place of f32, a thousandth of the error of rounding to f16.
 *
 * Quotients stay exact: a mean of equal numbers has to be that number, or x - mean is noise.
 *
 * The choice follows from the program's ops alone, not from its kernels, so that fusing changes no bit.
 */
#include "codegen/cuda/cuda_kernel.h"

static bool is_low(Dtype t) { return t == AMP_DT_F16 || t == AMP_DT_BF16; }

/* What |o| asks of its |n|th input, if |asked| is asked of what it makes. */
static Exactness asks_for(const Func *f, const Op *o, int n, Exactness asked) {
    switch (o->code) {
    case OP_cast: {
        const Dtype made = ir_dtype(f, o->out[0]);
        return is_low(made) ? EXACT_TO_16_BITS : made == AMP_DT_F32 ? asked : EXACT_TO_THE_BIT;
    }
    case OP_reduce_sum:
    case OP_reduce_mean:
    case OP_window_sum:
    case OP_sum_parts: return EXACT_IN_A_SUM;
    case OP_is_finite: return EXACT_TO_16_BITS;
    case OP_select: return n ? asked : EXACT_TO_THE_BIT;
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div:
    case OP_neg:
    case OP_exp:
    case OP_tanh:
    case OP_erf:
    case OP_maximum:
    case OP_minimum:
    case OP_broadcast:
    case OP_expand:
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat: return asked;
    default: return EXACT_TO_THE_BIT;
    }
}

static void ask(Exactness *of, Exactness wanted) {
    if (*of < wanted) *of = wanted;
}

/* From the last op to the first: whoever reads a value comes after the one that makes it. */
void cuda_find_exactness(Walk *w) {
    const Func *f = w->f;
    w->asked = arena_array(w->arena, Exactness, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) ask(&w->asked[f->results.data[i].value.id], EXACT_TO_THE_BIT);
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        Exactness asked = o->n_out ? EXACT_TO_16_BITS : EXACT_TO_THE_BIT;
        for (int r = 0; r < o->n_out; r++) ask(&asked, w->asked[o->out[r].id]);
        for (int n = 0; n < o->n_in; n++) ask(&w->asked[o->in[n].id], asks_for(f, o, n, asked));
    }
}

bool cuda_is_near(const Walk *w, const Op *o) {
    const bool has_one = o->code == OP_exp || o->code == OP_tanh || o->code == OP_erf;
    return has_one && w->asked && ir_dtype(w->f, o->out[0]) == AMP_DT_F32 && w->asked[o->out[0].id] < EXACT_TO_THE_BIT;
}
