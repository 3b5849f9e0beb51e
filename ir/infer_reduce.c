/* infer_reduce.c: shapes of reductions, of the ops that undo them, of losses and of normalisations. */
#include "ir/infer.h"
#include "ir/operands.h"

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static const Dims *dims_of(const Inferring *c) { return &ir_attr(c->o, "dims")->dims; }

/* The dims gone or, with |keep|, 1; none given: all.  Sets |wrong| where a dim is not the operand's or comes twice. */
static Shape without_dims(const Shape *s, const Dims *dims, bool keep, const char **wrong) {
    bool folded[MAX_RANK] = {false};
    for (int i = 0; i < dims->count; i++) {
        int64_t d = dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i];
        if (d < 0 || d >= s->rank) {
            *wrong = "a dim in dims is not one of the operand's";
            return *s;
        }
        if (folded[d]) *wrong = "a dim appears twice in dims";
        folded[d] = true;
    }
    Shape out = shape_scalar();
    for (int i = 0; i < s->rank; i++) {
        bool fold = dims->count == 0 || folded[i];
        if (!fold || keep) out.d[out.rank++] = fold ? dim_const(1) : s->d[i];
    }
    return out;
}

/* Logits or log-probabilities [..., C], operand |i|, and targets [...], the next one. */
static const char *check_targets(const Inferring *c, int i) {
    Shape rows = *infer_in(c, i);
    if (rows.rank == 0) return infer_mismatch(c, "needs [..., classes]");
    rows.rank--;
    if (shape_equal(&rows, infer_in(c, i + 1))) return NULL;
    bool lacks_n = !shape_batch_dims(&rows) && shape_batch_dims(infer_in(c, i + 1));
    return infer_mismatch(c, lacks_n ? "the targets are N, one per sample, and the other operand has no dimension N"
                                     : "the targets are not one per row");
}

/* The optional operand |i|: a weight for each class of operand |logits|. */
static const char *check_class_weight(const Inferring *c, int logits, int i) {
    if (i >= c->o->n_in) return NULL;
    const Shape *x = infer_in(c, logits);
    Shape wanted = shape_of(1, &x->d[x->rank - 1]);
    return infer_check_like(c, i, "the weight of the classes", &wanted);
}

const char *infer_reduce(Inferring *c) {
    const char *wrong = NULL;
    Shape s = without_dims(infer_in(c, 0), dims_of(c), ir_attr(c->o, "keep")->b, &wrong);
    return wrong ? infer_mismatch(c, "%s", wrong) : infer_result(c, infer_dtype(c, 0), s);
}

const char *infer_argmax(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    if (x->rank == 0) return infer_mismatch(c, "needs a dimension to search");
    const char *wrong = infer_check_dim(c);
    Dims dims = {.count = 1, .at = {ir_attr(c->o, "dim")->i}};
    return wrong ? wrong : infer_result(c, AMP_DT_I32, without_dims(x, &dims, false, &wrong));
}

/* |x| with |k| elements along the op's dim. */
static const char *check_chosen(const Inferring *c, const Shape *x, int64_t k, Shape *out) {
    const char *wrong = x->rank ? infer_check_dim(c) : infer_mismatch(c, "needs a dimension to search");
    if (wrong) return wrong;
    *out = *x;
    Dim *size = &out->d[ir_dim_attr(c->o, "dim", x->rank)];
    if (dim_varies(*size)) return infer_varies(c, *size, "the dimension");
    if (k < 1 || k > size->mul)
        return infer_mismatch(c, "k is %lld, not one of 1 .. %lld", (long long)k, (long long)size->mul);
    *size = dim_const(k);
    return NULL;
}

const char *infer_top_k(Inferring *c) {
    Shape chosen;
    const char *wrong = check_chosen(c, infer_in(c, 0), ir_attr(c->o, "k")->i, &chosen);
    if (wrong) return wrong;
    infer_result(c, infer_dtype(c, 0), chosen);
    return infer_result(c, AMP_DT_I32, chosen);
}

/* (dy, indexes, x for its shape) */
const char *infer_top_k_grad(Inferring *c) {
    const Shape *dy = infer_in(c, 0), *x = infer_in(c, 2);
    Shape chosen;
    if (dy->rank != x->rank) return infer_mismatch(c, "the gradient is not of x's rank");
    const char *wrong = x->rank ? infer_check_dim(c) : infer_mismatch(c, "needs a dimension to search");
    if (!wrong) wrong = check_chosen(c, x, dy->d[ir_dim_attr(c->o, "dim", x->rank)].mul, &chosen);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &chosen);
    if (!wrong) wrong = infer_check_like(c, 1, "the tensor of indexes", &chosen);
    return wrong ? wrong : infer_result(c, c->t, *x);
}

