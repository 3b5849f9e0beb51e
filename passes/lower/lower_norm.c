/* lower_norm.c: batch norm over [N, ..., C], layer norm over rows, softmax and argmax along one dimension, and their
 * gradients.  Differences from the mean are taken before squares, so that a large mean costs no digits. */
#include "passes/lower/lower.h"

#include <math.h>

static Val square(Lowering *l, Val v) { return lower_mul(l, v, v); }

static Val sum(Lowering *l, Val v, const bool *folded, bool keep) {
    return lower_reduce(l, OP_reduce_sum, v, folded, keep);
}

/* 1 / sqrt(variance + eps) */
static Val reciprocal_deviation(Lowering *l, Val variance) {
    Val root = lower_unary(l, OP_sqrt, lower_add(l, variance, lower_number(l, lower_float(l, "eps"))));
    return lower_div(l, lower_number(l, 1.0), root);
}

/* ---- batch norm: statistics of a column -------------------------------------------------------------------------- */

/* All dims but the last; and, of these, all but the first. */
static void all_rows(int rank, bool *folded) {
    for (int i = 0; i < MAX_RANK; i++) folded[i] = i < rank - 1;
}

static void rows_of_sample(int rank, bool *folded) {
    all_rows(rank, folded);
    folded[0] = false;
}

/* [N, ..., C] with one row a sample as [N, C]. */
static Shape one_row_per_sample(const Shape *s) { return shape_of(2, (Dim[]){s->d[0], s->d[s->rank - 1]}); }

static bool has_one_row_per_sample(const Shape *s) {
    for (int i = 1; i + 1 < s->rank; i++)
        if (!dim_is_one(s->d[i])) return false;
    return true;
}

typedef struct Moments {
    Val total, count;  /* [C], and f32: the mean is total / count, as of several ranks, so that one has the same bits */
    Val mean, squares; /* [C]; squares: the sum of the squared differences from the mean */
} Moments;

static const bool OVER_SAMPLES[MAX_RANK] = {true};

static Moments moments_of_rows(Lowering *l, Val x) {
    Moments m;
    m.total = sum(l, x, OVER_SAMPLES, false);
    m.count = lower_count(l, x, OVER_SAMPLES);
    m.mean = lower_divide_by_count(l, m.total, m.count);
    m.squares = sum(l, square(l, lower_sub(l, x, m.mean)), OVER_SAMPLES, false);
    return m;
}

static Dim rows_of(const Shape *s) {
    Dim rows = dim_const(1);
    for (int i = 1; i + 1 < s->rank; i++) dim_mul(rows, s->d[i], &rows);
    return rows;
}

/* Of a sample of |s|, [N, M.., C]. */
static int64_t chunks_of(const Shape *s) {
    const Dim rows = rows_of(s), cols = s->d[s->rank - 1];
    if (dim_is_sized(rows) || dim_is_sized(cols)) return 1;
    const int64_t chunks = chunks_of_sample(rows.mul, cols.mul, 2);
    return dim_mul(s->d[0], dim_const(chunks), &(Dim){0}) ? chunks : 1;
}

/* [N, M.., C] as [N, rows, C]; a large sample in chunks, as samples of their own, [N chunks, rows, C]. */
static Val cut_samples(Lowering *l, Val x) {
    const Shape *s = ir_shape(l->f, x);
    const Dim rows = rows_of(s), cols = s->d[s->rank - 1];
    if (rows.n || dim_is_one(rows)) return x;
    const int64_t chunks = chunks_of(s);
    Shape cut = shape_of(3, (Dim[]){s->d[0], dim_divided(rows, chunks), cols});
    if (s->rank < 4 && chunks == 1) return x;
    dim_mul(s->d[0], dim_const(chunks), &cut.d[0]);
    return lower_reshape(l, x, &cut);
}

/* Each sample by itself, in parallel, and then all of them together: groups of equal size M have
 *     mean = mean of the means,   squares = sum of the squares + M * sum((mean of the group - mean)^2)
 * (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979). */
static Moments moments_of_samples(Lowering *l, Val whole) {
    const Val x = cut_samples(l, whole);
    const Shape s = *ir_shape(l->f, x), samples = one_row_per_sample(&s);
    bool rows[MAX_RANK];
    rows_of_sample(s.rank, rows);
    Val own_mean = lower_mean_of(l, x, rows, true);
    Val own_squares = sum(l, square(l, lower_sub(l, x, own_mean)), rows, false);
    Val means = lower_reshape(l, own_mean, &samples);
    Moments between = moments_of_rows(l, means);
    Val within = sum(l, own_squares, OVER_SAMPLES, false);
    Val size = lower_count(l, x, rows);
    Val squares = lower_add(l, within, lower_mul(l, between.squares, size));
    return (Moments){between.total, between.count, between.mean, squares};
}

