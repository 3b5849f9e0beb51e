/* lower_loss.c: the loss of classifiers, its gradient, and their metrics.  A label meets the classes of its row as
 * `iota == label`: no gather, so rows stay in one kernel, and a label outside the classes meets none of them. */
#include "passes/lower/lower.h"

#include <math.h>

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Rows of classes [..., C] and their labels [...], as losses and metrics of classifiers read them. */
typedef struct LabelledRows {
    Val x;      /* [R, C], in the dtype of the operand */
    Val labels; /* i32, one per row: [R] where R depends on N, else [R, 1] */
    Val key;    /* the operand that holds the labels */
} LabelledRows;

/* Operands |x| and |labels| of the graph op. */
static LabelledRows rows_of(Lowering *l, int x, int labels) {
    LabelledRows r = {.x = l->op->in[x], .labels = l->op->in[labels], .key = l->op->in[labels]};
    Shape rows = *ir_shape(l->f, r.x), count = shape_of(2, (Dim[]){dim_const(1), dim_const(1)});
    for (int i = 0; i + 1 < rows.rank; i++) dim_mul(count.d[0], rows.d[i], &count.d[0]);
    rows = shape_of(2, (Dim[]){count.d[0], rows.d[rows.rank - 1]});
    if (count.d[0].n) count.rank = 1;
    r.x = lower_reshape(l, r.x, &rows);
    Val *shared = lower_memo(l, "labels %u in a row", r.key.id); /* by a loss, its gradient and metrics */
    if (!shared->id) *shared = lower_reshape(l, r.labels, &count);
    r.labels = *shared;
    return r;
}

static const bool LAST_OF_TWO[MAX_RANK] = {false, true};

/* A value of the rows' shape folded to one of the labels'. */
static Val rows_fold(Lowering *l, Opcode code, Val v) {
    return lower_reduce(l, code, v, LAST_OF_TWO, !ir_shape(l->f, v)->d[0].n);
}

/* The labels, repeated along their rows. */
static Val rows_label(Lowering *l, const LabelledRows *r) {
    return lower_broadcast(l, r->labels, r->x, &(Dims){.count = 1, .at = {1}});
}

/* bool [R, C]: this class is the row's label, which |label| repeats along the row. */
static Val rows_is_label(Lowering *l, Val label) { return lower_binary(l, OP_eq, lower_iota(l, label), label); }

/* 1 where the condition holds, else 0. */
static Val rows_one_where(Lowering *l, Val condition) {
    Val one = lower_number(l, 1.0), zero = lower_number(l, 0.0);
    return lower_select(l, condition, one, zero);
}

/* ---- nll_loss ---------------------------------------------------------------------------------------------------- */

/* bool: the row's label counts. */
static Val counted_rows(Lowering *l, Val labels) {
    Val ignore = lower_number_of(l, (double)lower_int(l, "ignore"), AMP_DT_I32);
    return lower_unary(l, OP_not, lower_binary(l, OP_eq, labels, ignore));
}

/* The weight of the classes [C]: operand |i|, if it is there. */
static Val class_weight(Lowering *l, int i) { return i < l->op->n_in ? lower_operand(l, i) : NO_VAL; }

/* The number of rows that count, or, if classes have weights, the sum of their labels' weights.  The loss, its gradient
 * and the weights of ranks share it. */
static Val raw_count(Lowering *l, const LabelledRows *r, Val weight) {
    Val *shared = lower_memo(l, "raw count %u %lld %u", r->key.id, (long long)lower_int(l, "ignore"), weight.id);
    if (shared->id) return *shared;
    if (!weight.id) {
        *shared = lower_reduce_all(l, OP_reduce_sum, rows_one_where(l, counted_rows(l, r->labels)));
        return *shared;
    }
    Val zero = lower_number(l, 0.0), label = rows_label(l, r);
    Val own = rows_fold(l, OP_reduce_sum, lower_select(l, rows_is_label(l, label), weight, zero));
    *shared = lower_reduce_all(l, OP_reduce_sum, lower_select(l, counted_rows(l, r->labels), own, zero));
    return *shared;
}

/* 1 where the sum of weights is 0. */
static Val weight_of_rows(Lowering *l, const LabelledRows *r, Val weight) {
    Val total = raw_count(l, r, weight), zero = lower_number(l, 0.0);
    return lower_select(l, lower_binary(l, OP_eq, total, zero), lower_number(l, 1.0), total);
}

