/* whole.c: to_i32, of floats that are whole numbers: floor makes them, and arithmetic and movement keep them. */
#include "frontend/elaborate.h"

#include <math.h>

#include "base/dtypes.h"

enum { MOST_LOOKED_AT = 256 }; /* ops before the call */

typedef struct Search {
    const Func *f;
    int left;
} Search;

/* Whether the op makes whole numbers of whole numbers. */
static bool keeps(const Op *o) {
    switch (o->code) {
    case OP_pad: return elab_type_holds(AMP_DT_I32, ir_attr(o, "value")->f);
    case OP_clamp: {
        const double low = ir_attr(o, "low")->f, high = ir_attr(o, "high")->f;
        return low == floor(low) && high == floor(high);
    }
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_remainder:
    case OP_neg:
    case OP_abs:
    case OP_relu:
    case OP_maximum:
    case OP_minimum:
    case OP_where:
    case OP_sum:
    case OP_prod:
    case OP_cumsum:
    case OP_max:
    case OP_min:
    case OP_cast:
    case OP_detach:
    case OP_reshape:
    case OP_flatten:
    case OP_transpose:
    case OP_permute:
    case OP_slice:
    case OP_expand:
    case OP_concat:
    case OP_stack: return true;
    default: return false;
    }
}

static bool is_whole(Search *s, Val v) {
    const Op *o = ir_def(s->f, v);
    if (amp_class_of(ir_dtype(s->f, v)) != AMP_CLASS_FLOAT) return true;
    if (!o || s->left-- == 0) return false;
    if (o->code == OP_floor || o->code == OP_sign) return true;
    if (o->code == OP_const || o->code == OP_full) return elab_type_holds(AMP_DT_I32, ir_attr(o, "value")->f);
    bool all = keeps(o);
    for (int i = 0; i < o->n_in && all; i++) all = is_whole(s, o->in[i]);
    return all;
}

/* No gradient goes through an integer. */
Item elab_to_i32(Elab *e, Loc loc, Val v, const Loc *operand) {
    Search search = {e->f, MOST_LOOKED_AT};
    const Dtype t = ir_dtype(e->f, v);
    Item x = item_tensor(v);
    if (t == AMP_DT_I32) return x;
    if (t == AMP_DT_I64) return elab_error_item(e, *operand, "to_i32 takes floats, u8 and bool; this is i64");
    if (!is_whole(&search, v)) {
        Diag *diag =
            elab_error(e, *operand, "to_i32 takes whole numbers; this %s may have a fraction", item_describe(e, &x));
        diag_help(e->d, diag, "say how it is rounded: to_i32(floor(%s)), or with + 0.5 inside of floor, to the nearest",
                  loc_text(e->a, *operand));
        return ERROR_ITEM;
    }
    if (amp_class_of(t) == AMP_CLASS_FLOAT) x = elab_emit(e, loc, ir_op_new(e->f, OP_detach, &v, 1), operand);
    if (x.kind == ITEM_ERROR) return x;
    Op *cast = ir_op_new(e->f, OP_cast, &x.tensor, 1);
    ir_result(e->f, cast, NULL, AMP_DT_I32, *ir_shape(e->f, v));
    return elab_emit(e, loc, cast, operand);
}