static Val reduced_to_samples(Lowering *l, Val x) {
    const Shape s = *ir_shape(l->f, x), samples = one_row_per_sample(&s);
    return has_one_row_per_sample(&s) ? lower_reshape(l, x, &samples) : x;
}

static Moments moments_of_batch(Lowering *l, Val x) {
    Val rows = reduced_to_samples(l, x);
    return ir_shape(l->f, rows)->rank == 2 ? moments_of_rows(l, rows) : moments_of_samples(l, x);
}

/* bool: each channel has one value, which has no variance; NO_VAL: it always has more. */
static Val has_one_value(Lowering *l, Val count, const Shape *x) {
    Dim values = dim_const(1);
    for (int i = 0; i + 1 < x->rank; i++)
        if (!dim_mul(values, x->d[i], &values)) return NO_VAL;
    if (values.mul > 1 && !values.sized) return NO_VAL; /* N is a multiple of its divisor */
    return lower_binary(l, OP_le, count, lower_number(l, 1.0));
}

static Val unless_one(Lowering *l, Val one, Val instead, Val v) {
    return one.id ? lower_select(l, one, instead, v) : v;
}

/* rstd * weight, which forward and backward share */
static Val weighted(Lowering *l, Val rstd, Val weight) {
    Val *shared = lower_memo(l, "rstd %u * %u", rstd.id, weight.id);
    if (!shared->id) *shared = lower_mul(l, rstd, weight);
    return *shared;
}

/* ---- batch norm of several ranks: what they add up --------------------------------------------------------------- */

/* Groups, as in moments_of_samples, are as large on all ranks, so sums over ranks of their means, and of how many there
 * are, give the mean of all.  One rank alone has its own bits. */

/* Elements of each channel of a group; 0: that depends on N or T, and elements are counted themselves. */
static double size_of_group(const Shape *s) {
    const Dim rows = rows_of(s);
    if (has_one_row_per_sample(s)) return 1;
    return dim_is_sized(rows) ? 0 : (double)(rows.mul / chunks_of(s));
}

static Val join_vectors(Lowering *l, Val a, Val b) {
    const Dim count = dim_const(ir_shape(l->f, a)->d[0].mul + ir_shape(l->f, b)->d[0].mul);
    const Shape both = shape_of(1, &count);
    Op *o = lower_op_of(l, OP_concat, (Val[]){a, b}, 2);
    return lower_result_of(l, o, AMP_DT_F32, &both);
}

static Val part_of(Lowering *l, Val v, int64_t from, int64_t to) {
    Op *o = ir_op_new(l->f, OP_slice, &v, 1);
    ir_attr(o, "from")->i = from;
    ir_attr(o, "to")->i = to;
    return ir_make_results(l->f, o, AMP_DT_F32, NULL);
}

/* What batch_norm_sums has made, be it of one rank or of all. */
typedef struct ChannelSums {
    Val mean;  /* [C] */
    Val count; /* f32: elements of a channel */
} ChannelSums;

static ChannelSums read_sums(Lowering *l, Val sums, const Shape *x) {
    const int64_t channels = ir_shape(l->f, sums)->d[0].mul - 1;
    const Shape scalar = shape_scalar();
    Val total = part_of(l, sums, 0, channels), count = part_of(l, sums, channels, channels + 1);
    count = lower_reshape(l, count, &scalar);
    Val mean = lower_div(l, total, count);
    const double elements = size_of_group(x);
    return (ChannelSums){mean, elements > 1 ? lower_scaled(l, count, elements) : count};
}

static void lower_batch_norm_sums(Lowering *l) {
    Val x = lower_operand(l, 0);
    const Shape s = *ir_shape(l->f, x), one = shape_of(1, (Dim[]){dim_const(1)});
    Moments m = moments_of_batch(l, x);
    if (size_of_group(&s) == 0) {
        bool rows[MAX_RANK];
        all_rows(s.rank, rows);
        m.count = lower_count(l, x, rows);
        m.total = lower_mul(l, m.mean, m.count);
    }
    Val count = lower_reshape(l, m.count, &one);
    lower_give_as(l, 0, join_vectors(l, m.total, count), FORM_PLAIN);
    lower_give_as(l, 1, m.squares, FORM_PLAIN);
}

