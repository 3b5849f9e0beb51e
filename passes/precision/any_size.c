/* any_size.c: which ops the algorithm `min_cut` leaves in f32 because what they read may be of any size.
 *
 * A number that a caller gives, or that an op of the f32 list made, may be more than the low type holds: a price,
 * a sum, an exponential.  What is computed from it stays f32 up to the next op that is lowered by the lists or whose
 * result is bounded, as under `eager`.  What products, embeddings and parameters make is taken to be of the size that
 * training keeps it in.
 */
#include "passes/precision/casting.h"

#include "passes/common/common.h"

/* Its result is small whatever it reads. */
static bool bounds_result(const Op *o) {
    switch (o->code) {
    case OP_sigmoid:
    case OP_hard_sigmoid:
    case OP_tanh:
    case OP_erf:
    case OP_sin:
    case OP_cos:
    case OP_sign:
    case OP_softmax:
    case OP_log_softmax:
    case OP_batch_norm:
    case OP_batch_norm_eval:
    case OP_layer_norm:
    case OP_group_norm:
    case OP_instance_norm:
    case OP_rms_norm: return true;
    default: return false;
    }
}

static bool is_listed(PolicyClass op_class) {
    return op_class != POLICY_FOLLOW && op_class != POLICY_WIDEST && op_class != POLICY_FIRST;
}

/* A scalar never decides the type of an op, and is none of the operands here. */
static bool reads_any_size(const Func *f, const Op *o, PolicyClass op_class, const bool *is_any_size) {
    bool reads = false, has_operand = false;
    for (int i = 0; i < o->n_in; i++) {
        if (!operand_is_castable(f, o, i)) continue;
        if (!has_operand || op_class != POLICY_FIRST)
            reads = reads || (is_any_size[o->in[i].id] && ir_shape(f, o->in[i])->rank);
        has_operand = true;
    }
    return reads || !has_operand; /* arange, full: as long, or as large, as they are written */
}

bool *any_size_find(Arena *a, const Func *f, const PolicyClass *classes) {
    bool *is_any_size = arena_array(a, bool, f->values.len); /* by value id */
    bool *found = arena_array(a, bool, f->ops.len);
    for (int i = 0; i < f->inputs.len; i++) {
        const Val v = f->inputs.data[i];
        is_any_size[v.id] = !ir_state_of(f, v) && is_float(ir_dtype(f, v));
    }
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const PolicyClass op_class = classes[o->id.id];
        if (o->code == OP_const || !o->n_out || !is_float(ir_dtype(f, o->out[0]))) continue;
        if (o->code == OP_cast) { /* written, for the range of f32 */
            is_any_size[o->out[0].id] = ir_dtype(f, o->out[0]) == AMP_DT_F32;
            continue;
        }
        const bool reads = reads_any_size(f, o, op_class, is_any_size);
        found[o->id.id] = reads && !is_listed(op_class);
        if (bounds_result(o) || op_class == POLICY_LOWER) continue;
        for (int k = 0; k < o->n_out; k++) is_any_size[o->out[k].id] = reads || is_listed(op_class);
    }
    return found;
}
