/* pack_batches.c: which batched products are products of the runtime's: it reads operands at strides.
 *
 *     %s = batch_contract(%q, %k; tb = true)    =>    %s = batch_contract(%q, %k; tb = true, packed = true)
 */
#include "passes/common/common.h"
#include "ir/strided.h"

enum { BATCH_MAX_DIMS = 6 /* of amp_model_batch */ };

static bool has_strides(const Func *f, Val v) {
    Strided s;
    return ir_strided_dense(f, v, &s);
}

static void pack_batches(Func *f) {
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        if (o->code != OP_batch_contract) continue;
        const int dims = ir_shape(f, o->out[0])->rank - 2;
        bool dims_fit = dims >= 1 && dims <= BATCH_MAX_DIMS;
        ir_attr(o, "packed")->b = dims_fit && has_strides(f, o->in[0]) && has_strides(f, o->in[1]);
    }
}

bool pass_pack_batches(PassContext *c) { return each_func(c, pack_batches); }