/* Of one rank the means are the same number, and nothing is added. */
static void lower_batch_norm_squares(Lowering *l) {
    Val own = lower_plain_operand(l, 1), all = lower_plain_operand(l, 2), squares = lower_plain_operand(l, 3);
    const Shape plain = lower_plain_shape(l, l->op->in[0]), s = lower_shape_in_form(l, &plain);
    ChannelSums mine = read_sums(l, own, &s), theirs = read_sums(l, all, &s);
    Val between = lower_mul(l, square(l, lower_sub(l, mine.mean, theirs.mean)), mine.count);
    lower_give_as(l, 0, lower_add(l, squares, between), FORM_PLAIN);
}

static Moments moments_of_ranks(Lowering *l, Val x, Val *count) {
    const Shape s = *ir_shape(l->f, x);
    ChannelSums all = read_sums(l, lower_plain_operand(l, 5), &s);
    *count = all.count;
    return (Moments){.mean = all.mean, .squares = lower_plain_operand(l, 6)};
}

/* ---- batch norm -------------------------------------------------------------------------------------------------- */

static Moments moments_with_count(Lowering *l, Val x, Val *count) {
    bool rows[MAX_RANK];
    all_rows(ir_shape(l->f, x)->rank, rows);
    Moments m = moments_of_batch(l, x);
    *count = lower_count(l, x, rows);
    return m;
}

static void lower_batch_norm_eval(Lowering *l) {
    Val x = lower_operand(l, 0), weight = lower_plain_operand(l, 1), bias = lower_plain_operand(l, 2);
    Val mean = lower_plain_operand(l, 3), variance = lower_plain_operand(l, 4);
    Val rstd = reciprocal_deviation(l, variance);
    Val scale = lower_mul(l, rstd, weight), d = lower_sub(l, x, mean);
    lower_give(l, 0, lower_add(l, lower_mul(l, d, scale), bias));
}

static void lower_batch_norm(Lowering *l) {
    Val x = lower_operand(l, 0), weight = lower_plain_operand(l, 1), bias = lower_plain_operand(l, 2), count;
    Moments m = l->op->n_in > 5 ? moments_of_ranks(l, x, &count) : moments_with_count(l, x, &count);
    Val one = has_one_value(l, count, ir_shape(l->f, x));
    Val variance = lower_divide_by_count(l, m.squares, count);
    Val mean = unless_one(l, one, lower_plain_operand(l, 3), m.mean);
    Val rstd = reciprocal_deviation(l, unless_one(l, one, lower_plain_operand(l, 4), variance));
    Val unbiased = lower_div(l, m.squares, lower_sub(l, count, lower_number(l, 1.0))); /* 0 / 0 of one value */
    Val scale = weighted(l, rstd, weight), d = lower_sub(l, x, mean);
    if (lower_bool(l, "frozen")) lower_batch_norm_eval(l);
    else lower_give(l, 0, lower_add(l, lower_mul(l, d, scale), bias));
    lower_give_as(l, 1, mean, FORM_PLAIN);
    lower_give_as(l, 2, unbiased, FORM_PLAIN);
    lower_give_as(l, 3, rstd, FORM_PLAIN);
}

/* Of one value a channel mean and rstd are numbers that do not depend on x: then d x = dy (rstd weight).
 * d = x - mean:  d bias = sum(dy), d weight = sum(dy d) rstd,
 * d x = (dy - (d (d weight rstd / count) + d bias / count)) (rstd weight)
 * The vectors come first, and d is taken again, so that nothing as large as x goes through memory but dy and x. */
typedef struct GradSums {
    Val dw, db; /* [C] */
} GradSums;

static GradSums grad_sums_of(Lowering *l, Val dy_parts, Val x_parts, Val mean, Val rstd) {
    bool part_rows[MAX_RANK];
    all_rows(ir_shape(l->f, x_parts)->rank, part_rows);
    Val db = sum(l, dy_parts, part_rows, false), product = lower_mul(l, dy_parts, lower_sub(l, x_parts, mean));
    return (GradSums){lower_mul(l, sum(l, product, part_rows, false), rstd), db};
}

static GradSums read_grad_sums(Lowering *l, Val both) {
    const int64_t channels = ir_shape(l->f, both)->d[0].mul / 2;
    Val dw = part_of(l, both, 0, channels);
    return (GradSums){dw, part_of(l, both, channels, 2 * channels)};
}