/* max(number of rows that count, 1), or where classes have weights their sum; forward and backward share it. */
static Val row_count(Lowering *l, const LabelledRows *r, Val weight) {
    Val *shared = lower_memo(l, "count %u %lld %u", r->key.id, (long long)lower_int(l, "ignore"), weight.id);
    if (weight.id) {
        if (!shared->id) *shared = weight_of_rows(l, r, weight);
        return *shared;
    }
    if (!shared->id) {
        Val count = raw_count(l, r, NO_VAL);
        *shared = lower_binary(l, OP_maximum, count, lower_number(l, 1.0));
    }
    return *shared;
}

/* n: the batch dimension of |like| is mul * N / div. */
static void lower_count_samples(Lowering *l) {
    Val like = lower_given(l, 0);
    const Shape *s = ir_shape(l->f, like);
    bool batch[MAX_RANK] = {false};
    int dim = 0;
    while (dim + 1 < s->rank && !s->d[dim].n) dim++;
    if (s->rank) batch[dim] = true;
    Val n = lower_count(l, like, batch);
    const double mul = (double)(s->rank ? s->d[dim].mul : 1),
                 div = s->rank && s->d[dim].div ? (double)s->d[dim].div : 1;
    if (div != 1) n = lower_scaled(l, n, div);
    if (mul != 1) n = lower_div(l, n, lower_number(l, mul));
    lower_give(l, 0, lower_cast(l, n, AMP_DT_F64));
}

static void lower_count_labels(Lowering *l) {
    LabelledRows r = rows_of(l, 0, 1);
    lower_give(l, 0, lower_cast(l, raw_count(l, &r, class_weight(l, 2)), AMP_DT_F64));
}

/* v * factor / classes */
static Val per_class(Lowering *l, const LabelledRows *r, Val v, double factor) {
    Dim classes = ir_shape(l->f, r->x)->d[1];
    if (!dim_is_sized(classes)) return lower_scaled(l, v, factor / (double)classes.mul);
    return lower_div(l, lower_scaled(l, v, factor), lower_count(l, r->x, LAST_OF_TWO));
}

/* sum over counted rows of -((1 - s) logp[label] + s / classes * sum(logp)), divided by their number */
static void lower_nll_loss(Lowering *l) {
    double smoothing = lower_float(l, "label_smoothing");
    LabelledRows r = rows_of(l, 0, 1);
    Val logp = lower_widen(l, r.x), zero = lower_number(l, 0.0), label = rows_label(l, &r), weight = class_weight(l, 2);
    if (weight.id) logp = lower_mul(l, logp, weight);
    Val row = rows_fold(l, OP_reduce_sum, lower_select(l, rows_is_label(l, label), logp, zero));
    if (smoothing != 0) {
        Val total = rows_fold(l, OP_reduce_sum, logp);
        Val label_share = lower_scaled(l, row, 1.0 - smoothing);
        Val class_share = per_class(l, &r, total, smoothing);
        row = lower_add(l, label_share, class_share);
    }
    Val loss = lower_unary(l, OP_neg, row);
    Val total = lower_reduce_all(l, OP_reduce_sum, lower_select(l, counted_rows(l, r.labels), loss, zero));
    lower_give(l, 0, lower_div(l, total, row_count(l, &r, weight)));
}

/* v (1 - s + s / classes) */
static Val label_slope(Lowering *l, const LabelledRows *r, Val v, double smoothing) {
    Dim classes = ir_shape(l->f, r->x)->d[1];
    if (!dim_is_sized(classes)) return lower_scaled(l, v, 1.0 - smoothing + smoothing / (double)classes.mul);
    return lower_add(l, lower_scaled(l, v, 1.0 - smoothing), per_class(l, r, v, smoothing));
}

