/* attention_plan.c: see attention_plan.h. */
#include "codegen/cuda/kinds/attention_plan.h"

#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

static const AttentionFactors factor_types[] = {
    {AMP_DT_F16, "FactorsF16", "StoredF16", 2, 75},
    {AMP_DT_BF16, "FactorsBf16", "StoredBf16", 2, 80},
    {AMP_DT_TF32, "FactorsTf32", "StoredTf32", 4, 80},
};

const AttentionFactors *attention_factors(Dtype t) {
    for (size_t i = 0; i < sizeof factor_types / sizeof factor_types[0]; i++)
        if (factor_types[i].dtype == t) return &factor_types[i];
    return NULL;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static const AttentionTiling tilings[] = {
    {2, 64, 8, 8, {64, false, 1}, {64, true, 2}, {64, true, 2}, false, 2},
    {2, 128, 4, 4, {64, true, 1}, {16, false, 2}, {32, true, 2}, false, 0},
    {2, 256, 4, 2, {16, true, 1}, {16, false, 1}, {16, false, 1}, true, 0},
    {4, 64, 4, 4, {32, true, 1}, {32, true, 2}, {32, true, 2}, false, 0},
    {4, 128, 4, 4, {32, true, 1}, {16, false, 1}, {16, false, 1}, false, 0},
    {4, 256, 4, 2, {16, false, 1}, {16, false, 1}, {16, false, 1}, true, 0},
};
enum { FEW_ROWS = 64, FEW_WARPS = 4 }; /* as many rows as so few warps have */

/* Of the tile only a step is part of a sum's order, and that follows from the width alone. */
static int64_t likely(Dim length) { return dim_varies(length) ? dim_assumed(length, 1) : length.mul; }

static AttentionTiling choose_tiling(const AttentionPlan *p) {
    const int bytes = p->factors->bytes;
    const int64_t width = p->width > p->v_width ? p->width : p->v_width;
    const int64_t queries = likely(p->queries), keys = likely(p->keys);
    int i = 0;
    while (tilings[i].bytes != bytes || tilings[i].width < width) i++; /* lower: no head is wider than 256 */
    AttentionTiling t = tilings[i];
    if (queries <= FEW_ROWS && t.warps > FEW_WARPS) {
        t.warps = FEW_WARPS;
        t.blocks *= 2;
    }
    if (queries <= FEW_ROWS && keys <= FEW_ROWS && t.gradient_warps > FEW_WARPS) t.gradient_warps = FEW_WARPS;
    return t;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

int attention_operand(const Walk *w, const Op *o, int i) {
    const Form form = target_attention_form(w->f, o, i);
    if (target_attention_strides(w->f, o, i))
        return walk_find_operand(w, walk_product_source(w, o->in[i]), form.layout, form.storage);
    return walk_find_operand(w, o->in[i], form.layout, form.storage);
}

amp_status attention_rows(const Walk *w, const AttentionPlan *p, int i, Strided *at, int *operand, amp_error *err) {
    *operand = attention_operand(w, p->op, i);
    if (*operand < 0 || !walk_strided(w, p->op->in[i], at))
        return amp_fail(err, AMP_INTERNAL, "%s: attention cannot read %%%s", walk_name(w),
                        ir_value(w->f, p->op->in[i])->name);
    if (i == p->at.mask) *at = ir_strided_repeat(at, &p->scores);
    return AMP_OK;
}

static amp_status find_copy_bytes(const Walk *w, AttentionPlan *p, amp_error *err) {
    const int read[] = {p->at.q, p->at.k, p->at.v, p->at.dy};
    int64_t run = greatest_common_divisor(p->width, p->v_width);
    for (int i = 0; i < 3 + p->gradient; i++) {
        Strided at;
        int operand;
        AMP_TRY(attention_rows(w, p, read[i], &at, &operand, err));
        run = greatest_common_divisor(run, at.offset);
        for (int d = 0; d < at.shape.rank - 1; d++) run = greatest_common_divisor(run, cuda_multiple(w, at.stride[d]));
    }
    p->copy_bytes = cuda_copy_bytes(run, p->factors->bytes);
    return AMP_OK;
}

amp_status attention_plan(const Walk *w, AttentionPlan *p, amp_error *err) {
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, err));
    const AttentionOperands at = ir_attention_operands(w->f, o);
    const Shape *q = ir_shape(w->f, o->in[at.q]), *k = ir_shape(w->f, o->in[at.k]), *v = ir_shape(w->f, o->in[at.v]);
    const int rank = q->rank;
    *p = (AttentionPlan){.op = o,
                         .at = at,
                         .factors = attention_factors(ir_dtype(w->f, o->in[at.q])),
                         .scores = *q,
                         .heads = q->d[rank - 3].mul,
                         .share = q->d[rank - 3].mul / k->d[rank - 3].mul,
                         .queries = q->d[rank - 2],
                         .keys = k->d[rank - 2],
                         .width = q->d[rank - 1].mul,
                         .v_width = v->d[rank - 1].mul,
                         .leads = dim_const(1),
                         .gradient = o->code == OP_attend_grad,
                         .causal = ir_attr(o, "causal")->b,
                         .drops = ir_attr(o, "p")->f > 0.0};
    p->scores.d[rank - 1] = k->d[rank - 2];
    for (int i = 0; i < rank - 3; i++) dim_mul(p->leads, q->d[i], &p->leads); /* fits: q's elements do */
    if (!p->factors)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: attention in %s is not supported for CUDA", walk_name(w),
                        amp_dtype_name(ir_dtype(w->f, o->in[at.q])));
    p->tiling = choose_tiling(p);
    return find_copy_bytes(w, p, err);
}

/* ---- sizes in shared memory -------------------------------------------------------------------------------------- */

static int64_t tile_bytes(const AttentionPlan *p, int64_t rows, int64_t width) {
    return rows * ((width + ATTENTION_UNIT - 1) / ATTENTION_UNIT * ATTENTION_UNIT * p->factors->bytes + 16);
}

static int64_t both_bytes(const AttentionPlan *p, int64_t rows) {
    return tile_bytes(p, rows, p->width) + tile_bytes(p, rows, p->v_width);
}

/* Rows of the block that are in registers leave their place to the walk. */
static int64_t block_bytes(const AttentionWalkTile *t, int64_t own, int64_t walk) {
    return !t->held ? own + walk : own > walk ? own : walk;
}

int64_t attention_forward_bytes(const AttentionPlan *p) {
    const AttentionWalkTile *t = &p->tiling.forward;
    return block_bytes(t, tile_bytes(p, p->tiling.warps * 16, p->width), both_bytes(p, t->step));
}

int64_t attention_gradient_bytes(const AttentionPlan *p) {
    /* of each query that blocks of keys meet: numbers, and the words of dropout for these keys */
    const int64_t keys = p->tiling.gradient_warps * 16, words = !p->drops ? 0 : keys < 64 ? 2 : keys / 32;
    const int64_t numbers = 8 + words * 4;
    const AttentionWalkTile *k = &p->tiling.keys, *q = &p->tiling.queries;
    const int64_t own = both_bytes(p, p->tiling.gradient_warps * 16);
    const int64_t of_keys = block_bytes(k, own, k->stages * (both_bytes(p, k->step) + k->step * numbers)),
                  of_queries = block_bytes(q, own, q->stages * both_bytes(p, q->step));
    return of_keys > of_queries ? of_keys : of_queries;
}
