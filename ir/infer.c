/* infer.c: the types of an op's results from its inputs and attributes: one small function per ShapeRule. */
#include "ir/ir.h"

typedef struct Inferring {
    const Func *f;
    const Op *o;
    Dtype t; /* of float results */
    InferredTypes *out;
} Inferring;

/* ---- messages -------------------------------------------------------------------------------- */

/* "linear: WHAT: %x is f32[N, 784], %w is f32[512, 10]" */
static const char *mismatch(const Inferring *c, const char *what) {
    c->out->wrong = arena_printf(c->f->module->arena, "%s: %s", ir_op_info[c->o->code].name, what);
    Text t;
    text_init(&t, c->f->module->arena);
    text_printf(&t, "%s: %s: ", ir_op_info[c->o->code].name, what);
    for (int i = 0; i < c->o->n_in; i++) {
        const Value *v = ir_value(c->f, c->o->in[i]);
        text_printf(&t, "%s%%%s is ", i ? ", " : "", v->name);
        type_print(&t, v->dtype, &v->shape);
    }
    return text_str(&t);
}

static const char *differing(const Inferring *c, const char *what, Dim a, Dim b) {
    Text t;
    text_init(&t, c->f->module->arena);
    Shape pair = shape_of(2, (Dim[]){a, b});
    shape_print(&t, &pair); /* "[784, 512]" */
    return mismatch(c, arena_printf(c->f->module->arena, "%s differ, %s", what, text_str(&t)));
}

/* ---- results --------------------------------------------------------------------------------- */

static const Shape *in_shape(const Inferring *c, int i) { return ir_shape(c->f, c->o->in[i]); }

static const char *result(Inferring *c, Dtype t, Shape s) {
    c->out->dtype[c->out->count] = t;
    c->out->shape[c->out->count++] = s;
    return NULL;
}

static bool is_short_float(Dtype t) {
    return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16 || t == AMP_DT_TF32;
}

