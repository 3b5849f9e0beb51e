/* cpu_attention.c: kernels of attention: the function, which says what op it is and calls prelude/attention.h, and the
 * table by which the runtime reads its operands. */
#include "amp/model_abi.h"
#include "codegen/cpu/cpu.h"
#include "targets/target.h"

/* ---- the function ------------------------------------------------------------------------------------------------ */

static int operand_of(const Walk *w, const Op *o, int i) {
    if (i < 0) return AMP_MODEL_NONE;
    const Form form = target_attention_form(w->f, o, i);
    if (target_attention_strides(w->f, o, i))
        return walk_find_operand(w, walk_product_source(w, o->in[i]), form.layout, form.storage);
    for (int k = 0; k < w->operands.len; k++) /* read in rows or panels, in whatever type it has */
        if (walk_operand(w, k)->value.id == o->in[i].id) return k;
    return AMP_MODEL_NONE;
}

static const char *row_kind(Dtype storage) {
    return storage == AMP_DT_BF16 ? "ROW_BF16" : storage == AMP_DT_F16 ? "ROW_F16" : "ROW_F32";
}

/* Of queries that are not numbered in the order of their rows: what is added to a row of this tile. */
static void put_first(const Walk *w, const Shape *q, const DrawNumbers *d, Text *out) {
    const char *queries = emit_dim_factor(w->arena, q->d[q->rank - 2]);
    text_puts(out, "    MAYBE_UNUSED const int64_t n = a->n, t = a->t;\n");
    text_puts(out, "    const int64_t row = a->attention->row, query = a->attention->query;\n");
    text_printf(out, "    op.first += %s + query - row;\n",
                emit_row_number(w->arena, d, arena_printf(w->arena, "((row - query) / %s)", queries), false));
}

/* A counter is a state, or the number 0. */
static amp_status put_counters(const Walk *w, const Op *o, int first, Text *out, amp_error *err) {
    static const char *const names[] = {"seed", "iteration", "micro", "first"};
    for (int i = 0; first >= 0 && first + i < o->n_in; i++) {
        const Op *constant = walk_constant(w, o->in[first + i]);
        const int operand = operand_of(w, o, first + i);
        if (constant)
            text_printf(out, ", .%s = %s", names[i], emit_literal(w->arena, AMP_DT_I64, ir_attr(constant, "value")->f));
        else if (operand >= 0) text_printf(out, ", .%s = *(const int64_t *)a->buffer[%d]", names[i], operand);
        else return amp_fail(err, AMP_INTERNAL, "%s: no counter", walk_name(w));
    }
    return AMP_OK;
}

amp_status cpu_emit_attention(const Walk *w, Text *out, amp_error *err) {
    Arena *a = w->arena;
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, err));
    const AttentionOperands at = ir_attention_operands(w->f, o);
    const Shape *queries = ir_shape(w->f, o->in[at.q]), *keys = ir_shape(w->f, o->in[at.k]);
    const double p = ir_attr(o, "p")->f;
    const bool chooses = at.mask >= 0 && ir_dtype(w->f, o->in[at.mask]) == AMP_DT_BOOL;
    const DrawNumbers d = ir_draw_numbers_of_queries(queries);
    const bool in_order = p == 0.0 || d.in_order;
    text_printf(out, "    %sAttentionOp op = {.scale = %s, .causal = %d, .pairs = %d, .all_keys = %lld",
                in_order ? "const " : "", emit_literal(a, AMP_DT_F32, ir_attr(o, "scale")->f), ir_attr(o, "causal")->b,
                target_attention_form(w->f, o, at.q).storage == AMP_DT_BF16,
                (long long)ir_draw_keys(keys->d[keys->rank - 2]));
    if (at.mask >= 0) text_puts(out, chooses ? ", .mask = MASK_CHOOSES" : ", .mask = MASK_ADDED");
    if (p > 0.0)
        text_printf(out, ",\n        .p = %s, .kept = %s, .key_hash = key0", emit_literal(a, AMP_DT_F32, p),
                    emit_literal(a, AMP_DT_F32, 1.0 / (1.0 - p)));
    AMP_TRY(put_counters(w, o, at.counters, out, err));
    if (o->code == OP_attend_grad)
        text_printf(out, ",\n        .dy = %s, .y = %s", row_kind(target_attention_form(w->f, o, at.dy).storage),
                    row_kind(walk_operand(w, operand_of(w, o, at.y))->storage));
    text_puts(out, "};\n");
    if (!in_order) put_first(w, queries, &d, out);
    text_printf(out, "    attention_%s(a->attention, &op);\n", o->code == OP_attend ? "forward" : "backward");
    return AMP_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void put_rows(Text *t, const char *name, int operand, const Strided *x, bool is_mask) {
    const int rank = x->shape.rank;
    text_printf(t, ",\n    .%s = {.operand = %d, ", name, operand);
    if (is_mask && !dim_varies(x->stride[rank - 1]) && !x->stride[rank - 1].mul) text_puts(t, ".one_step = 1, ");
    text_printf(t, ".at = {.offset = %lld, .pitch = ", (long long)x->offset);
    table_put_dim(t, x->stride[rank - 2]);
    text_puts(t, ", .strides = {");
    for (int i = 0; i < rank - 2; i++) {
        if (i) text_puts(t, ", ");
        table_put_dim(t, x->stride[i]);
    }
    text_puts(t, "}}}");
}

