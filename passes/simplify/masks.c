/* masks.c: the gradient of relu asks for the sign of its result alone, which a bf16 copy of the result has, too.
 *
 *   %h = cast(%r) : bf16        for a product, whose gradient reads it again
 *   %dx = relu_grad(%dy, %r)                                                  =>   %dx = relu_grad(%dy, %h)
 *
 * So %r need not be kept in f32 besides.  bf16 has the exponents of f32: only what is smaller than 2^-134 becomes 0,
 * and its gradient with it.  f16 would lose what is smaller than 2^-25. */
#include "passes/simplify/simplify.h"

void mask_by_copies(Func *f) {
    Val *copies = arena_array(f->module->arena, Val, f->values.len + 1); /* by value id: its bf16 copy */
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        bool copies_f32 = o->code == OP_cast && ir_dtype(f, o->in[0]) == AMP_DT_F32;
        if (copies_f32 && ir_dtype(f, o->out[0]) == AMP_DT_BF16) copies[o->in[0].id] = o->out[0];
        if (o->code == OP_relu_grad && copies[o->in[1].id].id) o->in[1] = copies[o->in[1].id];
    }
}
