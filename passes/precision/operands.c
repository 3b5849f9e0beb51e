/* operands.c: which operands of an op take part in the choice of its dtype, and which results have it. */
#include "passes/precision/casting.h"

#include "ir/operands.h"
#include "passes/common/common.h"

static bool is_weak(const Func *f, Val v) {
    const Op *def = ir_def(f, v);
    return def && def->code == OP_const;
}

/* Where the backward pass begins a scalar is spread or multiplied, and f16 may not hold it: it is the loss scale. */
static bool is_scale(const Func *f, const Op *o, int i) {
    switch (o->code) {
    case OP_mse_loss_grad:
    case OP_l1_loss_grad:
    case OP_smooth_l1_loss_grad:
    case OP_huber_loss_grad: return i == 0;
    case OP_broadcast_to: return !ir_shape(f, o->in[0])->rank;
    default: return false;
    }
}

bool operand_is_castable(const Func *f, const Op *o, int i) {
    if (ir_op_info[o->code].flags & LEADS && i > 0) return false;
    if (ir_is_batch_norm_grad(o) && i > 1) return false; /* what batch norm reads in f32 */
    if (is_scale(f, o, i)) return false;
    return is_float(ir_dtype(f, o->in[i])) && !is_weak(f, o->in[i]) && ir_operand_varies(o, i) &&
           ir_reads_elements(o, i);
}

bool result_has_type_of_op(const Op *o, Val v) {
    if (v.id == o->out[0].id) return true;
    if (ir_is_batch_norm_grad(o)) return false; /* the gradients of what batch norm reads in f32 */
    const char *results = strchr(ir_op_info[o->code].graph, '>') + 1;
    for (int i = 0; i < o->n_out && results[i]; i++)
        if (o->out[i].id == v.id) return results[i] == 'F';
    return false;
}
