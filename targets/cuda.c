/* cuda.c: NVIDIA's GPUs (docs/design/cuda.md). */
#include "targets/target.h"

/* Row-major, in the type that it has: tf32 alone has none of its own. */
static Form product_form(const Func *f, const Op *o, int i) {
    Dtype t = ir_dtype(f, o->in[i]);
    return (Form){LAYOUT_ROWS, t == AMP_DT_TF32 ? AMP_DT_F32 : t};
}

const Target target_cuda = {
    .name = "cuda",
    .rounds_on_load = true,
    .reuses_operands = true,
    .batches_updates = true,
    .product_form = product_form,
};
