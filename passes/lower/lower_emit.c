/* lower_emit.c: what rules are made from: core ops from core values, and what they ask of the graph op. */
#include "passes/lower/lower.h"

#include "base/hash.h"

Val lower_cast(Lowering *l, Val v, Dtype t) {
    return ir_dtype(l->f, v) == t ? v : ir_emit(l->f, OP_cast, t, NULL, 1, v);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

Val lower_number_of(Lowering *l, double value, Dtype t) {
    Val v = ir_emit(l->f, OP_const, t, NULL, 0);
    ir_attr(ir_def(l->f, v), "value")->f = value;
    return v;
}

Val lower_number(Lowering *l, double value) { return lower_number_of(l, value, AMP_DT_F32); }

Val lower_iota(Lowering *l, Val like) { return ir_emit(l->f, OP_iota, AMP_DT_I32, NULL, 1, like); }

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

bool lower_fits(const Lowering *l, Val v, const Shape *s) {
    Dim rows, cols, r, c;
    if (!shape_matrix(s, &rows, &cols) || !shape_matrix(ir_shape(l->f, v), &r, &c)) return false;
    return (dim_equal(r, rows) || dim_is_one(r)) && (dim_equal(c, cols) || dim_is_one(c));
}

Val lower_fit(Lowering *l, Val v, const Shape *s) { return lower_fits(l, v, s) ? v : lower_expand(l, v, s); }

/* The shape of an elementwise op on these. */
static Shape broadcast_shape(const Lowering *l, const Val *in, int n_in) {
    Shape s = *ir_shape(l->f, in[0]), wide;
    for (int i = 1; i < n_in; i++)
        if (shape_broadcast(&s, ir_shape(l->f, in[i]), &wide)) s = wide;
    return s;
}

/* [N] is N rows of one column; beside [.., N] it runs along the rows, which a matrix says as [1, N]. */
static Val along_rows(Lowering *l, Val v, const Shape *s) {
    const Shape *own = ir_shape(l->f, v);
    Shape row = shape_of(2, (Dim[]){dim_const(1), own->d[0]});
    return own->rank == 1 && own->d[0].n && s->rank > 1 ? lower_reshape(l, v, &row) : v;
}

static Val elementwise(Lowering *l, Opcode code, Val *in, int n_in, Dtype t) {
    Shape s = broadcast_shape(l, in, n_in);
    for (int i = 0; i < n_in; i++) in[i] = lower_fit(l, along_rows(l, in[i], &s), &s);
    return ir_make_results(l->f, ir_op_new(l->f, code, in, n_in), t, NULL);
}

Val lower_unary(Lowering *l, Opcode code, Val a) { return ir_emit(l->f, code, ir_dtype(l->f, a), NULL, 1, a); }

Val lower_binary(Lowering *l, Opcode code, Val a, Val b) {
    return elementwise(l, code, (Val[]){a, b}, 2, ir_dtype(l->f, a));
}

Val lower_select(Lowering *l, Val c, Val a, Val b) {
    return elementwise(l, OP_select, (Val[]){c, a, b}, 3, ir_dtype(l->f, a));
}

Val lower_add(Lowering *l, Val a, Val b) { return lower_binary(l, OP_add, a, b); }
Val lower_sub(Lowering *l, Val a, Val b) { return lower_binary(l, OP_sub, a, b); }
Val lower_mul(Lowering *l, Val a, Val b) { return lower_binary(l, OP_mul, a, b); }
Val lower_div(Lowering *l, Val a, Val b) { return lower_binary(l, OP_div, a, b); }
Val lower_scaled(Lowering *l, Val a, double factor) { return lower_mul(l, a, lower_number(l, factor)); }

/* ---- movement ---------------------------------------------------------------------------------------------------- */

Op *lower_op_of(Lowering *l, Opcode code, const Val *in, int n_in) { return ir_op_new(l->f, code, in, n_in); }

Val lower_result_of(Lowering *l, Op *o, Dtype t, const Shape *s) { return ir_result(l->f, o, NULL, t, *s); }

static Val moved_to(Lowering *l, Opcode code, Val v, const Shape *s) {
    if (shape_same(ir_shape(l->f, v), s)) return v;
    return lower_result_of(l, lower_op_of(l, code, &v, 1), ir_dtype(l->f, v), s);
}

Val lower_reshape(Lowering *l, Val v, const Shape *s) { return moved_to(l, OP_reshape, v, s); }

Val lower_expand(Lowering *l, Val v, const Shape *s) { return moved_to(l, OP_expand, v, s); }

static bool keeps_order(const Shape *s, const Dims *dims) {
    int64_t before = -1;
    for (int i = 0; i < dims->count; i++) {
        if (dim_is_one(s->d[dims->at[i]])) continue;
        if (dims->at[i] < before) return false;
        before = dims->at[i];
    }
    return true;
}

Val lower_permute(Lowering *l, Val v, const Dims *dims) {
    const Shape *s = ir_shape(l->f, v);
    Shape to = {.rank = s->rank};
    for (int i = 0; i < s->rank; i++) to.d[i] = s->d[dims->at[i]];
    if (keeps_order(s, dims)) return lower_reshape(l, v, &to);
    Op *o = lower_op_of(l, OP_permute, &v, 1);
    ir_attr(o, "dims")->dims = *dims;
    return lower_result_of(l, o, ir_dtype(l->f, v), &to);
}

Val lower_swap_dims(Lowering *l, int from_end, Val v) {
    const int rank = ir_shape(l->f, v)->rank;
    Dims dims = {.count = rank};
    for (int i = 0; i < rank; i++) dims.at[i] = i;
    dims.at[rank - from_end] = rank - from_end - 1;
    dims.at[rank - from_end - 1] = rank - from_end;
    return lower_permute(l, v, &dims);
}

/* ---- the graph op ------------------------------------------------------------------------------------------------ */

double lower_float(const Lowering *l, const char *name) { return ir_attr(l->op, name)->f; }

bool lower_bool(const Lowering *l, const char *name) { return ir_attr(l->op, name)->b; }

int64_t lower_int(const Lowering *l, const char *name) { return ir_attr(l->op, name)->i; }

void lower_copy_attrs(const Lowering *l, Op *to) {
    const AttrSpec *specs = ir_op_info[to->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++) {
        const AttrValue *from = ir_attr(l->op, specs[i].name);
        if (from) to->attr[i] = *from;
    }
}

void lower_unsupported(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    const Op *o = l->op;
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(a, fmt, args);
    va_end(args);
    l->failed = true;
    place_error(l->c, o->pos, "%s: %s is not supported: %s", o->path ? o->path : "?", ir_op_info[o->code].name, what);
}

/* ---- shared by graph ops ----------------------------------------------------------------------------------------- */

Val *lower_memo(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    va_list args;
    va_start(args, fmt);
    const char *key = arena_vprintf(a, fmt, args);
    va_end(args);
    Memo **slot = &l->memos[amp_hash32(key) % MEMO_SLOTS];
    for (Memo *m = *slot; m; m = m->next)
        if (!strcmp(m->key, key)) return &m->value;
    Memo *memo = arena_new(a, Memo);
    *memo = (Memo){.key = key, .next = *slot};
    *slot = memo;
    return &memo->value;
}

Val lower_counter(Lowering *l, CounterKind kind) {
    Val *shared = lower_memo(l, "counter %s", amp_counter_word(kind));
    if (!shared->id) *shared = ir_use_state(l->f, ir_counter(l->f->module, kind, NO_BLOCK));
    return *shared;
}