static amp_status put_operand(TableWriter *x, const Walk *w, const Op *o, const char *name, int i,
                              const Shape *scores) {
    Strided at;
    const int operand = operand_of(w, o, i);
    if (i < 0) {
        text_printf(x->t, ",\n    .%s = {.operand = AMP_MODEL_NONE}", name);
        return AMP_OK;
    }
    if (operand < 0 || !walk_strided(w, o->in[i], &at))
        return amp_fail(x->err, AMP_INTERNAL, "%s: attention cannot read %s", walk_name(w), name);
    if (scores) at = ir_strided_repeat(&at, scores);
    put_rows(x->t, name, operand, &at, scores != NULL);
    return AMP_OK;
}

/* Result |r| of the op, [B..., T, H * E], by heads. */
static amp_status put_result(TableWriter *x, const Walk *w, const Op *o, int r, int64_t heads, int number) {
    Strided at;
    const Shape *s = ir_shape(w->f, o->out[r]);
    const char *name = arena_printf(x->m->arena, "result[%d]", number);
    const int operand = walk_find_operand(w, o->out[r], LAYOUT_ROWS, AMP_DT_F32);
    if (operand < 0) {
        text_printf(x->t, ",\n    .%s = {.operand = AMP_MODEL_NONE}", name);
        return AMP_OK;
    }
    if (!ir_strided_dense(w->f, o->out[r], &at))
        return amp_fail(x->err, AMP_INTERNAL, "%s: attention cannot write its results", walk_name(w));
    const int last = s->rank - 1;
    at.shape.rank++;
    at.stride[last + 1] = at.stride[last];
    at.stride[last] = at.stride[last - 1];
    at.stride[last - 1] = dim_const(s->d[last].mul / heads);
    put_rows(x->t, name, operand, &at, false);
    return AMP_OK;
}

static amp_status put_sums(TableWriter *x, const Walk *w, const Op *o, int i) {
    Strided at;
    const Val v = i < 0 ? o->out[1] : o->in[i];
    const int operand = walk_find_operand(w, v, LAYOUT_ROWS, AMP_DT_F32);
    if (operand < 0 && i >= 0) return amp_fail(x->err, AMP_INTERNAL, "%s: the sums are in no buffer", walk_name(w));
    if (operand >= 0 && ir_strided_dense(w->f, v, &at)) put_rows(x->t, "sums", operand, &at, false);
    else text_puts(x->t, ",\n    .sums = {.operand = AMP_MODEL_NONE}");
    return AMP_OK;
}

static void put_sizes(TableWriter *x, const Walk *w, const Op *o, const AttentionOperands *at) {
    const Shape *q = ir_shape(w->f, o->in[at->q]), *k = ir_shape(w->f, o->in[at->k]), *v = ir_shape(w->f, o->in[at->v]);
    const int rank = q->rank;
    text_printf(x->t, ".backward = %d, .storage = %d, .rank = %d, .causal = %d, .dims = {", o->code == OP_attend_grad,
                target_attention_form(w->f, o, at->q).storage, rank - 2, ir_attr(o, "causal")->b);
    for (int i = 0; i < rank - 2; i++) {
        if (i) text_puts(x->t, ", ");
        table_put_dim(x->t, q->d[i]);
    }
    text_puts(x->t, "}, .queries = ");
    table_put_dim(x->t, q->d[rank - 2]);
    text_puts(x->t, ", .keys = ");
    table_put_dim(x->t, k->d[rank - 2]);
    text_printf(x->t, ", .share = %lld, .width = %lld, .v_width = %lld, .y = %d",
                (long long)(q->d[rank - 3].mul / k->d[rank - 3].mul), (long long)q->d[rank - 1].mul,
                (long long)v->d[rank - 1].mul, operand_of(w, o, at->y));
}

amp_status cpu_put_attention(TableWriter *x, const Walk *w, const char *name) {
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, x->err));
    const AttentionOperands at = ir_attention_operands(w->f, o);
    const Shape *q = ir_shape(w->f, o->in[at.q]), *k = ir_shape(w->f, o->in[at.k]);
    const int64_t heads = q->d[q->rank - 3].mul, key_heads = k->d[k->rank - 3].mul;
    const bool grad = o->code == OP_attend_grad;
    Shape scores = *q;
    scores.d[q->rank - 1] = k->d[k->rank - 2];
    text_printf(x->t, "static const amp_model_attention %s_attention = {", name);
    put_sizes(x, w, o, &at);
    AMP_TRY(put_operand(x, w, o, "q", at.q, NULL));
    AMP_TRY(put_operand(x, w, o, "k", at.k, NULL));
    AMP_TRY(put_operand(x, w, o, "v", at.v, NULL));
    AMP_TRY(put_operand(x, w, o, "mask", at.mask, &scores));
    AMP_TRY(put_operand(x, w, o, "dy", at.dy, NULL));
    AMP_TRY(put_sums(x, w, o, at.sums));
    for (int i = 0; i < 3; i++) {
        if (i && !grad) text_printf(x->t, ",\n    .result[%d] = {.operand = AMP_MODEL_NONE}", i);
        else AMP_TRY(put_result(x, w, o, i, i ? key_heads : heads, i));
    }
    text_puts(x->t, "};\n");
    return AMP_OK;
}
