/* joined_attention.c: results of attention that its kernel stores beside each other, as columns of one matrix.
 *
 *     %q, %k, %v = cast(..)                         rounded, or not
 *     %c = concat(%q, %k, %v; dim = 2)              joins them
 *     %w = cast(%c)                                 in f32 again, if they were rounded
 *     %s = add(%w, 0)                               no zero is negative: a sum of padded parts
 *     %y = cast(%s)                                 rounded
 *
 * Gradients of queries, keys and values that are slices of one product.  The kernel may end with any of the three. */
#include <math.h>

#include "targets/target.h"

/* The op of |code| that makes |v|, or NULL. */
static const Op *made_by(const Func *f, Val v, Opcode code) {
    const Op *o = ir_def(f, v);
    return o && o->code == code ? o : NULL;
}

static bool is_read_once(const int *uses, Val v) { return !uses || uses[v.id] == 1; }

/* The gradient of attention of which |v| is a result, rounded or not; NULL: of none. */
static const Op *gradient_behind(const Func *f, Val v, const int *uses, bool *rounded) {
    const Op *cast = made_by(f, v, OP_cast);
    *rounded = cast && target_rounds_attention(f, cast);
    if (*rounded && !is_read_once(uses, cast->in[0])) return NULL;
    return is_read_once(uses, v) ? made_by(f, *rounded ? cast->in[0] : v, OP_attend_grad) : NULL;
}

/* Two neighbouring columns are stored at once. */
static bool has_pairs(const Shape *s) { return !s->d[s->rank - 1].n && s->d[s->rank - 1].mul % 2 == 0; }

bool target_joins_attention(const Func *f, const Op *o, const int *uses) {
    const Op *all = NULL;
    bool all_rounded = false;
    if (o->code != OP_concat || o->n_in < 2 || !target_of(f->module)->rounds_attention) return false;
    const int64_t dim = ir_attr(o, "dim")->i, last = ir_shape(f, o->out[0])->rank - 1;
    for (int n = 0; n < o->n_in; n++) {
        bool rounded;
        const Op *gradient = gradient_behind(f, o->in[n], uses, &rounded);
        if (!gradient || !has_pairs(ir_shape(f, o->in[n]))) return false;
        if (n && (gradient != all || rounded != all_rounded)) return false;
        all = gradient;
        all_rounded = rounded;
    }
    return dim == last || dim == -1;
}

/* What |v| is in f32; itself, if it is that. */
static Val narrow_of(const Func *f, Val v, const int *uses) {
    const Op *cast = made_by(f, v, OP_cast);
    const bool widens = cast && ir_dtype(f, v) == AMP_DT_F32 && is_read_once(uses, v);
    return widens ? cast->in[0] : v;
}

static bool is_zero(const Func *f, Val v) {
    const Op *o = made_by(f, v, OP_const);
    return o && ir_attr(o, "value")->f == 0.0 && !signbit(ir_attr(o, "value")->f);
}

const Op *target_clears_joined(const Func *f, const Op *o, const int *uses) {
    if (o->code != OP_add || !is_zero(f, o->in[1]) || ir_dtype(f, o->out[0]) != AMP_DT_F32) return NULL;
    const Val v = narrow_of(f, o->in[0], uses);
    const Op *joined = ir_def(f, v);
    return joined && is_read_once(uses, v) && target_joins_attention(f, joined, uses) ? joined : NULL;
}

const Op *target_rounds_joined(const Func *f, const Op *o, const int *uses) {
    const Op *sum = o->code == OP_cast ? ir_def(f, o->in[0]) : NULL;
    const Op *joined = sum && is_read_once(uses, o->in[0]) ? target_clears_joined(f, sum, uses) : NULL;
    if (!joined) return NULL;
    bool rounded;
    const Op *gradient = gradient_behind(f, joined->in[0], NULL, &rounded);
    const Val q = gradient->in[ir_attention_operands(f, gradient).q];
    return ir_dtype(f, o->out[0]) == ir_dtype(f, q) ? joined : NULL;
}