static void give_dx(Lowering *l, Val scale, Val count, GradSums of) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val mean = lower_plain_operand(l, 3), rstd = lower_plain_operand(l, 4);
    Val one = has_one_value(l, count, ir_shape(l->f, x)), zero = one.id ? lower_number(l, 0.0) : NO_VAL;
    Val shift = unless_one(l, one, zero, lower_divide_by_count(l, of.db, count));
    Val slope = unless_one(l, one, zero, lower_divide_by_count(l, lower_mul(l, of.dw, rstd), count));
    Val plane = lower_add(l, lower_mul(l, lower_sub(l, x, mean), slope), shift);
    lower_give(l, 0, lower_mul(l, lower_sub(l, dy, plane), scale));
}

static void lower_batch_norm_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), weight = lower_plain_operand(l, 2);
    Val mean = lower_plain_operand(l, 3), rstd = lower_plain_operand(l, 4);
    const bool of_ranks = l->op->n_in > 5;
    const Val dy_parts = of_ranks ? dy : cut_samples(l, dy), x_parts = of_ranks ? x : cut_samples(l, x);
    bool rows[MAX_RANK];
    all_rows(ir_shape(l->f, x)->rank, rows);
    Val scale = weighted(l, rstd, weight);
    Val count = of_ranks ? read_sums(l, lower_plain_operand(l, 5), ir_shape(l->f, x)).count : lower_count(l, x, rows);
    GradSums own =
        of_ranks ? read_grad_sums(l, lower_plain_operand(l, 6)) : grad_sums_of(l, dy_parts, x_parts, mean, rstd);
    give_dx(l, scale, count, of_ranks ? read_grad_sums(l, lower_plain_operand(l, 7)) : own);
    lower_give_as(l, 1, own.dw, FORM_PLAIN);
    lower_give_as(l, 2, own.db, FORM_PLAIN);
}

/* d x = dy (rstd weight) */
static void lower_batch_norm_eval_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), weight = lower_plain_operand(l, 2);
    Val mean = lower_plain_operand(l, 3), rstd = reciprocal_deviation(l, lower_plain_operand(l, 4));
    GradSums own = grad_sums_of(l, cut_samples(l, dy), cut_samples(l, x), mean, rstd);
    lower_give(l, 0, lower_mul(l, dy, lower_mul(l, rstd, weight)));
    lower_give_as(l, 1, own.dw, FORM_PLAIN);
    lower_give_as(l, 2, own.db, FORM_PLAIN);
}

static void lower_batch_norm_grad_sums(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val mean = lower_plain_operand(l, 2), rstd = lower_plain_operand(l, 3);
    const Val dy_parts = cut_samples(l, dy), x_parts = cut_samples(l, x);
    GradSums own = grad_sums_of(l, dy_parts, x_parts, mean, rstd);
    lower_give_as(l, 0, join_vectors(l, own.dw, own.db), FORM_PLAIN);
}

/* ---- layer norm: statistics of a row ----------------------------------------------------------------------------- */

static Val mean_of_row(Lowering *l, Val x) {
    int rank = ir_shape(l->f, x)->rank;
    bool last[MAX_RANK] = {false};
    last[rank - 1] = true;
    return lower_mean_of(l, x, last, true);
}

static void lower_layer_norm(Lowering *l) {
    Val x = lower_operand(l, 0), weight = lower_operand(l, 1);
    Val bias = l->op->n_in == 3 ? lower_operand(l, 2) : NO_VAL;
    Val mean = mean_of_row(l, x), d = lower_sub(l, x, mean);
    Val rstd = reciprocal_deviation(l, mean_of_row(l, square(l, d)));
    Val y = lower_mul(l, lower_mul(l, d, rstd), weight);
    lower_give(l, 0, bias.id ? lower_add(l, y, bias) : y);
    lower_give(l, 1, mean);
    lower_give(l, 2, rstd);
}

static Val normalised(Lowering *l, Val x, Val mean, Val rstd) { return lower_mul(l, lower_sub(l, x, mean), rstd); }

/* z = (x - mean) rstd, g = dy weight:  d x = rstd (g - mean(g) - z mean(g z)), d weight = sum(dy z), d bias = sum(dy)
 * z is taken again for the sums over rows, which stand in another kernel. */
