/* attention_results.c: where the results of attention go (AttentionResult in attention_plan.h). */
#include "codegen/cuda/kinds/attention_plan.h"
#include "targets/target.h"

/* The cast of a result that the kernel holds, where something reads that; NO_VAL: there is none. */
static Val rounded_of(const Walk *w, Val result) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && o->n_in && o->in[0].id == result.id && target_rounds_attention(w->f, o)) return o->out[0];
    }
    return NO_VAL;
}

/* The op of the kernel that puts results beside each other; NULL: there is none. */
static const Op *find_joined(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (target_joins_attention(w->f, walk_op(w, i), NULL)) return walk_op(w, i);
    return NULL;
}

/* |part|, operand |n| of |joined|, is stored as columns of what the kernel makes of all of them in the end. */
static Val find_place(const Walk *w, const Op *joined, int n, AttentionResult *out) {
    Val all = joined->out[0];
    Dim rows, cols;
    for (int i = 0; i < n; i++) {
        shape_matrix(ir_shape(w->f, joined->in[i]), &rows, &cols);
        out->column += cols.mul;
    }
    shape_matrix(ir_shape(w->f, all), &rows, &cols);
    out->pitch = cols.mul;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        const bool clears = target_clears_joined(w->f, o, NULL) == joined;
        if (clears || target_rounds_joined(w->f, o, NULL) == joined) all = o->out[0];
        out->adds_zero = out->adds_zero || clears;
    }
    return all;
}

static int find_f32(const Walk *w, Val v) { return walk_find_operand(w, v, LAYOUT_ROWS, AMP_DT_F32); }

amp_status attention_result(const Walk *w, const AttentionPlan *p, int r, int64_t cols, AttentionResult *out,
                            amp_error *err) {
    const Val whole = p->op->out[r], rounded = rounded_of(w, whole), part = rounded.id ? rounded : whole;
    const Dtype storage = p->factors->dtype == AMP_DT_TF32 ? AMP_DT_F32 : p->factors->dtype;
    const Op *joined = find_joined(w);
    *out = (AttentionResult){.pitch = cols, .rounds_first = rounded.id != 0};
    out->whole = find_f32(w, whole);
    out->rounded = rounded.id ? walk_find_operand(w, rounded, LAYOUT_ROWS, storage) : -1;
    for (int n = 0; joined && n < joined->n_in; n++) {
        if (joined->in[n].id != part.id) continue;
        if (out->whole >= 0 || out->rounded >= 0)
            return amp_fail(err, AMP_INTERNAL, "%s: %%%s is stored twice", walk_name(w), ir_value(w->f, part)->name);
        const Val all = find_place(w, joined, n, out);
        if (ir_dtype(w->f, all) == AMP_DT_F32) out->whole = find_f32(w, all);
        else out->rounded = walk_find_operand(w, all, LAYOUT_ROWS, storage);
    }
    return AMP_OK;
}
