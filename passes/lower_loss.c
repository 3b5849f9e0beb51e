/* lower_loss.c: the losses and metrics of classifiers.  A label meets the classes of its row as `iota == label`: no
 * gather, so rows stay in one kernel, and a label outside the classes meets none of them. */
#include "passes/lower.h"

static const Dims FIRST = {.count = 1, .at = {0}}, LAST_OF_TWO = {.count = 1, .at = {1}};
static const bool FOLD_FIRST[MAX_RANK] = {true}, DROP[MAX_RANK] = {false};

/* [N, classes] beside labels [N]. */
static bool is_batch_of_rows(Lowering *l, Val rows, Val labels) {
    const Shape *r = ir_shape(l->f, rows), *t = ir_shape(l->f, labels);
    if (r->rank == 2 && t->rank == 1 && t->d[0].n) return true;
    lower_unsupported(l, "rows of classes other than [N, classes] with labels [N]");
    return false;
}

static Val sum_over_rows(Lowering *l, Val per_row) { return lower_reduce(l, OP_reduce_sum, per_row, FOLD_FIRST, DROP); }

static Val one_where(Lowering *l, Val condition) {
    Val one = lower_number(l, 1.0), zero = lower_number(l, 0.0);
    return lower_select(l, condition, one, zero);
}

/* bool: the row's label counts. */
static Val counted_rows(Lowering *l, Val labels) {
    Val ignore = lower_number_of(l, (double)ir_attr(l->op, "ignore")->i, AMP_DT_I32);
    return lower_unary(l, OP_not, lower_binary(l, OP_eq, labels, ignore));
}

/* max(number of rows that count, 1), which forward and backward share. */
static Val row_count(Lowering *l, Val labels) {
    Val *shared = lower_memo(l, "count %u %lld", labels.id, (long long)ir_attr(l->op, "ignore")->i);
    if (!shared->id) {
        Val count = sum_over_rows(l, one_where(l, counted_rows(l, labels)));
        *shared = lower_binary(l, OP_maximum, count, lower_number(l, 1.0));
    }
    return *shared;
}

/* bool [N, classes]: this class is the row's label, which |label| repeats along the row. */
static Val is_label(Lowering *l, Val label) { return lower_binary(l, OP_eq, lower_iota(l, label), label); }

static double class_count(const Lowering *l, Val rows) { return (double)ir_shape(l->f, rows)->d[1].mul; }

/* sum over counted rows of -((1 - s) logp[label] + s / classes * sum(logp)), divided by their number */
void lower_nll_loss(Lowering *l) {
    Val labels = l->op->in[1];
    if (!is_batch_of_rows(l, l->op->in[0], labels)) return;
    double smoothing = lower_float(l, "label_smoothing");
    Val logp = lower_operand(l, 0), zero = lower_number(l, 0.0);
    Val label = lower_broadcast(l, labels, logp, &LAST_OF_TWO);
    Op *pick = ir_op_new(l->f, OP_reduce_sum, (Val[]){lower_select(l, is_label(l, label), logp, zero)}, 1);
    ir_attr(pick, "dims")->dims = LAST_OF_TWO;
    Val row = ir_make_results(l->f, pick, AMP_DT_F32, NULL);
    if (smoothing != 0) {
        Op *all = ir_op_new(l->f, OP_reduce_sum, &logp, 1);
        ir_attr(all, "dims")->dims = LAST_OF_TWO;
        Val total = ir_make_results(l->f, all, AMP_DT_F32, NULL);
        Val label_share = lower_binary(l, OP_mul, row, lower_number(l, 1.0 - smoothing));
        Val class_share = lower_binary(l, OP_mul, total, lower_number(l, smoothing / class_count(l, logp)));
        row = lower_binary(l, OP_add, label_share, class_share);
    }
    Val loss = lower_unary(l, OP_neg, row);
    Val total = sum_over_rows(l, lower_select(l, counted_rows(l, labels), loss, zero));
    lower_give(l, 0, lower_binary(l, OP_div, total, row_count(l, labels)));
}

/* -g / count * (1 - s + s / classes) at the label, -g / count * s / classes elsewhere, 0 in rows that do not count */
void lower_nll_loss_grad(Lowering *l) {
    Val rows = l->op->in[1], labels = l->op->in[2];
    if (!is_batch_of_rows(l, rows, labels)) return;
    double smoothing = lower_float(l, "label_smoothing"), each = smoothing / class_count(l, rows);
    Val zero = lower_number(l, 0.0), g = lower_operand(l, 0);
    Val share = lower_unary(l, OP_neg, lower_binary(l, OP_div, g, row_count(l, labels)));
    Val hit = share, miss = zero;
    if (smoothing != 0) {
        hit = lower_binary(l, OP_mul, share, lower_number(l, 1.0 - smoothing + each));
        miss = lower_binary(l, OP_mul, share, lower_number(l, each));
    }
    Val label = lower_broadcast(l, labels, rows, &LAST_OF_TWO);
    Val slope = lower_select(l, is_label(l, label), hit, miss);
    lower_give(l, 0, lower_select(l, counted_rows(l, label), slope, zero));
}

/* The first class that equals the row's largest is the label.  NaN equals nothing: a row with NaN has no such class
 * and is wrong. */
void lower_accuracy(Lowering *l) {
    Val logits = l->op->in[0], labels = l->op->in[1];
    if (!is_batch_of_rows(l, logits, labels)) return;
    Val x = lower_operand(l, 0);
    Val largest = lower_binary(l, OP_eq, x, lower_reduce_row(l, OP_reduce_max, x));
    Val index = lower_cast(l, lower_iota(l, x), AMP_DT_F32); /* exact below 2^24 classes */
    Val none = lower_number(l, class_count(l, x));
    Op *first = ir_op_new(l->f, OP_reduce_min, (Val[]){lower_select(l, largest, index, none)}, 1);
    ir_attr(first, "dims")->dims = LAST_OF_TWO;
    Val guess = ir_make_results(l->f, first, AMP_DT_F32, NULL);
    Val right = lower_binary(l, OP_eq, guess, lower_cast(l, labels, AMP_DT_F32));
    Val total = sum_over_rows(l, one_where(l, right));
    lower_give(l, 0, lower_binary(l, OP_div, total, lower_extent(l, labels, &FIRST)));
}

void lower_grad_seed(Lowering *l) { lower_give(l, 0, lower_number(l, 1.0)); }
