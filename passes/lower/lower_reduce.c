/* lower_reduce.c: reductions over any dimensions, made of the folds that kernels have:
 *     row      [..., C] -> [...]             the last dimension
 *     column   [M.., C] -> [C]               all that lead
 *     segment  [A.., M.., C] -> [A.., C]     a run before the last one
 * and counts of what was folded; the rules of sums, means, extremes and variances, and of the gradients that spread or
 * gather along dimensions. */
#include "passes/lower/lower.h"

#include <math.h>

typedef struct Folding {
    Lowering *l;
    Opcode code;
    Val v;   /* has the elements of s in their order, but perhaps another shape */
    Shape s; /* what is left, without dimensions of size 1 */
    bool folded[MAX_RANK];
    bool has_row; /* the last dimension has been reduced by itself: the dimensions before it may be merged */
} Folding;

/* ---- single folds ------------------------------------------------------------------------------------------------ */

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

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void remove_dims(Folding *z, int from, int count) {
    for (int i = from; i + count < z->s.rank; i++) {
        z->s.d[i] = z->s.d[i + count];
        z->folded[i] = z->folded[i + count];
    }
    z->s.rank -= count;
}

/* Dimensions [from, to) become one. */
static void merge_dims(Folding *z, int from, int to) {
    for (int i = from + 1; i < to; i++)
        if (!dim_mul(z->s.d[from], z->s.d[i], &z->s.d[from]))
            lower_unsupported(z->l, "its shape has more than 2^63 elements");
    if (to - from > 1) remove_dims(z, from + 1, to - from - 1);
}

static Val shaped(Folding *z) { return z->v = lower_reshape(z->l, z->v, &z->s); }

static int find_batch(const Folding *z) {
    for (int i = 0; i < z->s.rank; i++)
        if (z->s.d[i].n) return i;
    return -1;
}

/* Kernels walk samples from the outside: N is to lead, unless all before it is folded with it, or none before it is
 * folded. */
static bool batch_must_lead(const Folding *z, int at) {
    int before = 0;
    for (int i = 0; i < at; i++) before += z->folded[i];
    return at > 0 && (z->folded[at] ? before < at : before > 0);
}