static void lower_layer_norm_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), weight = lower_operand(l, 2);
    Val mean = lower_operand(l, 3), rstd = lower_operand(l, 4);
    bool rows[MAX_RANK];
    all_rows(ir_shape(l->f, x)->rank, rows);
    Val z = normalised(l, x, mean, rstd), g = lower_mul(l, dy, weight);
    Val shift = mean_of_row(l, g), slope = mean_of_row(l, lower_mul(l, g, z));
    Val even = lower_sub(l, g, shift), rest = lower_sub(l, even, lower_mul(l, z, slope));
    lower_give(l, 0, lower_mul(l, rest, rstd));
    const Shape vector = *ir_shape(l->f, weight);
    Val product = lower_mul(l, dy, normalised(l, x, mean, rstd));
    Val dw = sum(l, product, rows, false), db = sum(l, dy, rows, false);
    lower_give(l, 1, lower_reshape(l, dw, &vector));
    lower_give(l, 2, lower_reshape(l, db, &vector));
}

/* ---- group norm: statistics of some channels of a sample --------------------------------------------------------- */

/* Sums over a sample's rows come first, one for each channel, [N, 1.., C]: so nothing as large as x is moved. */
typedef struct Groups {
    Val x;               /* [N, rows.., C] */
    Shape channel;       /* [N, 1.., C] */
    int64_t count, size; /* groups, and channels of each */
    bool rows[MAX_RANK]; /* of x */
} Groups;

static Groups groups_of(Lowering *l, Val x, int64_t count) {
    Shape s = *ir_shape(l->f, x);
    if (s.rank == 2) s = shape_of(3, (Dim[]){s.d[0], dim_const(1), s.d[1]});
    Groups g = {.x = lower_reshape(l, x, &s), .channel = s, .count = count};
    g.size = s.d[s.rank - 1].mul / count;
    rows_of_sample(s.rank, g.rows);
    for (int i = 1; i + 1 < s.rank; i++) g.channel.d[i] = dim_const(1);
    return g;
}

/* The sum or mean of v [N, 1.., C] over each group, at each of its channels. */
static Val over_group(Lowering *l, const Groups *g, Opcode code, Val v) {
    static const bool of_group[MAX_RANK] = {false, false, true};
    if (g->size == 1) return v;
    Shape split = shape_of(3, (Dim[]){g->channel.d[0], dim_const(g->count), dim_const(g->size)});
    Val parts = lower_reshape(l, v, &split), total = lower_reduce(l, code, parts, of_group, true);
    return lower_reshape(l, lower_expand(l, total, &split), &g->channel);
}

static Val elements_of_group(Lowering *l, const Groups *g) {
    const Shape *s = ir_shape(l->f, g->x);
    Dim rows = dim_const(1);
    for (int i = 1; i + 1 < s->rank; i++) dim_mul(rows, s->d[i], &rows);
    if (!dim_is_sized(rows)) return lower_number(l, (double)(rows.mul * g->size));
    return lower_scaled(l, lower_count(l, g->x, g->rows), (double)g->size);
}

/* [N, 1.., C]: the mean and 1 / sqrt(variance + eps) of each channel's group, by the channels' own as in
 * moments_of_samples. */
static void statistics_of_groups(Lowering *l, const Groups *g, Val *mean, Val *rstd) {
    Val own_mean = lower_mean_of(l, g->x, g->rows, true);
    Val squares = sum(l, square(l, lower_sub(l, g->x, own_mean)), g->rows, true);
    *mean = own_mean;
    if (g->size > 1) {
        Val rows = lower_count(l, g->x, g->rows);
        *mean = over_group(l, g, OP_reduce_mean, own_mean);
        Val between = lower_mul(l, square(l, lower_sub(l, own_mean, *mean)), rows);
        squares = over_group(l, g, OP_reduce_sum, lower_add(l, squares, between));
    }
    *rstd = reciprocal_deviation(l, lower_divide_by_count(l, squares, elements_of_group(l, g)));
}

static int64_t number_of_groups(const Lowering *l, Val x) {
    const Shape *s = ir_shape(l->f, x);
    return l->op->code == OP_instance_norm ? s->d[s->rank - 1].mul : lower_int(l, "groups");
}

static void lower_group_norm(Lowering *l) {
    Val x = lower_operand(l, 0), weight = lower_plain_operand(l, 1), mean, rstd;
    Val bias = l->op->n_in == 3 ? lower_plain_operand(l, 2) : NO_VAL;
    const Shape like = *ir_shape(l->f, x), each = *ir_shape(l->f, l->op->out[1]);
    Groups g = groups_of(l, x, number_of_groups(l, x));
    statistics_of_groups(l, &g, &mean, &rstd);
    Val scale = lower_mul(l, rstd, weight), y = lower_mul(l, lower_sub(l, g.x, mean), scale);
    lower_give(l, 0, lower_reshape(l, bias.id ? lower_add(l, y, bias) : y, &like));
    lower_give_as(l, 1, lower_reshape(l, mean, &each), FORM_PLAIN);
    lower_give_as(l, 2, lower_reshape(l, rstd, &each), FORM_PLAIN);
}

