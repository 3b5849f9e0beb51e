/* operands.c: see operands.h. */
#include "passes/precision/operands.h"

#include "passes/common/common.h"

static bool is_weak(const Func *f, Val v) {
    const Op *def = ir_def(f, v);
    return def && def->code == OP_const;
}

bool operand_is_castable(const Func *f, const Op *o, int i) {
    if (ir_op_info[o->code].flags & LEADS && i > 0) return false;
    return is_float(ir_dtype(f, o->in[i])) && !is_weak(f, o->in[i]);
}