/* Operand |i| is what a reduction of |x| over the op's dims gives, without or with kept dims. */
static const char *check_reduced(const Inferring *c, int i, const Shape *x, const char *what) {
    const char *wrong = NULL;
    Shape gone = without_dims(x, dims_of(c), false, &wrong), kept = without_dims(x, dims_of(c), true, &wrong);
    if (wrong) return infer_mismatch(c, "%s", wrong);
    bool fits = shape_equal(infer_in(c, i), &gone) || shape_equal(infer_in(c, i), &kept);
    return fits ? NULL : infer_mismatch(c, "%s", what);
}

/* sum_to, broadcast_to, broadcast, nll_loss_grad: the result looks like the second operand; which first operands fit
 * depends on the op. */
const char *infer_second(Inferring *c) {
    const Shape *first = infer_in(c, 0), *like = infer_in(c, 1);
    Shape wide;
    const char *wrong = NULL;
    if (ir_attr(c->o, "dims")) { /* broadcast_to, broadcast */
        wrong = check_reduced(c, 0, like, "the first is not a reduction of the second");
    } else if (c->o->n_in == 2) { /* sum_to: like was broadcast to first */
        if (!shape_broadcast(like, first, &wide) || !shape_equal(&wide, first))
            wrong = infer_mismatch(c, "the second does not broadcast to the first");
    } else { /* nll_loss_grad: first is the scalar gradient of the loss */
        wrong = first->rank ? infer_mismatch(c, "the first is not a scalar") : check_targets(c, 1);
        if (!wrong) wrong = check_class_weight(c, 1, 3);
    }
    if (wrong) return wrong;
    return infer_result(c, c->o->code == OP_broadcast ? ir_dtype(c->f, c->o->in[0]) : c->t, *like);
}

/* (dy, x, y) */
const char *infer_extreme_grad(Inferring *c) {
    const char *wrong = check_reduced(c, 0, infer_in(c, 1), "the gradient is not a reduction of x");
    if (!wrong) wrong = check_reduced(c, 2, infer_in(c, 1), "y is not a reduction of x");
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 1));
}

/* (dy, x) */
const char *infer_var_grad(Inferring *c) {
    const char *wrong = check_reduced(c, 0, infer_in(c, 1), "the gradient is not a reduction of x");
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 1));
}

/* ---- losses and scalars ------------------------------------------------------------------------------------------ */

const char *infer_nll_loss(Inferring *c) {
    const char *wrong = check_targets(c, 0);
    if (!wrong) wrong = check_class_weight(c, 0, 2);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

static const char *check_pair(const Inferring *c, int first) {
    bool fits = shape_equal(infer_in(c, first), infer_in(c, first + 1));
    if (!fits) return infer_mismatch(c, "shapes differ");
    const AttrValue *reduction = ir_attr(c->o, "reduction");
    bool needs_samples = reduction && !strcmp(reduction->s, "batchmean");
    return needs_samples && !infer_in(c, first)->rank ? infer_mismatch(c, "batchmean needs a dimension of samples")
                                                      : NULL;
}

const char *infer_pair_loss(Inferring *c) {
    const char *wrong = check_pair(c, 0);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

/* (g, a, b) */
const char *infer_pair_loss_grad(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, 1);
    if (!wrong) wrong = check_pair(c, 1);
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 1));
    return infer_result(c, c->t, *infer_in(c, 2));
}

static const char *check_top_k(const Inferring *c) {
    int64_t k = ir_attr(c->o, "k")->i;
    return k < 1 ? infer_mismatch(c, "k must be at least 1") : check_targets(c, 0);
}

static const char *check_dims(const Inferring *c) {
    const char *wrong = NULL;
    without_dims(infer_in(c, 0), &ir_attr(c->o, "dims")->dims, false, &wrong);
    return wrong ? infer_mismatch(c, "%s", wrong) : NULL;
}

