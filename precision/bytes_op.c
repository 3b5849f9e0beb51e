/* bytes_op.c: what the algorithm `min_cut` knows of an op by its name. */
#include "precision/least_bytes.h"

/* Its result is its operand's memory. */
static bool is_view(Opcode code) { return code == OP_reshape || code == OP_flatten; }

static bool reads_own_type(Opcode code) {
    switch (code) {
    case OP_reshape:
    case OP_flatten:
    case OP_transpose:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_stack:
    case OP_expand:
    case OP_embedding:
    case OP_max_pool2d:
    case OP_avg_pool2d:
    case OP_adaptive_avg_pool2d:
    case OP_upsample: return true;
    default: return ir_op_info[code].flags & PRODUCT;
    }
}

static bool forgets_operands(Opcode code) {
    switch (code) {
    case OP_add:
    case OP_sub:
    case OP_neg:
    case OP_relu:
    case OP_leaky_relu:
    case OP_dropout: return true;
    default: return false;
    }
}

static bool bounds_result(Opcode code) {
    switch (code) {
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

BytesOp bytes_op(Opcode code, PolicyClass op_class) {
    return (BytesOp){.op_class = op_class,
                     .is_constant = code == OP_const,
                     .is_cast = code == OP_cast,
                     .is_view = is_view(code),
                     .reads_own_type = reads_own_type(code),
                     .forgets_operands = forgets_operands(code),
                     .bounds_result = bounds_result(code),
                     .is_elementwise = ir_op_info[code].flags & ELEMENTWISE};
}
