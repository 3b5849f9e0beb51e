/* lower_metric.c: rows of classes with their labels, and the metrics of classifiers. */
#include "passes/lower/lower_rows.h"

#include <math.h>

/* ---- rows -------------------------------------------------------------------------------------------------------- */

LabelledRows rows_of(Lowering *l, int x, int labels) {
    LabelledRows r = {.x = l->op->in[x], .labels = l->op->in[labels], .key = l->op->in[labels]};
    Shape rows = *ir_shape(l->f, r.x), count = shape_of(2, (Dim[]){dim_const(1), dim_const(1)});
    for (int i = 0; i + 1 < rows.rank; i++) dim_mul(count.d[0], rows.d[i], &count.d[0]);
    rows = shape_of(2, (Dim[]){count.d[0], rows.d[rows.rank - 1]});
    if (count.d[0].n) count.rank = 1;
    r.x = lower_reshape(l, r.x, &rows);
    r.labels = lower_reshape(l, r.labels, &count);
    return r;
}

static const bool LAST_OF_TWO[MAX_RANK] = {false, true};

Val rows_fold(Lowering *l, Opcode code, Val v) {
    return lower_reduce(l, code, v, LAST_OF_TWO, !ir_shape(l->f, v)->d[0].n);
}

Val rows_label(Lowering *l, const LabelledRows *r) {
    return lower_broadcast(l, r->labels, r->x, &(Dims){.count = 1, .at = {1}});
}

Val rows_is_label(Lowering *l, Val label) { return lower_binary(l, OP_eq, lower_iota(l, label), label); }

Val rows_one_where(Lowering *l, Val condition) {
    Val one = lower_number(l, 1.0), zero = lower_number(l, 0.0);
    return lower_select(l, condition, one, zero);
}

static void give_share(Lowering *l, const LabelledRows *r, Val right) {
    Val total = lower_reduce_all(l, OP_reduce_sum, rows_one_where(l, right));
    bool all[MAX_RANK];
    for (int i = 0; i < MAX_RANK; i++) all[i] = i < ir_shape(l->f, r->labels)->rank;
    lower_give(l, 0, lower_divide_by_count(l, total, lower_count(l, r->labels, all)));
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

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

const LowerRow lower_metric_ops[OP_COUNT] = {
    [OP_accuracy] = {lower_accuracy, TAKES_PLAIN},
    [OP_top_k_accuracy] = {lower_top_k_accuracy, TAKES_PLAIN},
};