/* The metrics and extent read tensors, the others scalars. */
const char *infer_scalar(Inferring *c) {
    const char *wrong = c->o->code == OP_accuracy         ? check_targets(c, 0)
                        : c->o->code == OP_top_k_accuracy ? check_top_k(c)
                        : c->o->code == OP_extent         ? check_dims(c)
                                                          : infer_check_scalars(c, 0, c->o->n_in);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

/* all_finite: operands of any shape. */
const char *infer_scalar_bool(Inferring *c) { return infer_result(c, AMP_DT_BOOL, shape_scalar()); }

const char *infer_scalar_f64(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, c->o->n_in);
    return wrong ? wrong : infer_result(c, AMP_DT_F64, shape_scalar());
}

/* count_samples, global_norm: operands of any shape. */
const char *infer_count(Inferring *c) { return infer_result(c, AMP_DT_F64, shape_scalar()); }

const char *infer_count_labels(Inferring *c) {
    const char *wrong = check_targets(c, 0);
    return wrong ? wrong : infer_result(c, AMP_DT_F64, shape_scalar());
}

/* ---- normalisations ---------------------------------------------------------------------------------------------- */

/* Operands |first| .. |end| are vectors of |size|. */
static const char *check_vectors(const Inferring *c, int first, int end, Dim size) {
    for (int i = first; i < end && i < c->o->n_in; i++) {
        static const char *const names[] = {"operand 1", "operand 2", "operand 3", "operand 4",
                                            "operand 5", "operand 6", "operand 7", "operand 8"};
        Shape vector = shape_of(1, &size);
        const char *wrong = infer_check_like(c, i, names[i], &vector);
        if (wrong) return wrong;
    }
    return NULL;
}

static const char *channels_of(const Inferring *c, const Shape *x, Dim *channels) {
    if (x->rank < 2) return infer_mismatch(c, "needs x [N, C, ...]");
    *channels = x->d[1];
    return infer_varies(c, *channels, "the channels");
}

static const char *last_of(const Inferring *c, const Shape *x, Dim *last) {
    if (x->rank < 1) return infer_mismatch(c, "needs x [..., C]");
    *last = x->d[x->rank - 1];
    return infer_varies(c, *last, "the last dimension");
}

/* A sum of each channel, and a count. */
static Dim sums_of(Dim channels) { return dim_const(channels.mul + 1); }

/* batch_norm also gives three statistics, batch_norm_eval only y. */
const char *infer_batch_norm(Inferring *c) {
    Dim channels;
    const char *wrong = channels_of(c, infer_in(c, 0), &channels);
    if (!wrong) wrong = check_vectors(c, 1, 5, channels);
    if (!wrong) wrong = check_vectors(c, 5, 6, sums_of(channels));
    if (!wrong) wrong = check_vectors(c, 6, 7, channels);
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 0));
    for (int i = 1; i < ir_op_arity(c->o->code).out; i++) infer_result(c, AMP_DT_F32, shape_of(1, &channels));
    return NULL;
}

const char *infer_batch_norm_sums(Inferring *c) {
    Dim channels;
    const char *wrong = channels_of(c, infer_in(c, 0), &channels);
    if (wrong) return wrong;
    Dim sums = sums_of(channels);
    infer_result(c, AMP_DT_F32, shape_of(1, &sums));
    return infer_result(c, AMP_DT_F32, shape_of(1, &channels));
}

/* (x for its shape, own sums, sums of all ranks, own squares) */
const char *infer_batch_norm_squares(Inferring *c) {
    Dim channels;
    const char *wrong = channels_of(c, infer_in(c, 0), &channels);
    if (!wrong) wrong = check_vectors(c, 1, 3, sums_of(channels));
    if (!wrong) wrong = check_vectors(c, 3, 4, channels);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, shape_of(1, &channels));
}

/* (dy, x, mean, rstd): d weight and d bias in one. */
const char *infer_batch_norm_grad_sums(Inferring *c) {
    Dim channels;
    const char *wrong = channels_of(c, infer_in(c, 1), &channels);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", infer_in(c, 1));
    if (!wrong) wrong = check_vectors(c, 2, 4, channels);
    if (wrong) return wrong;
    Dim both = dim_const(2 * channels.mul);
    return infer_result(c, AMP_DT_F32, shape_of(1, &both));
}

/* Ranks have batches of different sizes, so what they add does not depend on them. */
const char *infer_rank_sum(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    if (x->rank > 1) return infer_mismatch(c, "adds vectors or scalars over ranks");
    if (shape_varies(x))
        return infer_mismatch(c, "adds over ranks, but its shape depends on N, which differs between ranks");
    return infer_result(c, AMP_DT_F32, *x);
}