/* d = x - mean, and of each channel of a sample s = sum(dy), p = sum(dy d) rstd:  d bias = sum(s), d weight = sum(p),
 * d x = rstd (dy weight - (sum(s weight) + d rstd sum(p weight)) / count), where these sums are over a group. */
static void lower_group_norm_grad(Lowering *l) {
    Val x = lower_operand(l, 1), weight = lower_plain_operand(l, 2);
    const Shape like = *ir_shape(l->f, x);
    Groups g = groups_of(l, x, lower_int(l, "groups"));
    const Shape rows = *ir_shape(l->f, g.x);
    Val dy = lower_reshape(l, lower_operand(l, 0), &rows);
    Val mean = lower_reshape(l, lower_plain_operand(l, 3), &g.channel);
    Val rstd = lower_reshape(l, lower_plain_operand(l, 4), &g.channel);
    Val s = sum(l, dy, g.rows, true), product = lower_mul(l, dy, lower_sub(l, g.x, mean));
    Val p = lower_mul(l, sum(l, product, g.rows, true), rstd), count = elements_of_group(l, &g);
    Val shift = lower_divide_by_count(l, over_group(l, &g, OP_reduce_sum, lower_mul(l, s, weight)), count);
    Val slope = lower_divide_by_count(l, over_group(l, &g, OP_reduce_sum, lower_mul(l, p, weight)), count);
    slope = lower_mul(l, slope, rstd);
    Val plane = lower_add(l, lower_mul(l, lower_sub(l, g.x, mean), slope), shift);
    Val dx = lower_mul(l, lower_sub(l, lower_mul(l, dy, weight), plane), rstd);
    bool all[MAX_RANK];
    all_rows(rows.rank, all);
    lower_give(l, 0, lower_reshape(l, dx, &like));
    lower_give_as(l, 1, sum(l, p, all, false), FORM_PLAIN);
    lower_give_as(l, 2, sum(l, s, all, false), FORM_PLAIN);
}

/* ---- rms norm: the mean square of a row -------------------------------------------------------------------------- */

static void lower_rms_norm(Lowering *l) {
    Val x = lower_operand(l, 0), weight = lower_operand(l, 1);
    Val factor = reciprocal_deviation(l, mean_of_row(l, square(l, x)));
    lower_give(l, 0, lower_mul(l, lower_mul(l, x, factor), weight));
    lower_give(l, 1, factor);
}

/* z = x factor, g = dy weight:  d x = factor (g - z mean(g z)), d weight = sum(dy z) */
static void lower_rms_norm_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), weight = lower_operand(l, 2), factor = lower_operand(l, 3);
    bool rows[MAX_RANK];
    all_rows(ir_shape(l->f, x)->rank, rows);
    Val z = lower_mul(l, x, factor), g = lower_mul(l, dy, weight);
    Val slope = mean_of_row(l, lower_mul(l, g, z)), rest = lower_sub(l, g, lower_mul(l, z, slope));
    lower_give(l, 0, lower_mul(l, rest, factor));
    const Shape vector = *ir_shape(l->f, weight);
    Val again = lower_mul(l, x, factor), dw = sum(l, lower_mul(l, dy, again), rows, false);
    lower_give(l, 1, lower_reshape(l, dw, &vector));
}

typedef struct Line {
    int rank, dim; /* in the op's form */
    bool folded[MAX_RANK];
} Line;

static Line line_of(const Lowering *l) {
    Line line = {.rank = lower_plain_shape(l, l->op->in[0]).rank};
    line.dim = lower_place_of(l, ir_dim_attr(l->op, "dim", line.rank), line.rank);
    line.folded[line.dim] = true;
    return line;
}