/* -g / count * (1 - s + s / classes) at the label, -g / count * s / classes elsewhere, 0 in rows that do not count */
static void lower_nll_loss_grad(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    LabelledRows r = rows_of(l, 1, 2);
    double smoothing = lower_float(l, "label_smoothing");
    Val zero = lower_number(l, 0.0), g = lower_operand(l, 0), weight = class_weight(l, 3);
    Val share = lower_unary(l, OP_neg, lower_div(l, g, row_count(l, &r, weight)));
    Val hit = share, miss = zero;
    if (smoothing != 0) {
        hit = label_slope(l, &r, share, smoothing);
        miss = per_class(l, &r, share, smoothing);
    }
    Val label = rows_label(l, &r);
    Val slope = lower_select(l, rows_is_label(l, label), hit, miss);
    if (weight.id) slope = lower_mul(l, slope, weight);
    lower_give(l, 0, lower_reshape(l, lower_select(l, counted_rows(l, label), slope, zero), &s));
}

static void lower_grad_seed(Lowering *l) { lower_give(l, 0, lower_number(l, 1.0)); }

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

/* Of the rows that count; of all without a label that is ignored. */
static void give_share(Lowering *l, const LabelledRows *r, Val right) {
    bool all[MAX_RANK];
    if (lower_int(l, "ignore") != NO_LABEL) {
        right = lower_binary(l, OP_and, right, counted_rows(l, r->labels));
        Val total = lower_reduce_all(l, OP_reduce_sum, rows_one_where(l, right));
        lower_give(l, 0, lower_div(l, total, row_count(l, r, NO_VAL)));
        return;
    }
    Val total = lower_reduce_all(l, OP_reduce_sum, rows_one_where(l, right));
    for (int i = 0; i < MAX_RANK; i++) all[i] = i < ir_shape(l->f, r->labels)->rank;
    lower_give(l, 0, lower_divide_by_count(l, total, lower_count(l, r->labels, all)));
}

/* The first class that equals the row's largest is the label.  NaN equals nothing: a row with NaN has no such class
 * and is wrong. */
static void lower_accuracy(Lowering *l) {
    LabelledRows r = rows_of(l, 0, 1);
    Val x = lower_widen(l, r.x);
    Val largest = lower_binary(l, OP_eq, x, lower_reduce_row(l, OP_reduce_max, x));
    Val index = lower_cast(l, lower_iota(l, x), AMP_DT_F32); /* exact below 2^24 classes */
    Val none = lower_number(l, INFINITY);                    /* no label */
    Val guess = rows_fold(l, OP_reduce_min, lower_select(l, largest, index, none));
    give_share(l, &r, lower_binary(l, OP_eq, guess, lower_cast(l, r.labels, AMP_DT_F32)));
}

/* Fewer than k classes stand before the label: larger ones, and equal ones of a lower index.  A label outside the
 * classes is wrong, and so is one whose logit is NaN: it is not equal to itself. */
static void lower_top_k_accuracy(Lowering *l) {
    LabelledRows r = rows_of(l, 0, 1);
    Val x = lower_widen(l, r.x), zero = lower_number(l, 0.0), label = rows_label(l, &r);
    Val is_label = rows_is_label(l, label);
    Val own = lower_reduce_row(l, OP_reduce_sum, lower_select(l, is_label, x, zero));
    Val larger = lower_binary(l, OP_lt, own, x), equal = lower_binary(l, OP_eq, x, own);
    Val lower_index = lower_binary(l, OP_lt, lower_iota(l, x), label);
    Val before = lower_binary(l, OP_or, larger, lower_binary(l, OP_and, equal, lower_index));
    Val count = rows_fold(l, OP_reduce_sum, rows_one_where(l, before));
    Val found = lower_binary(l, OP_and, is_label, equal);
    Val is_found = lower_binary(l, OP_lt, zero, rows_fold(l, OP_reduce_sum, rows_one_where(l, found)));
    Val few = lower_binary(l, OP_lt, count, lower_number(l, (double)lower_int(l, "k")));
    give_share(l, &r, lower_binary(l, OP_and, few, is_found));
}

const LowerRow lower_loss_ops[OP_COUNT] = {
    [OP_nll_loss] = {lower_nll_loss, TAKES_PLAIN},
    [OP_nll_loss_grad] = {lower_nll_loss_grad, TAKES_PLAIN},
    [OP_grad_seed] = {lower_grad_seed, TAKES_PLAIN},
    [OP_count_samples] = {lower_count_samples, TAKES_PLAIN},
    [OP_count_labels] = {lower_count_labels, TAKES_PLAIN},
    [OP_accuracy] = {lower_accuracy, TAKES_PLAIN},
    [OP_top_k_accuracy] = {lower_top_k_accuracy, TAKES_PLAIN},
};
