/* attention_results.c: where the results of attention go (AttentionResult in attention_plan.h). */
#include "codegen/cuda/kinds/attention_plan.h"

/* The result of the kernel's op of |code| that reads |v|; NO_VAL: there is none. */
static Val made_of(const Walk *w, Val v, Opcode code) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in && o->code == code; n++)
            if (o->in[n].id == v.id) return o->out[0];
    }
    return NO_VAL;
}

/* |part| is stored as columns of |joined|, or of what the kernel makes of that (passes/fuse/fuse_attention.c). */
static Val find_place(const Walk *w, Val part, Val joined, AttentionResult *out) {
    const Val wide = made_of(w, joined, OP_cast), sum = made_of(w, wide.id ? wide : joined, OP_add);
    const Val rounded = made_of(w, sum, OP_cast), *in = ir_def(w->f, joined)->in;
    Dim rows, cols;
    for (int i = 0; in[i].id != part.id; i++) {
        shape_matrix(ir_shape(w->f, in[i]), &rows, &cols);
        out->column += cols.mul;
    }
    shape_matrix(ir_shape(w->f, joined), &rows, &cols);
    out->pitch = cols.mul;
    out->adds_zero = sum.id != 0;
    return rounded.id ? rounded : sum.id ? sum : joined;
}

static int find_f32(const Walk *w, Val v) { return walk_find_operand(w, v, LAYOUT_ROWS, AMP_DT_F32); }

amp_status attention_result(const Walk *w, const AttentionPlan *p, int r, int64_t cols, AttentionResult *out,
                            amp_error *err) {
    const Val whole = p->op->out[r], rounded = made_of(w, whole, OP_cast), part = rounded.id ? rounded : whole;
    const Val joined = made_of(w, part, OP_concat);
    const Dtype storage = p->factors->dtype == AMP_DT_TF32 ? AMP_DT_F32 : p->factors->dtype;
    *out = (AttentionResult){.pitch = cols, .rounds_first = rounded.id != 0};
    out->whole = find_f32(w, whole);
    out->rounded = rounded.id ? walk_find_operand(w, rounded, LAYOUT_ROWS, storage) : -1;
    if (!joined.id) return AMP_OK;
    if (out->whole >= 0 || out->rounded >= 0)
        return amp_fail(err, AMP_INTERNAL, "%s: %%%s is stored twice", walk_name(w), ir_value(w->f, part)->name);
    const Val all = find_place(w, part, joined, out);
    if (ir_dtype(w->f, all) == AMP_DT_F32) out->whole = find_f32(w, all);
    else out->rounded = walk_find_operand(w, all, LAYOUT_ROWS, storage);
    return AMP_OK;
}