static Val along(Lowering *l, Opcode code, Val v) {
    Line line = line_of(l);
    return lower_reduce(l, code, v, line.folded, true);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* x - max(x): exp of it cannot overflow. */
static Val shifted(Lowering *l) {
    Val x = lower_operand(l, 0);
    return lower_sub(l, x, along(l, OP_reduce_max, x));
}

static void lower_softmax(Lowering *l) {
    Val e = lower_unary(l, OP_exp, shifted(l));
    lower_give(l, 0, lower_div(l, e, along(l, OP_reduce_sum, e)));
}

static void lower_log_softmax(Lowering *l) {
    Val s = shifted(l), total = along(l, OP_reduce_sum, lower_unary(l, OP_exp, s));
    lower_give(l, 0, lower_sub(l, s, lower_unary(l, OP_log, total)));
}

/* y (dy - sum(y dy)) */
static void lower_softmax_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    Val dot = along(l, OP_reduce_sum, lower_mul(l, y, dy));
    lower_give(l, 0, lower_mul(l, y, lower_sub(l, dy, dot)));
}

/* dy - exp(y) sum(dy) */
static void lower_log_softmax_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), p = lower_unary(l, OP_exp, lower_operand(l, 1));
    lower_give(l, 0, lower_sub(l, dy, lower_mul(l, p, along(l, OP_reduce_sum, dy))));
}

/* ---- argmax ------------------------------------------------------------------------------------------------------ */

/* i32 that broadcasts to v: the index along the line. */
static Val index_along(Lowering *l, Val v, const Line *line) {
    const Dim size = ir_shape(l->f, v)->d[line->dim];
    if (line->dim == line->rank - 1) return lower_iota(l, v);
    Shape vector = shape_of(1, &size), s = {.rank = line->rank};
    for (int i = 0; i < line->rank; i++) s.d[i] = i == line->dim ? size : dim_const(1);
    Val index = lower_iota(l, lower_expand(l, lower_number_of(l, 0, AMP_DT_I32), &vector));
    return lower_reshape(l, index, &s);
}

/* The least index of those that equal the largest; a NaN makes the largest NaN, which equals nothing, and is itself
 * unequal to itself. */
static void lower_argmax(Lowering *l) {
    Line line = line_of(l);
    Val x = lower_operand(l, 0);
    const Dim size = ir_shape(l->f, x)->d[line.dim];
    Val largest = lower_binary(l, OP_eq, x, along(l, OP_reduce_max, x));
    Val is_nan = lower_unary(l, OP_not, lower_binary(l, OP_eq, x, x));
    Val index = index_along(l, x, &line), found = lower_binary(l, OP_or, largest, is_nan);
    Val none = lower_number_of(l, dim_is_sized(size) ? INT32_MAX : (double)size.mul, AMP_DT_I32);
    Val first = dim_is_one(size)
                    ? lower_expand(l, index, ir_shape(l->f, x))
                    : lower_reduce(l, OP_reduce_min, lower_select(l, found, index, none), line.folded, true);
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    lower_give_as(l, 0, lower_reshape(l, lower_from_form(l, first), &s), FORM_PLAIN);
}

/* ---- the k largest ----------------------------------------------------------------------------------------------- */

typedef struct Chosen {
    Val value, index; /* one for each line */
} Chosen;

/* The largest of what is not |taken| (NO_VAL: of all), the first of equals; a NaN as in argmax. */
static Chosen choose_largest(Lowering *l, Val x, Val index, Val taken, const Line *line) {
    const Dim size = ir_shape(l->f, x)->d[line->dim];
    Val rest = taken.id ? lower_select(l, taken, lower_number(l, -INFINITY), x) : x;
    Chosen out = {.value = along(l, OP_reduce_max, rest)};
    Val is_nan = lower_unary(l, OP_not, lower_binary(l, OP_eq, rest, rest));
    Val found = lower_binary(l, OP_or, lower_binary(l, OP_eq, rest, out.value), is_nan);
    if (taken.id) found = lower_binary(l, OP_and, found, lower_unary(l, OP_not, taken));
    Val places = lower_select(l, found, index, lower_number_of(l, (double)size.mul, AMP_DT_I32));
    out.index = lower_reduce(l, OP_reduce_min, places, line->folded, true);
    return out;
}

static Val put_together(Lowering *l, const Val *parts, int64_t count, int dim) {
    if (count == 1) return parts[0];
    Shape s = *ir_shape(l->f, parts[0]);
    s.d[dim] = dim_const(count);
    Op *o = lower_op_of(l, OP_concat, parts, (int)count);
    ir_attr(o, "dim")->i = dim;
    return lower_result_of(l, o, ir_dtype(l->f, parts[0]), &s);
}

