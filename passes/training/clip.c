/* clip.c: gradients are unscaled before they are clipped, first by the norm of all of the block's, then by value.
 *
 *   %grad_norm = global_norm(%grad.w, %grad.b)              : f32       result grad_norm
 *   %1         = clip_by_norm(%grad.w, %grad_norm; max = 1) : f32[...]
 *   %2         = clamp(%1; low = -0.5, high = 0.5)          : f32[...]
 */
#include "passes/training/training_step.h"

static Val norm_of(BlockStep *b, const Val *gradients) {
    const char *name = train_block_count(b->m) == 1 ? "grad_norm" : arena_printf(b->m->arena, "grad_norm.%d", b->index);
    Op *o = ir_op_new(b->f, OP_global_norm, gradients, b->gradients.len);
    step_explain(b, o, "clip", "global_norm");
    Val norm = ir_make_results(b->f, o, AMP_DT_F32, name);
    ir_add_result(b->f, name, norm);
    return norm;
}

static Val clip_by_norm(BlockStep *b, const char *param, Val gradient, Val norm) {
    Op *o = ir_op_new(b->f, OP_clip_by_norm, (Val[]){gradient, norm}, 2);
    ir_attr(o, "max")->f = b->block->clip_norm;
    step_explain(b, o, param, "clip_by_norm");
    return ir_make_results(b->f, o, AMP_DT_F32, NULL);
}

static Val clip_by_value(BlockStep *b, const char *param, Val gradient) {
    Op *o = ir_op_new(b->f, OP_clamp, &gradient, 1);
    ir_attr(o, "low")->f = -b->block->clip_value;
    ir_attr(o, "high")->f = b->block->clip_value;
    step_explain(b, o, param, "clip_by_value");
    return ir_make_results(b->f, o, AMP_DT_F32, NULL);
}

Val *step_clipped_gradients(BlockStep *b) {
    int count = b->gradients.len;
    Val *g = arena_array(b->m->arena, Val, count + 1);
    for (int i = 0; i < count; i++) g[i] = b->f->results.data[b->gradients.data[i].result].value;
    Val norm = b->block->clip_norm > 0 && count ? norm_of(b, g) : NO_VAL;
    for (int i = 0; i < count; i++) {
        const char *param = b->gradients.data[i].param->name;
        if (norm.id) g[i] = clip_by_norm(b, param, g[i], norm);
        if (b->block->clip_value > 0) g[i] = clip_by_value(b, param, g[i]);
    }
    return g;
}
