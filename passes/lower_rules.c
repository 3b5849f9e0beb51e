/* lower_rules.c: the table of rules, and what rules are built from. */
#include "passes/lower.h"

static const LowerFn table[LOWER_RULE_COUNT] = {
#define ENTRY(id, function) [id] = function,
    LOWER_RULES(ENTRY)
#undef ENTRY
};

LowerFn lower_rule(LowerRule rule) { return table[rule]; }

/* ---- emitting ---------------------------------------------------------------------------------------------------- */

Val lower_cast(Lowering *l, Val v, Dtype t) {
    return ir_dtype(l->f, v) == t ? v : ir_emit(l->f, OP_cast, t, NULL, 1, v);
}

Val lower_operand(Lowering *l, int i) {
    Val v = l->op->in[i];
    if (ir_dtype(l->f, v) == AMP_DT_F32) return v;
    for (int w = 0; w < l->wide_count; w++)
        if (l->wide[0][w].id == v.id) return l->wide[1][w];
    Val wide = lower_cast(l, v, AMP_DT_F32);
    if (l->wide_count < 4) {
        l->wide[0][l->wide_count] = v;
        l->wide[1][l->wide_count++] = wide;
    }
    return wide;
}

Val lower_unary(Lowering *l, Opcode code, Val a) { return ir_emit(l->f, code, ir_dtype(l->f, a), NULL, 1, a); }

Val lower_binary(Lowering *l, Opcode code, Val a, Val b) {
    return ir_emit(l->f, code, ir_dtype(l->f, a), NULL, 2, a, b);
}

Val lower_select(Lowering *l, Val c, Val a, Val b) {
    return ir_emit(l->f, OP_select, ir_dtype(l->f, a), NULL, 3, c, a, b);
}

Val lower_number_of(Lowering *l, double value, Dtype t) {
    Val v = ir_emit(l->f, OP_const, t, NULL, 0);
    ir_attr(ir_def(l->f, v), "value")->f = value;
    return v;
}

Val lower_number(Lowering *l, double value) { return lower_number_of(l, value, AMP_DT_F32); }

Val lower_broadcast(Lowering *l, Val v, Val like, const Dims *dims) {
    Op *o = ir_op_new(l->f, OP_broadcast, (Val[]){v, like}, 2);
    ir_attr(o, "dims")->dims = *dims;
    return ir_make_results(l->f, o, ir_dtype(l->f, v), NULL);
}

Val lower_extent(Lowering *l, Val like, const Dims *dims) {
    Op *o = ir_op_new(l->f, OP_extent, &like, 1);
    ir_attr(o, "dims")->dims = *dims;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

Val lower_iota(Lowering *l, Val like) { return ir_emit(l->f, OP_iota, AMP_DT_I32, NULL, 1, like); }

void lower_give(Lowering *l, int i, Val v) {
    if (v.id) l->given[i] = lower_cast(l, v, ir_dtype(l->f, l->op->out[i]));
}

Val *lower_memo(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    va_list args;
    va_start(args, fmt);
    const char *key = arena_vprintf(a, fmt, args);
    va_end(args);
    for (int i = 0; i < l->memos.len; i++)
        if (!strcmp(l->memos.data[i]->key, key)) return &l->memos.data[i]->value;
    Memo *memo = arena_new(a, Memo);
    memo->key = key;
    vec_push(a, &l->memos, memo);
    return &memo->value;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static Val reduce_dims(Lowering *l, Opcode code, Val v, int from, int count, bool keep) {
    Op *o = ir_op_new(l->f, code, &v, 1);
    AttrValue *dims = ir_attr(o, "dims");
    for (int i = 0; i < count; i++) dims->dims.at[dims->dims.count++] = from + i;
    ir_attr(o, "keep")->b = keep;
    return ir_make_results(l->f, o, ir_dtype(l->f, v), NULL);
}

Val lower_reduce_row(Lowering *l, Opcode code, Val v) {
    return reduce_dims(l, code, v, ir_shape(l->f, v)->rank - 1, 1, true);
}

static int count_true(const bool *flags, int count) {
    int n = 0;
    for (int i = 0; i < count; i++) n += flags[i];
    return n;
}

/* Kernels fold along a row or over all rows, so a fold is a chain of those: the last dimension as long as it is folded
 * away, then all that lead. */
Val lower_reduce(Lowering *l, Opcode code, Val v, const bool *folded, const bool *kept) {
    int rank = ir_shape(l->f, v)->rank, left = count_true(folded, rank), last = rank - 1;
    while (left && folded[last]) {
        v = reduce_dims(l, code, v, last, 1, kept[last]);
        left--;
        if (kept[last]) break;
        last--;
    }
    if (!left) return v;
    int leading = last, keeps = count_true(kept, leading);
    if (left != leading || (keeps && keeps != leading)) {
        lower_unsupported(l, "reducing some of the leading dimensions only");
        return NO_VAL;
    }
    return reduce_dims(l, code, v, 0, leading, keeps > 0);
}

/* ---- the graph op ------------------------------------------------------------------------------------------------ */

double lower_float(const Lowering *l, const char *name) { return ir_attr(l->op, name)->f; }

bool lower_bool(const Lowering *l, const char *name) { return ir_attr(l->op, name)->b; }

bool lower_dim_is_last(Lowering *l) {
    int64_t dim = ir_attr(l->op, "dim")->i;
    int rank = ir_shape(l->f, l->op->in[0])->rank;
    if (dim == -1 || dim == rank - 1) return true;
    lower_unsupported(l, "dim = %lld; only the last dimension (-1) is", (long long)dim);
    return false;
}

void lower_unsupported(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    const Op *o = l->op;
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(a, fmt, args);
    va_end(args);
    l->failed = true;
    place_error(l->c, o->pos, "%s: %s: not built yet: %s", o->path ? o->path : "?", ir_op_info[o->code].name, what);
}