/* k times the largest of those that are left: 2 k folds of x. */
static void lower_top_k(Lowering *l) {
    Line line = line_of(l);
    Val x = lower_operand(l, 0), index = index_along(l, x, &line), taken = NO_VAL;
    const Shape s = *ir_shape(l->f, x);
    int64_t k = lower_int(l, "k");
    if (s.d[line.dim].mul == 1) { /* nothing to search */
        lower_give(l, 0, x);
        lower_give(l, 1, lower_expand(l, index, &s));
        return;
    }
    Val *values = arena_array(l->f->module->arena, Val, k), *indexes = arena_array(l->f->module->arena, Val, k);
    for (int64_t n = 0; n < k; n++) {
        Chosen best = choose_largest(l, x, index, taken, &line);
        values[n] = best.value;
        indexes[n] = best.index;
        if (n + 1 == k) break;
        Val now = lower_binary(l, OP_eq, index, best.index);
        taken = taken.id ? lower_binary(l, OP_or, taken, now) : now;
    }
    lower_give(l, 0, put_together(l, values, k, line.dim));
    lower_give(l, 1, put_together(l, indexes, k, line.dim));
}

static Dim elements_of(const Shape *s, int from, int to) {
    Dim count = dim_const(1);
    for (int i = from; i < to; i++) dim_mul(count, s->d[i], &count);
    return count;
}

/* dy where the index is the element's own: every index is compared with every place. */
static void lower_top_k_grad(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    int dim = ir_dim_attr(l->op, "dim", s.rank);
    Val dy = lower_operand(l, 0), at = lower_operand(l, 1);
    Dim before = elements_of(&s, 0, dim), after = elements_of(&s, dim + 1, s.rank);
    Dim k = ir_shape(l->f, dy)->d[dim], size = s.d[dim], one = dim_const(1);
    bool last = dim_is_one(after); /* [before, size, k]; else [before, k, size, after] */
    Shape chosen = last ? shape_of(3, (Dim[]){before, one, k}) : shape_of(4, (Dim[]){before, k, one, after});
    Shape place = last ? shape_of(3, (Dim[]){one, size, one}) : shape_of(4, (Dim[]){one, one, size, one});
    const bool folded[MAX_RANK] = {[1] = !last, [2] = last};
    Shape vector = shape_of(1, &size);
    Val index = lower_iota(l, lower_expand(l, lower_number_of(l, 0, AMP_DT_I32), &vector));
    index = lower_reshape(l, index, &place);
    dy = lower_reshape(l, dy, &chosen);
    at = lower_reshape(l, at, &chosen);
    Val own = lower_select(l, lower_binary(l, OP_eq, at, index), dy, lower_number(l, 0.0));
    lower_give(l, 0, lower_reshape(l, lower_reduce(l, OP_reduce_sum, own, folded, false), &s));
}

const LowerRow lower_norm_ops[OP_COUNT] = {
    [OP_batch_norm] = {lower_batch_norm, TAKES_LAST},
    [OP_batch_norm_eval] = {lower_batch_norm_eval, TAKES_LAST},
    [OP_batch_norm_grad] = {lower_batch_norm_grad, TAKES_LAST},
    [OP_batch_norm_eval_grad] = {lower_batch_norm_eval_grad, TAKES_LAST},
    [OP_batch_norm_sums] = {lower_batch_norm_sums, TAKES_LAST},
    [OP_batch_norm_squares] = {lower_batch_norm_squares, TAKES_LAST},
    [OP_batch_norm_grad_sums] = {lower_batch_norm_grad_sums, TAKES_LAST},
    [OP_layer_norm] = {lower_layer_norm, TAKES_PLAIN},
    [OP_layer_norm_grad] = {lower_layer_norm_grad, TAKES_PLAIN},
    [OP_group_norm] = {lower_group_norm, TAKES_LAST},
    [OP_instance_norm] = {lower_group_norm, TAKES_LAST},
    [OP_group_norm_grad] = {lower_group_norm_grad, TAKES_LAST},
    [OP_rms_norm] = {lower_rms_norm, TAKES_PLAIN},
    [OP_rms_norm_grad] = {lower_rms_norm_grad, TAKES_PLAIN},
    [OP_softmax] = {lower_softmax, TAKES_EITHER},
    [OP_log_softmax] = {lower_log_softmax, TAKES_EITHER},
    [OP_softmax_grad] = {lower_softmax_grad, TAKES_EITHER},
    [OP_log_softmax_grad] = {lower_log_softmax_grad, TAKES_EITHER},
    [OP_argmax] = {lower_argmax, TAKES_EITHER},
    [OP_top_k] = {lower_top_k, TAKES_EITHER},
    [OP_top_k_grad] = {lower_top_k_grad, TAKES_PLAIN},
};