static Shape one_per_row(const Shape *x) {
    Shape s = *x;
    s.d[s.rank - 1] = dim_const(1);
    return s;
}

const char *infer_layer_norm(Inferring *c) {
    Dim last;
    const char *wrong = last_of(c, infer_in(c, 0), &last);
    if (!wrong) wrong = check_vectors(c, 1, 3, last);
    if (wrong) return wrong;
    Shape rows = one_per_row(infer_in(c, 0));
    infer_result(c, c->t, *infer_in(c, 0));
    infer_result(c, AMP_DT_F32, rows);
    return infer_result(c, AMP_DT_F32, rows);
}

static const char *check_groups(const Inferring *c, Dim channels) {
    const AttrValue *groups = ir_attr(c->o, "groups");
    if (!groups) return NULL;
    if (groups->i < 1) return infer_mismatch(c, "groups must be at least 1");
    if (channels.mul % groups->i == 0) return NULL;
    return infer_mismatch(c, "%lld groups do not divide %lld channels", (long long)groups->i, (long long)channels.mul);
}

static bool has_one_element(const Shape *x) {
    for (int i = 2; i < x->rank; i++)
        if (!dim_is_one(x->d[i])) return false;
    return true;
}

static Shape one_per_channel(const Shape *x) { return shape_of(2, x->d); }

/* group_norm; and instance_norm, each of whose groups is a channel. */
const char *infer_group_norm(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    Dim channels;
    const char *wrong = channels_of(c, x, &channels);
    if (!wrong) wrong = check_groups(c, channels);
    if (!wrong) wrong = check_vectors(c, 1, 3, channels);
    if (!wrong && c->o->code == OP_instance_norm && has_one_element(x))
        wrong = infer_mismatch(c, "needs more than one element in each channel of a sample");
    if (wrong) return wrong;
    infer_result(c, c->t, *x);
    infer_result(c, AMP_DT_F32, one_per_channel(x));
    return infer_result(c, AMP_DT_F32, one_per_channel(x));
}

const char *infer_rms_norm(Inferring *c) {
    Dim last;
    const char *wrong = last_of(c, infer_in(c, 0), &last);
    if (!wrong) wrong = check_vectors(c, 1, 2, last);
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 0));
    return infer_result(c, AMP_DT_F32, one_per_row(infer_in(c, 0)));
}

/* (dy, x, weight, factor): d x, d weight */
const char *infer_rms_norm_grad(Inferring *c) {
    const Shape *x = infer_in(c, 1);
    Dim last;
    const char *wrong = last_of(c, x, &last);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", x);
    if (!wrong) wrong = check_vectors(c, 2, 3, last);
    if (wrong) return wrong;
    Shape rows = one_per_row(x);
    wrong = infer_check_like(c, 3, "the factor of each row", &rows);
    if (wrong) return wrong;
    infer_result(c, c->t, *x);
    return infer_result(c, c->t, shape_of(1, &last));
}

/* Operands 3 and 4: the mean and rstd of each row of x, or of each channel of a sample. */
static const char *check_statistics(const Inferring *c, const Shape *x) {
    Shape wanted = c->o->code == OP_layer_norm_grad ? one_per_row(x) : one_per_channel(x);
    const char *wrong = infer_check_like(c, 3, "the mean", &wanted);
    return wrong ? wrong : infer_check_like(c, 4, "the reciprocal deviation", &wanted);
}

/* (dy, x, weight, mean, rstd): d x, d weight, d bias. */
const char *infer_norm_grad(Inferring *c) {
    const Shape *x = infer_in(c, 1);
    bool is_batch = ir_is_batch_norm_grad(c->o);
    Dim size;
    const char *wrong = c->o->code == OP_layer_norm_grad ? last_of(c, x, &size) : channels_of(c, x, &size);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", x);
    if (!wrong) wrong = check_groups(c, size);
    if (!wrong) wrong = check_vectors(c, 2, is_batch ? 5 : 3, size);
    if (!wrong && is_batch) wrong = check_vectors(c, 5, 6, sums_of(size));
    if (!wrong && is_batch) wrong = check_vectors(c, 6, 8, dim_const(2 * size.mul));
    if (!wrong && !is_batch) wrong = check_statistics(c, x);
    if (wrong) return wrong;
    infer_result(c, c->t, *x);
    infer_result(c, c->t, shape_of(1, &size));
    return infer_result(c, c->t, shape_of(1, &size));
}