/* Integers, booleans and f64 stay what they are; other floats give the wanted float type. */
static Dtype result_dtype(const Inferring *c, int operand) {
    Dtype t = ir_dtype(c->f, c->o->in[operand]);
    return is_short_float(t) ? c->t : t;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Of the ops with one shape, only unscale mixes in a scalar. */
static bool fits_first(const Inferring *c, int i) {
    bool scalar_fits = c->o->code == OP_unscale && in_shape(c, i)->rank == 0;
    return scalar_fits || shape_equal(in_shape(c, 0), in_shape(c, i));
}

/* Softmax and friends: the dim must exist. */
static const char *check_dim(const Inferring *c) {
    const AttrValue *dim = ir_attr(c->o, "dim");
    int rank = in_shape(c, 0)->rank;
    if (dim && (dim->i < -rank || dim->i >= rank))
        return mismatch(c,
                        arena_printf(c->f->module->arena, "dim %lld is not one of the operand's", (long long)dim->i));
    return NULL;
}

static const char *same(Inferring *c) {
    for (int i = 1; i < c->o->n_in; i++)
        if (!fits_first(c, i)) return mismatch(c, "shapes differ");
    const char *wrong = check_dim(c);
    return wrong ? wrong : result(c, result_dtype(c, 0), *in_shape(c, 0));
}

static const char *same_new_dtype(Inferring *c) { return result(c, c->t, *in_shape(c, 0)); }

/* The dims gone or, with |keep|, 1; none given: all.  Sets |wrong| where a dim is not the operand's or comes twice. */
static Shape without_dims(const Shape *s, const Dims *dims, bool keep, const char **wrong) {
    bool folded[MAX_RANK] = {false};
    for (int i = 0; i < dims->count; i++) {
        int64_t d = dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i];
        if (d < 0 || d >= s->rank) {
            *wrong = "a dim in dims is not one of the operand's";
            return *s;
        }
        if (folded[d]) *wrong = "a dim stands twice in dims";
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
    Shape rows = *in_shape(c, i);
    if (rows.rank-- == 0) return mismatch(c, "needs [..., classes]");
    return shape_equal(&rows, in_shape(c, i + 1)) ? NULL : mismatch(c, "the targets are not one per row");
}

/* sum_to, broadcast_to, broadcast, nll_loss_grad: the result looks like the second operand; which first operands fit
 * depends on the op. */
static const char *second(Inferring *c) {
    const Shape *first = in_shape(c, 0), *like = in_shape(c, 1);
    const AttrValue *dims = ir_attr(c->o, "dims");
    Shape wide;
    const char *wrong = NULL;
    if (dims) { /* broadcast_to, broadcast: first is what a reduction of |like| over dims gives */
        Shape reduced = without_dims(like, &dims->dims, false, &wrong),
              kept = without_dims(like, &dims->dims, true, &wrong);
        if (wrong) return mismatch(c, wrong);
        if (!shape_equal(first, &reduced) && !shape_equal(first, &kept))
            return mismatch(c, "the first is no reduction of the second");
    } else if (c->o->n_in == 2) { /* sum_to: like was broadcast to first */
        if (!shape_broadcast(like, first, &wide) || !shape_equal(&wide, first))
            return mismatch(c, "the second does not broadcast to the first");
    } else { /* nll_loss_grad: first is the scalar gradient of the loss */
        if (first->rank) return mismatch(c, "the first is not a scalar");
        wrong = check_targets(c, 1);
        if (wrong) return wrong;
    }
    return result(c, c->o->code == OP_broadcast ? ir_dtype(c->f, c->o->in[0]) : c->t, *like);
}

static const char *broadcast_from(const Inferring *c, int first, Shape *s) {
    *s = *in_shape(c, first);
    for (int i = first + 1; i < c->o->n_in; i++) {
        Shape wider;
        if (!shape_broadcast(s, in_shape(c, i), &wider)) return mismatch(c, "shapes do not broadcast");
        *s = wider;
    }
    return NULL;
}

static const char *broadcast(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_from(c, 0, &s);
    return wrong ? wrong : result(c, result_dtype(c, 0), s);
}

static const char *compare(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_from(c, 0, &s);
    return wrong ? wrong : result(c, AMP_DT_BOOL, s);
}

static const char *select_rule(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_from(c, 0, &s);
    return wrong ? wrong : result(c, result_dtype(c, 1), s);
}

static const char *linear(Inferring *c) {
    const Shape *x = in_shape(c, 0), *w = in_shape(c, 1);
    if (x->rank < 1 || w->rank != 2) return mismatch(c, "needs x [..., in] and a weight of rank 2");
    bool transposed = ir_attr(c->o, "transposed")->b;
    Dim in = w->d[transposed ? 0 : 1], out = w->d[transposed ? 1 : 0];
    if (!dim_equal(x->d[x->rank - 1], in)) return differing(c, "inner dimensions", x->d[x->rank - 1], in);
    if (c->o->n_in == 3) {
        const Shape *bias = in_shape(c, 2);
        if (bias->rank != 1) return mismatch(c, "needs a bias of rank 1");
        if (!dim_equal(bias->d[0], out)) return differing(c, "bias and output", bias->d[0], out);
    }
    Shape s = *x;
    s.d[s.rank - 1] = out;
    return result(c, c->t, s);
}

static const char *matmul(Inferring *c) {
    const Shape *a = in_shape(c, 0), *b = in_shape(c, 1);
    if (a->rank != 2 || b->rank != 2) return mismatch(c, "needs two matrices (other ranks are not built yet)");
    bool ta = ir_attr(c->o, "ta")->b, tb = ir_attr(c->o, "tb")->b;
    Dim inner_a = a->d[ta ? 0 : 1], inner_b = b->d[tb ? 1 : 0];
    if (!dim_equal(inner_a, inner_b)) return differing(c, "inner dimensions", inner_a, inner_b);
    return result(c, c->t, shape_of(2, (Dim[]){a->d[ta ? 1 : 0], b->d[tb ? 0 : 1]}));
}

static const char *reduce(Inferring *c) {
    const char *wrong = NULL;
    Shape s = without_dims(in_shape(c, 0), &ir_attr(c->o, "dims")->dims, ir_attr(c->o, "keep")->b, &wrong);
    return wrong ? mismatch(c, wrong) : result(c, result_dtype(c, 0), s);
}

static const char *nll_loss(Inferring *c) {
    const char *wrong = check_targets(c, 0);
    return wrong ? wrong : result(c, c->t, shape_scalar());
}

static const char *check_scalars(const Inferring *c) {
    for (int i = 0; i < c->o->n_in; i++)
        if (in_shape(c, i)->rank) return mismatch(c, "needs scalars");
    return NULL;
}

/* accuracy and extent read tensors, the others scalars. */
static const char *scalar(Inferring *c) {
    const char *wrong = NULL;
    if (c->o->code == OP_accuracy) wrong = check_targets(c, 0);
    else if (c->o->code != OP_extent) wrong = check_scalars(c);
    else if (without_dims(in_shape(c, 0), &ir_attr(c->o, "dims")->dims, false, &wrong), wrong)
        wrong = mismatch(c, wrong);
    return wrong ? wrong : result(c, c->t, shape_scalar());
}

static const char *scalar_bool(Inferring *c) { return result(c, AMP_DT_BOOL, shape_scalar()); }

static const char *scalar_f64(Inferring *c) {
    const char *wrong = check_scalars(c);
    return wrong ? wrong : result(c, AMP_DT_F64, shape_scalar());
}

static const char *update_scale(Inferring *c) {
    const char *wrong = check_scalars(c);
    if (wrong) return wrong;
    result(c, AMP_DT_F32, shape_scalar());
    result(c, AMP_DT_I32, shape_scalar());
    return result(c, AMP_DT_I32, shape_scalar());
}

/* (w, gradient, step, lr, weight decay, moments...): each result looks like w. */
static const char *optimizer(Inferring *c) {
    for (int i = 1; i < c->o->n_in; i++)
        if (i >= 2 && i < 5 ? in_shape(c, i)->rank != 0 : !shape_equal(in_shape(c, 0), in_shape(c, i)))
            return mismatch(c, i >= 2 && i < 5 ? "step, lr and weight decay are not scalars" : "shapes differ");
    for (int i = 0; i < ir_op_info[c->o->code].out; i++) result(c, AMP_DT_F32, *in_shape(c, 0));
    return NULL;
}

static const char *iota(Inferring *c) {
    const char *wrong = check_dim(c);
    return wrong ? wrong : result(c, AMP_DT_I32, *in_shape(c, 0));
}

static const char *random_rule(Inferring *c) {
    if (in_shape(c, 1)->rank || in_shape(c, 2)->rank) return mismatch(c, "seed and iteration are not scalars");
    return result(c, AMP_DT_F32, *in_shape(c, 0));
}

static const char *nothing(Inferring *c) {
    if (!shape_equal(in_shape(c, 0), in_shape(c, 1))) return mismatch(c, "shapes differ");
    return NULL;
}

static const char *(*const rules[SHAPE_RULE_COUNT])(Inferring *) = {
    [SHAPE_SAME] = same,
    [SHAPE_SAME_NEW_DTYPE] = same_new_dtype,
    [SHAPE_SECOND] = second,
    [SHAPE_BROADCAST] = broadcast,
    [SHAPE_COMPARE] = compare,
    [SHAPE_SELECT] = select_rule,
    [SHAPE_LINEAR] = linear,
    [SHAPE_MATMUL] = matmul,
    [SHAPE_REDUCE] = reduce,
    [SHAPE_NLL_LOSS] = nll_loss,
    [SHAPE_SCALAR] = scalar,
    [SHAPE_SCALAR_ANY] = scalar,
    [SHAPE_SCALAR_BOOL] = scalar_bool,
    [SHAPE_SCALAR_F64] = scalar_f64,
    [SHAPE_UPDATE_SCALE] = update_scale,
    [SHAPE_OPTIMIZER] = optimizer,
    [SHAPE_IOTA] = iota,
    [SHAPE_RANDOM] = random_rule,
    [SHAPE_NOTHING] = nothing,
};

const char *ir_infer(const Func *f, const Op *o, Dtype t, InferredTypes *out) {
    const OpInfo *info = &ir_op_info[o->code];
    Arena *a = f->module->arena;
    *out = (InferredTypes){0};
    if (!rules[info->shape]) return "no op";
    if (o->n_in < info->in_min || o->n_in > info->in_max)
        return info->in_max == info->in_min
                   ? arena_printf(a, "%s: needs %d operands, has %d", info->name, info->in_min, o->n_in)
               : info->in_max == MANY
                   ? arena_printf(a, "%s: needs at least %d operands, has %d", info->name, info->in_min, o->n_in)
                   : arena_printf(a, "%s: needs %d to %d operands, has %d", info->name, info->in_min, info->in_max,
                                  o->n_in);
    for (int i = 0; i < o->n_in; i++)
        if (!o->in[i].id || !ir_value(f, o->in[i]))
            return arena_printf(a, "%s: operand %d is not a value of the function", info->name, i + 1);
    Inferring c = {f, o, t, out};
    return rules[info->shape](&c);
}
