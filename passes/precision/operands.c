/* operands.c: see operands.h. */
#include "passes/precision/operands.h"

#include "passes/common/common.h"

static bool is_weak(const Func *f, Val v) {
    const Op *def = ir_def(f, v);
    return def && def->code == OP_const;
}

bool operand_is_castable(const Func *f, const Op *o, int i) {
    if (ir_op_info[o->code].flags & LEADS && i > 0) return false;
    if (o->code == OP_batch_norm_grad && i > 1) return false; /* what batch norm reads in f32 */
    return is_float(ir_dtype(f, o->in[i])) && !is_weak(f, o->in[i]) && ir_operand_varies(o, i) &&
           ir_reads_elements(o, i);
}