static void move_to_front(Folding *z, int at) {
    Dims dims = {.count = z->s.rank, .at = {at}};
    Shape s = {.rank = z->s.rank, .d = {z->s.d[at]}};
    bool folded[MAX_RANK] = {z->folded[at]};
    for (int i = 0, to = 1; i < z->s.rank; i++) {
        if (i == at) continue;
        s.d[to] = z->s.d[i];
        folded[to] = z->folded[i];
        dims.at[to++] = i;
    }
    z->v = lower_permute(z->l, shaped(z), &dims);
    z->s = s;
    memcpy(z->folded, folded, sizeof folded);
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

/* The last dimension.  [N] and [R, 1] are one number per row; [R] is that only where R depends on N. */
static void fold_row(Folding *z) {
    int last = z->s.rank - 1;
    bool gone = last == 0 || (last == 1 && z->s.d[0].n);
    z->v = reduce_dims(z->l, z->code, shaped(z), last, 1, !gone);
    remove_dims(z, last, 1);
    z->has_row = true;
}

/* A run that ends the shape: its last dimension along the row, so that it joins the kernel that makes it, then the rest
 * as one; N last. */
static void fold_trailing(Folding *z, int first, int last) {
    if (first == 0 && find_batch(z) > 0 && shape_batch_dims(&z->s) == 1) merge_dims(z, 0, last + 1); /* [2, N] */
    else if (z->has_row) merge_dims(z, z->s.d[first].n && first < last ? first + 1 : first, last + 1);
    fold_row(z);
}

static Dim rows_of_sample(const Folding *z, int last) {
    Dim rows = dim_const(1);
    for (int i = 1; i <= last; i++) dim_mul(rows, z->s.d[i], &rows);
    return rows;
}

static bool has_long_samples(const Folding *z, int last) {
    const Dim rows = rows_of_sample(z, last);
    return (rows.n ? rows.mul : dim_assumed(rows, 1)) >= ROWS_PER_SAMPLE;
}

/* [N, M.., C] becomes [N chunks, rows, C]; of what is in memory alone: what is computed would be stored for it. */
static void cut_samples(Folding *z, int last) {
    const Dim samples = z->s.d[0], cols = z->s.d[last + 1];
    const Op *o = ir_def(z->l->f, z->v);
    if (o && o->code != OP_cast) return;
    const Dim rows = rows_of_sample(z, last);
    const bool whole = dim_is_sized(cols) || dim_is_sized(rows);
    const int64_t chunks = whole ? 1 : chunks_of_sample(rows.mul, cols.mul, 1);
    if (chunks == 1 || !dim_mul(samples, dim_const(chunks), &z->s.d[0])) return;
    z->s.d[1] = dim_divided(rows, chunks);
    if (last > 1) remove_dims(z, 2, last - 1);
}

/* A run with kept dimensions after it, which become one.  Where that one depends on N and nothing else is left, the
 * result is a row, [1, N]: [N] would be a column. */
static void fold_rows(Folding *z, int first, int last) {
    merge_dims(z, last + 1, z->s.rank);
    bool in_two = first == 0 && last > 0 && z->s.d[0].n && has_long_samples(z, last);
    if (in_two) {
        const int rank = z->s.rank;
        cut_samples(z, last);
        last -= rank - z->s.rank;
    }
    int from = in_two ? 1 : first, count = last + 1 - from;
    bool is_row = count == z->s.rank - 1 && z->s.d[count].n;
    z->v = reduce_dims(z->l, z->code, shaped(z), from, count, is_row);
    remove_dims(z, from, count);
    z->has_row = false;
}

static bool fold_step(Folding *z) {
    int last = z->s.rank - 1;
    while (last >= 0 && !z->folded[last]) last--;
    if (last < 0) return false;
    int first = last;
    while (first > 0 && z->folded[first - 1]) first--;
    if (last == z->s.rank - 1) fold_trailing(z, first, last);
    else fold_rows(z, first, last);
    return true;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static Shape reduced_shape(const Shape *s, const bool *folded, bool keep) {
    Shape out = {.rank = 0};
    for (int i = 0; i < s->rank; i++)
        if (!folded[i] || keep) out.d[out.rank++] = folded[i] ? dim_const(1) : s->d[i];
    return out;
}

/* The fold that a kernel does at once, where the dims are one of its runs: dims stay or go as asked. */
static bool fold_at_once(Folding *z, const Shape *s, const bool *folded, bool keep) {
    int first = 0, last = s->rank - 1, rank = s->rank;
    while (first < rank && !folded[first]) first++;
    while (last >= 0 && !folded[last]) last--;
    for (int i = first; i <= last; i++)
        if (!folded[i]) return false;
    bool row = first == last && last == rank - 1 && (rank == 1 || !s->d[last].n || shape_batch_dims(s) > 1);
    bool row_fits = keep || rank == 1 || (rank == 2 && s->d[0].n);
    bool column = first == 0 && last == rank - 2 && !(s->d[0].n && last > 0 && has_long_samples(z, last));
    bool segment = first > 0 && last == rank - 2;
    for (int i = first; i <= last && segment; i++) segment = !s->d[i].n;
    if (s->d[rank - 1].n && rank > 1 && !row) return false;
    if (!(row && row_fits) && !column && !segment) return false;
    z->v = reduce_dims(z->l, z->code, z->v, first, last + 1 - first, keep);
    return true;
}

/* Which T is not, whatever number it was given. */
static bool is_always_one(Dim d) { return dim_is_one(d) && !d.sized; }

static bool folds_nothing(const Shape *s, const bool *folded) {
    for (int i = 0; i < s->rank; i++)
        if (folded[i] && !is_always_one(s->d[i])) return false;
    return true;
}

Val lower_reduce(Lowering *l, Opcode code, Val v, const bool *folded, bool keep) {
    const Shape s = *ir_shape(l->f, v), result = reduced_shape(&s, folded, keep);
    Folding z = {.l = l, .code = code, .v = v, .s = s};
    if (folds_nothing(&s, folded)) return lower_reshape(l, v, &result);
    if (fold_at_once(&z, &s, folded, keep)) return z.v;
    z.s.rank = 0;
    for (int i = 0; i < s.rank; i++) {
        if (is_always_one(s.d[i])) continue;
        z.folded[z.s.rank] = folded[i];
        z.s.d[z.s.rank++] = s.d[i];
    }
    int batch = find_batch(&z), kept_before = 0;
    bool moves = batch >= 0 && batch_must_lead(&z, batch);
    for (int i = 0; i < batch && moves; i++) kept_before += !z.folded[i];
    bool restores = moves && !z.folded[batch] && kept_before;
    if (moves) move_to_front(&z, batch);
    Shape kept = reduced_shape(&z.s, z.folded, false);
    while (fold_step(&z)) continue;
    if (restores) { /* N goes back after what was before it */
        Dims dims = {.count = kept.rank};
        for (int i = 0; i < kept.rank; i++) dims.at[i] = i < kept_before ? i + 1 : i == kept_before ? 0 : i;
        z.v = lower_permute(l, lower_reshape(l, z.v, &kept), &dims);
    }
    return lower_reshape(l, z.v, &result);
}

Val lower_reduce_all(Lowering *l, Opcode code, Val v) {
    bool all[MAX_RANK];
    for (int i = 0; i < MAX_RANK; i++) all[i] = true;
    return lower_reduce(l, code, v, all, false);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* Only the shape is read: a cast need not be made for it. */
static Val before_casts(const Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    return o && o->code == OP_cast ? before_casts(l, o->in[0]) : v;
}

Val lower_extent(Lowering *l, Val like, const Dims *dims) {
    like = before_casts(l, like);
    Op *o = ir_op_new(l->f, OP_extent, &like, 1);
    ir_attr(o, "dims")->dims = *dims;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

static int batch_dim(const Shape *s) {
    for (int i = 0; i < s->rank; i++)
        if (s->d[i].n && s->d[i].mul == 1 && s->d[i].div == 1) return i;
    return -1;
}

/* N, as f32, by the shape of an input, so that it waits for no kernel; NO_VAL where no input has it. */
static Val batch_size(Lowering *l) {
    Val *shared = lower_memo(l, "N");
    for (int i = 0; i < l->f->inputs.len && !shared->id; i++) {
        Val in = l->f->inputs.data[i];
        int dim = ir_value(l->f, in)->kind == VAL_INPUT ? batch_dim(ir_shape(l->f, in)) : -1;
        if (dim >= 0) *shared = lower_extent(l, in, &(Dims){.count = 1, .at = {dim}});
    }
    return *shared;
}

/* mul * N: exact until it is rounded once, as N is below 2^24. */
static Val samples_times(Lowering *l, Val n, int64_t mul) {
    if (mul == 1) return n;
    Val *shared = lower_memo(l, "%lld * N", (long long)mul);
    if (!shared->id) *shared = lower_scaled(l, n, (double)mul);
    return *shared;
}

/* N x N: exact until it is rounded once, too, where N is below 2^12. */
static Val product_of_counts(Lowering *l, Val v, const bool *folded) {
    bool last[MAX_RANK] = {false}, others[MAX_RANK] = {false};
    int rank = ir_shape(l->f, v)->rank;
    for (int i = 0; i < rank; i++) (i + 1 < rank ? others : last)[i] = folded[i];
    Val count = lower_count(l, v, others);
    return lower_mul(l, count, lower_count(l, v, last));
}

Val lower_count(Lowering *l, Val v, const bool *folded) {
    const Shape *s = ir_shape(l->f, v);
    Dims dims = {.count = 0};
    Dim count = dim_const(1);
    for (int i = 0; i < s->rank; i++) {
        if (!folded[i]) continue;
        if (count.n && s->d[i].n) return product_of_counts(l, v, folded);
        dims.at[dims.count++] = i;
        dim_mul(count, s->d[i], &count);
    }
    if (!dim_is_sized(count)) return lower_number(l, (double)count.mul);
    Val n = count.div == 1 && !count.t && !count.sized ? batch_size(l) : NO_VAL;
    return n.id ? samples_times(l, n, count.mul) : lower_extent(l, v, &dims);
}

Val lower_divide_by_count(Lowering *l, Val total, Val count) {
    const Op *o = ir_def(l->f, count);
    int exponent;
    bool exact = o->code == OP_const && frexp(ir_attr(o, "value")->f, &exponent) == 0.5;
    return exact ? lower_scaled(l, total, 1.0 / ir_attr(o, "value")->f) : lower_div(l, total, count);
}

Val lower_mean_of(Lowering *l, Val v, const bool *folded, bool keep) {
    return lower_reduce(l, OP_reduce_mean, v, folded, keep); /* in several steps: the mean of means, of as many each */
}

/* ---- the graph op's dims ----------------------------------------------------------------------------------------- */

void lower_folded_dims(const Lowering *l, int rank, bool *folded) {
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    for (int i = 0; i < rank; i++) folded[i] = !dims->count;
    for (int i = 0; i < dims->count; i++) {
        int dim = (int)(dims->at[i] < 0 ? dims->at[i] + rank : dims->at[i]);
        folded[lower_place_of(l, dim, rank)] = true;
    }
}

Val lower_reduced_operand(Lowering *l, int i) {
    const Shape *like = ir_shape(l->f, l->op->out[0]);
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    if (ir_shape(l->f, l->op->in[i])->rank == like->rank) return lower_operand(l, i);
    Shape kept = *like;
    for (int d = 0; d < like->rank && !dims->count; d++) kept.d[d] = dim_const(1);
    for (int d = 0; d < dims->count; d++)
        kept.d[dims->at[d] < 0 ? dims->at[d] + like->rank : dims->at[d]] = dim_const(1);
    return lower_to_form(l, lower_reshape(l, lower_plain_operand(l, i), &kept));
}

/* ---- rules: results ---------------------------------------------------------------------------------------------- */

/* The dims of a reduction's result, which stand in the order of the op's form, by their order in the graph. */
static Dims kept_order(const Lowering *l, int rank, const bool *folded) {
    Dims out = {.count = 0};
    int rest[MAX_RANK], kept = 0, from[MAX_RANK];
    for (int i = 0; i < rank; i++) rest[i] = 0;
    for (int d = 0; d < rank; d++) from[lower_place_of(l, d, rank)] = d;
    for (int i = 0; i < rank; i++)
        if (!folded[i]) rest[from[i]] = 1;
    for (int d = 0; d < rank; d++) rest[d] = rest[d] ? kept++ : -1;
    for (int i = 0; i < rank; i++)
        if (!folded[i]) out.at[out.count++] = rest[from[i]];
    return out;
}

/* |v| is the reduction of a value of rank |rank| in the op's form. */
static void give_reduced(Lowering *l, Val v, int rank, const bool *folded, bool keep) {
    if (keep || l->form == FORM_PLAIN) {
        lower_give(l, 0, v);
        return;
    }
    Dims order = kept_order(l, rank, folded), back = {.count = order.count};
    bool is_last = order.count >= 3 && order.at[0] == 0 && order.at[order.count - 1] == 1;
    for (int i = 1; i + 1 < order.count && is_last; i++) is_last = order.at[i] == i + 1;
    for (int i = 0; i < order.count; i++) back.at[order.at[i]] = i;
    if (is_last) lower_give_as(l, 0, v, FORM_LAST);
    else lower_give_as(l, 0, lower_permute(l, v, &back), FORM_PLAIN);
}

FoldedOperand lower_folded_operand(Lowering *l) {
    FoldedOperand r = {.x = lower_operand(l, 0), .keep = lower_bool(l, "keep")};
    r.rank = ir_shape(l->f, r.x)->rank;
    lower_folded_dims(l, r.rank, r.folded);
    return r;
}

void lower_give_folded(Lowering *l, const FoldedOperand *r, Val v) { give_reduced(l, v, r->rank, r->folded, r->keep); }

/* ---- rules: reductions ------------------------------------------------------------------------------------------- */

static void lower_sum(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    lower_give_folded(l, &r, lower_reduce(l, OP_reduce_sum, r.x, r.folded, r.keep));
}

static void lower_mean(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    lower_give_folded(l, &r, lower_mean_of(l, r.x, r.folded, r.keep));
}

static void lower_extreme(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    lower_give_folded(l, &r,
                      lower_reduce(l, l->op->code == OP_max ? OP_reduce_max : OP_reduce_min, r.x, r.folded, r.keep));
}

/* max(count - correction, 0) */
static Val freedom(Lowering *l, Val x, const bool *folded) {
    double correction = (double)lower_int(l, "correction");
    Val count = lower_count(l, x, folded);
    const Op *o = ir_def(l->f, count);
    if (o->code == OP_const) {
        double rest = ir_attr(o, "value")->f - correction;
        return lower_number(l, rest > 0 ? rest : 0);
    }
    if (correction == 0) return count;
    Val zero = lower_number(l, 0.0);
    return lower_binary(l, OP_maximum, lower_sub(l, count, lower_number(l, correction)), zero);
}

/* x - mean(x): the differences are taken before squares, so that a large mean costs no digits. */
static Val centred(Lowering *l, Val x, const bool *folded) {
    return lower_sub(l, x, lower_mean_of(l, x, folded, true));
}

/* var and std */
static void lower_var(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    Val d = centred(l, r.x, r.folded);
    Val total = lower_reduce(l, OP_reduce_sum, lower_mul(l, d, d), r.folded, r.keep);
    Val variance = lower_divide_by_count(l, total, freedom(l, r.x, r.folded));
    lower_give_folded(l, &r, l->op->code == OP_std ? lower_unary(l, OP_sqrt, variance) : variance);
}

/* ---- rules: gradients -------------------------------------------------------------------------------------------- */

/* dy * 2 (x - mean) / (count - correction) */
static void lower_var_grad(Lowering *l) {
    Val dy = lower_reduced_operand(l, 0), x = lower_operand(l, 1);
    bool folded[MAX_RANK];
    lower_folded_dims(l, ir_shape(l->f, x)->rank, folded);
    Val count = freedom(l, x, folded), share = lower_divide_by_count(l, lower_scaled(l, dy, 2.0), count);
    lower_give(l, 0, lower_mul(l, share, centred(l, x, folded)));
}

/* dy / y * (x - mean) / (count - correction), 0 where y is */
static void lower_std_grad(Lowering *l) {
    Val dy = lower_reduced_operand(l, 0), x = lower_operand(l, 1), y = lower_reduced_operand(l, 2);
    bool folded[MAX_RANK];
    lower_folded_dims(l, ir_shape(l->f, x)->rank, folded);
    Val zero = lower_number(l, 0.0), count = freedom(l, x, folded);
    Val share = lower_select(l, lower_binary(l, OP_eq, y, zero), zero, lower_div(l, dy, y));
    lower_give(l, 0, lower_mul(l, lower_divide_by_count(l, share, count), centred(l, x, folded)));
}

/* dy / (how many equal y) where x equals y, else 0; where y is NaN nothing equals it, and all are NaN, as in
 * PyTorch. */
static void lower_extreme_grad(Lowering *l) {
    Val dy = lower_reduced_operand(l, 0), x = lower_operand(l, 1), y = lower_reduced_operand(l, 2);
    bool folded[MAX_RANK];
    lower_folded_dims(l, ir_shape(l->f, x)->rank, folded);
    Val zero = lower_number(l, 0), one = lower_number(l, 1), equal = lower_binary(l, OP_eq, x, y);
    Val mask = lower_select(l, equal, one, zero), count = lower_reduce(l, OP_reduce_sum, mask, folded, true);
    lower_give(l, 0, lower_mul(l, mask, lower_div(l, dy, count)));
}

/* Sums the dims that `like` lacks, and those where it has size 1 and dy more. */
static void lower_sum_to(Lowering *l) {
    const Shape from = lower_plain_shape(l, l->op->in[0]), to = *ir_shape(l->f, l->op->out[0]);
    bool folded[MAX_RANK] = {0};
    for (int i = 0, lacking = from.rank - to.rank; i < from.rank; i++)
        folded[lower_place_of(l, i, from.rank)] =
            i < lacking || (is_always_one(to.d[i - lacking]) && !is_always_one(from.d[i]));
    if (from.rank == to.rank) {
        lower_give(l, 0, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, true));
        return;
    }
    if (to.rank == 1 && dim_equal(to.d[0], from.d[from.rank - 1])) {
        lower_give_as(l, 0, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, false), FORM_PLAIN);
        return; /* a vector has one form, and what reads it can be in the sum's kernel */
    }
    Val sum = lower_from_form(l, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, true));
    lower_give_as(l, 0, lower_reshape(l, sum, &to), FORM_PLAIN);
}

static void lower_broadcast_to(Lowering *l) {
    const Shape like = lower_shape_in_form(l, ir_shape(l->f, l->op->out[0]));
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    bool folded[MAX_RANK], flat = like.rank < 2 || (like.rank == 2 && !like.d[1].n);
    lower_folded_dims(l, like.rank, folded);
    Val dy = flat ? lower_operand(l, 0) : lower_reduced_operand(l, 0);
    if (lower_bool(l, "mean")) dy = lower_divide_by_count(l, dy, lower_count(l, lower_given(l, 1), folded));
    lower_give(l, 0, flat ? lower_broadcast(l, dy, l->op->in[1], dims) : lower_expand(l, dy, &like));
}

Val lower_broadcast(Lowering *l, Val v, Val like, const Dims *dims) {
    Op *o = ir_op_new(l->f, OP_broadcast, (Val[]){v, like}, 2);
    ir_attr(o, "dims")->dims = *dims;
    return ir_make_results(l->f, o, ir_dtype(l->f, v), NULL);
}

const LowerRow lower_reduce_ops[OP_COUNT] = {
    [OP_sum] = {lower_sum, TAKES_EITHER},
    [OP_mean] = {lower_mean, TAKES_EITHER},
    [OP_max] = {lower_extreme, TAKES_EITHER},
    [OP_min] = {lower_extreme, TAKES_EITHER},
    [OP_var] = {lower_var, TAKES_EITHER},
    [OP_std] = {lower_var, TAKES_EITHER},
    [OP_var_grad] = {lower_var_grad, TAKES_EITHER},
    [OP_std_grad] = {lower_std_grad, TAKES_EITHER},
    [OP_extreme_grad] = {lower_extreme_grad, TAKES_EITHER},
    [OP_sum_to] = {lower_sum_to, TAKES_EITHER},
    [OP_broadcast_to] = {lower_broadcast_to, TAKES_EITHER},
};
