/* gradient.c: the backward pass while it is built; gradients of ops that move elements, of reductions and
 * normalisations, of products, convolutions and pooling. */
#include "passes/training/gradient.h"

#include "passes/training/training.h"

/* ---- the backward pass ------------------------------------------------------------------------------------------- */

Dtype gradient_dtype(const Func *f, Val v) { return ir_dtype(f, v) == AMP_DT_TF32 ? AMP_DT_F32 : ir_dtype(f, v); }

void backward_start(Backward *b, const Op *o, Val dy, const char *const *operands) {
    b->op = o;
    b->dy = dy;
    b->operands = operands;
    b->operand = 0;
    b->emitted = arena_array(b->f->module->arena, int, o->n_in + 2); /* dy's, then the operands' */
}

bool backward_wants(Backward *b, int i) {
    if (i >= b->op->n_in || !b->wanted[b->op->in[i].id]) return false;
    if (b->left_out && b->splits[b->op->out[0].id] && b->left_out[b->op->in[i].id]) return false;
    b->operand = i;
    return true;
}

/* ---- the backward pass: its ops ---------------------------------------------------------------------------------- */

/* What the next op is for: "weight", "output", a number where the op has any number of operands, or NULL. */
static const char *operand_name(const Backward *b) {
    if (b->operand == OUTPUT) return "output";
    const char *name = b->operand < NAMED_OPERANDS ? b->operands[b->operand] : NULL;
    bool counted = !name && ir_op_arity(b->op->code).in_max == MANY;
    return counted ? arena_printf(b->f->module->arena, "%d", b->operand) : name;
}

/* "fc1.linear.grad", "fc1.linear.grad.weight", "loss.div.grad.b_1" */
static const char *next_path(Backward *b) {
    const char *name = operand_name(b);
    int n = b->emitted[b->operand + 1]++;
    Text t;
    text_init(&t, b->f->module->arena);
    text_printf(&t, "%s.%s", b->op->path ? b->op->path : ir_op_info[b->op->code].name, b->word);
    if (name) text_printf(&t, ".%s", name);
    if (n) text_printf(&t, "_%d", n);
    return text_str(&t);
}

/* A cast speaks for the op that wanted it. */
static const char *forward_path(const Op *o) {
    return o->code == OP_cast && o->reason && o->reason->neighbour ? o->reason->neighbour : o->path;
}

static void explain(Backward *b, Op *o) {
    o->path = next_path(b);
    o->layer = b->op->layer;
    o->pos = b->op->pos;
    o->reason = ir_reason(b->f->module, "gradient");
    o->reason->neighbour = forward_path(b->op);
    o->reason->relation = o->reason->neighbour ? "of" : NULL;
}

/* Values of checkpoints are computed again where their elements are read. */
static const Val *operands_now(Backward *b, Opcode code, const Val *in, int n_in) {
    if (!b->checkpoints) return in;
    Val *now = arena_array(b->f->module->arena, Val, n_in + 1);
    for (int i = 0; i < n_in; i++)
        now[i] = ir_reads_elements(&(Op){.code = code}, i) ? checkpoints_read(b->checkpoints, b->op, in[i]) : in[i];
    return now;
}

Op *backward_op_of(Backward *b, Opcode code, const Val *in, int n_in) {
    const Val *now = operands_now(b, code, in, n_in);
    Op *o = ir_op_new(b->f, code, now, n_in);
    explain(b, o);
    return o;
}

Op *backward_op(Backward *b, Opcode code, Val first, Val second) {
    return backward_op_of(b, code, (Val[]){first, second}, second.id ? 2 : 1);
}

Op *backward_op3(Backward *b, Opcode code, Val first, Val second, Val third) {
    return backward_op_of(b, code, (Val[]){first, second, third}, 3);
}

Val backward_result(Backward *b, Op *o, Dtype t) { return ir_make_results(b->f, o, t, NULL); }

Val backward_emit(Backward *b, Opcode code, Dtype t, int n_in, ...) {
    enum { MOST = 5 };
    Val in[MOST];
    va_list args;
    va_start(args, n_in);
    for (int i = 0; i < n_in && i < MOST; i++) in[i] = va_arg(args, Val);
    va_end(args);
    return backward_result(b, backward_op_of(b, code, in, n_in), t);
}

Val backward_reshape(Backward *b, Val v, Shape s) {
    if (shape_same(ir_shape(b->f, v), &s)) return v;
    Op *o = backward_op(b, OP_reshape, v, NO_VAL);
    return ir_result(b->f, o, NULL, ir_dtype(b->f, v), s);
}

Val backward_zeros(Backward *b, Dtype t, const Shape *s) {
    return ir_result(b->f, backward_op_of(b, OP_full, NULL, 0), NULL, t, *s);
}

Val backward_dy_as(Backward *b, Dtype t) {
    if (ir_dtype(b->f, b->dy) == t) return b->dy;
    b->operand = OUTPUT;
    return backward_emit(b, OP_cast, t, 1, b->dy);
}

/* ---- the backward pass: sums of gradients ------------------------------------------------------------------------ */

void backward_give(Backward *b, int i, Val g) {
    Val v = b->op->in[i];
    Dtype t = gradient_dtype(b->f, v);
    b->operand = i;
    if (!shape_same(ir_shape(b->f, g), ir_shape(b->f, v))) g = backward_emit(b, OP_sum_to, ir_dtype(b->f, g), 2, g, v);
    if (ir_dtype(b->f, g) != t) g = backward_emit(b, OP_cast, t, 1, g);
    Val *sum = &b->gradient[v.id];
    *sum = sum->id ? backward_emit(b, OP_add, t, 2, *sum, g) : g;
}

Val backward_gradient(Backward *b, Val v) {
    Val g = b->gradient[v.id];
    bool speaks_for_another =
        ir_dtype(b->f, v) == AMP_DT_TF32; /* the gradient goes on unchanged to the value that was rounded */
    if (g.id && is_numbered(b->f, g) && !is_numbered(b->f, v) && !speaks_for_another)
        ir_rename(b->f, g, arena_printf(b->f->module->arena, "d.%s", ir_value(b->f, v)->name));
    return g;
}

/* ---- movement: each element of dy goes back to where it came from ------------------------------------------------ */

static int64_t resolved_dim(const Backward *b, const char *attr, int rank) {
    int64_t dim = ir_attr(b->op, attr)->i;
    return dim < 0 ? dim + rank : dim;
}

static bool gradient_reshape(Backward *b) {
    backward_give(b, 0, backward_reshape(b, b->dy, *grad_shape(b, grad_operand(b, 0))));
    return true;
}

static bool gradient_transpose(Backward *b) {
    Op *o = backward_op(b, OP_transpose, b->dy, NO_VAL);
    grad_copy_attr(b, o, "a");
    grad_copy_attr(b, o, "b");
    return grad_give_first(b, o, grad_type(b, b->dy));
}

static bool gradient_permute(Backward *b) {
    const Dims *forth = &ir_attr(b->op, "dims")->dims;
    Op *o = backward_op(b, OP_permute, b->dy, NO_VAL);
    Dims *back = &ir_attr(o, "dims")->dims;
    back->count = forth->count;
    for (int i = 0; i < forth->count; i++) back->at[forth->at[i] < 0 ? forth->at[i] + forth->count : forth->at[i]] = i;
    return grad_give_first(b, o, grad_type(b, b->dy));
}

/* backward_give sums what was repeated. */
static bool gradient_expand(Backward *b) {
    backward_give(b, 0, b->dy);
    return true;
}

/* ---- movement of parts ------------------------------------------------------------------------------------------- */

static Val slice(Backward *b, Val v, int64_t dim, int64_t from, int64_t to) {
    Op *o = backward_op(b, OP_slice, v, NO_VAL);
    ir_attr(o, "dim")->i = dim;
    ir_attr(o, "from")->i = from;
    ir_attr(o, "to")->i = to;
    return backward_result(b, o, grad_type(b, v));
}

/* Zeros where x was cut off. */
static bool gradient_slice(Backward *b) {
    const Shape *x = grad_shape(b, grad_operand(b, 0));
    int64_t dim = resolved_dim(b, "dim", x->rank), size = x->d[dim].mul, from = ir_attr(b->op, "from")->i;
    if (from < 0) from += size;
    Op *o = backward_op(b, OP_pad, b->dy, NO_VAL);
    ir_attr(o, "dim")->i = dim;
    ir_attr(o, "before")->i = from;
    ir_attr(o, "after")->i = size - from - grad_shape(b, grad_y(b))->d[dim].mul;
    return grad_give_first(b, o, grad_type(b, b->dy));
}

static bool gradient_pad(Backward *b) {
    const Shape *x = grad_shape(b, grad_operand(b, 0));
    int64_t dim = resolved_dim(b, "dim", x->rank), from = ir_attr(b->op, "before")->i;
    backward_give(b, 0, slice(b, b->dy, dim, from, from + x->d[dim].mul));
    return true;
}

static bool gradient_concat(Backward *b) {
    int64_t dim = resolved_dim(b, "dim", grad_shape(b, grad_y(b))->rank), from = 0;
    for (int i = 0; i < b->op->n_in; i++) {
        int64_t to = from + grad_shape(b, grad_operand(b, i))->d[dim].mul;
        if (backward_wants(b, i)) backward_give(b, i, slice(b, b->dy, dim, from, to));
        from = to;
    }
    return true;
}

static bool gradient_stack(Backward *b) {
    int64_t dim = resolved_dim(b, "dim", grad_shape(b, grad_y(b))->rank);
    for (int i = 0; i < b->op->n_in; i++) {
        if (!backward_wants(b, i)) continue;
        Val part = slice(b, b->dy, dim, i, i + 1);
        backward_give(b, i, backward_reshape(b, part, *grad_shape(b, grad_operand(b, i))));
    }
    return true;
}

/* Rows of dy are added up by id. */
static bool gradient_embedding(Backward *b) {
    Val ids = grad_operand(b, 0), table = grad_operand(b, 1);
    if (backward_wants(b, 1))
        backward_give(b, 1, backward_emit(b, OP_embedding_grad, grad_type_of(b, 1), 3, b->dy, ids, table));
    return true;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static bool spread(Backward *b, bool mean) {
    Dtype t = grad_type_of(b, 0);
    Val dy = backward_dy_as(b, t);
    backward_wants(b, 0);
    Op *o = backward_op(b, OP_broadcast_to, dy, grad_operand(b, 0));
    grad_copy_attr(b, o, "dims");
    ir_attr(o, "mean")->b = mean;
    return grad_give_first(b, o, t);
}

static bool gradient_sum(Backward *b) { return spread(b, false); }
static bool gradient_mean(Backward *b) { return spread(b, true); }

/* max and min */
static bool gradient_extreme(Backward *b) {
    Op *o = backward_op3(b, OP_extreme_grad, b->dy, grad_operand(b, 0), grad_y(b));
    grad_copy_attr(b, o, "dims");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_var(Backward *b) {
    Op *o = backward_op(b, OP_var_grad, b->dy, grad_operand(b, 0));
    grad_copy_attr(b, o, "dims");
    grad_copy_attr(b, o, "correction");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_std(Backward *b) {
    Op *o = backward_op3(b, OP_std_grad, b->dy, grad_operand(b, 0), grad_y(b));
    grad_copy_attr(b, o, "dims");
    grad_copy_attr(b, o, "correction");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

/* ---- normalisations ---------------------------------------------------------------------------------------------- */

/* (dy, x, weight, statistics) -> d x in the dtype of x, d weight and d bias in the dtype of the weight: sums of a
 * 16-bit dy that end in f32.  |rstd| is NO_VAL where there is one statistic. */
static Val norm_grads(Backward *b, Opcode code, Val mean, Val rstd) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1);
    backward_wants(b, 0);
    Val dx = backward_emit(b, code, grad_type_of(b, 0), rstd.id ? 5 : 4, b->dy, x, w, mean, rstd);
    const Op *o = ir_def(b->f, dx);
    for (int i = 1; i < o->n_out; i++) ir_value(b->f, o->out[i])->dtype = grad_type_of(b, 1);
    return dx;
}

static bool norm(Backward *b, Opcode code, Val mean, Val rstd) {
    return grad_give_each(b, norm_grads(b, code, mean, rstd), 0);
}

static bool gradient_batch_norm(Backward *b) { return norm(b, OP_batch_norm_grad, b->op->out[1], b->op->out[3]); }

/* A frozen one: its statistics are numbers. */
static bool gradient_batch_norm_eval(Backward *b) {
    Val dx = norm_grads(b, OP_batch_norm_eval_grad, b->op->in[3], b->op->in[4]);
    grad_copy_attr(b, ir_def(b->f, dx), "eps");
    return grad_give_each(b, dx, 0);
}

/* What a rank adds reaches the losses of all; the objective is their sum, which step_mean.c turns into the mean. */
static bool gradient_sum_ranks(Backward *b) {
    return grad_give_first(b, backward_op(b, OP_sum_ranks, b->dy, NO_VAL), AMP_DT_F32);
}

static bool gradient_layer_norm(Backward *b) { return norm(b, OP_layer_norm_grad, b->op->out[1], b->op->out[2]); }
static bool gradient_rms_norm(Backward *b) { return norm(b, OP_rms_norm_grad, b->op->out[1], NO_VAL); }

/* instance_norm's groups are the channels. */
static bool gradient_group_norm(Backward *b) {
    const AttrValue *groups = ir_attr(b->op, "groups");
    int64_t channels = grad_shape(b, grad_operand(b, 0))->d[1].mul;
    Val dx = norm_grads(b, OP_group_norm_grad, b->op->out[1], b->op->out[2]);
    ir_attr(ir_def(b->f, dx), "groups")->i = groups ? groups->i : channels;
    return grad_give_each(b, dx, 0);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static bool of_y(Backward *b, Opcode code) {
    Op *o = backward_op(b, code, b->dy, grad_y(b));
    grad_copy_attr(b, o, "dim");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_softmax(Backward *b) { return of_y(b, OP_softmax_grad); }
static bool gradient_log_softmax(Backward *b) { return of_y(b, OP_log_softmax_grad); }

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Factors of a product have one dtype; dy differs from theirs where they are tf32, or where the product was made to
 * return f32. */
static Val dy_as_factor(Backward *b) {
    bool needed = backward_wants(b, 0) || backward_wants(b, 1);
    return needed ? backward_dy_as(b, grad_type(b, grad_operand(b, 0))) : NO_VAL;
}

static Val product(Backward *b, int to, Val first, bool ta, Val second, bool tb) {
    Op *o = backward_op(b, OP_matmul, first, second);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return backward_result(b, o, grad_type_of(b, to));
}

static Val sum_over(Backward *b, Val dy, Dims dims) {
    Op *o = backward_op(b, OP_sum, dy, NO_VAL);
    ir_attr(o, "dims")->dims = dims;
    return backward_result(b, o, grad_type(b, dy));
}

/* [..., C] as a matrix of all its rows, for what |operand| (or OUTPUT) is; what is a matrix stays. */
static Val as_matrix(Backward *b, Val v, int operand) {
    Dim rows, cols;
    if (!shape_matrix(grad_shape(b, v), &rows, &cols)) return v;
    b->operand = operand;
    return backward_reshape(b, v, shape_of(2, (Dim[]){rows, cols}));
}

static bool has_matrix_form(Backward *b, Val v) {
    Dim rows, cols;
    if (shape_matrix(grad_shape(b, v), &rows, &cols) && rows.n < 2) return true;
    place_error(b->context, b->op->pos, "%s: the number of rows of an operand is too large, or depends on N twice",
                b->op->path);
    return false;
}

/* From here on dy is a matrix of all its rows. */
static bool dy_becomes_matrix(Backward *b) {
    if (!has_matrix_form(b, grad_operand(b, 0)) || !has_matrix_form(b, b->dy)) return false;
    b->dy = as_matrix(b, b->dy, OUTPUT);
    return true;
}

/* y = x w or, with |tw|, x w^T, where x is [..., k] and w a matrix: the rows of x are one long batch.
 * dx = dy w^T and dw = x^T dy, or dx = dy w and dw = dy^T x. */
static Val row_gradient(Backward *b, bool tw, Val dy) {
    if (!backward_wants(b, 0)) return NO_VAL;
    Val dx = product(b, 0, dy, false, grad_operand(b, 1), !tw);
    return backward_reshape(b, dx, *grad_shape(b, grad_operand(b, 0)));
}

static Val matrix_gradient(Backward *b, bool tw, Val dy) {
    if (!backward_wants(b, 1)) return NO_VAL;
    Val rows = as_matrix(b, grad_operand(b, 0), 1);
    return tw ? product(b, 1, dy, true, rows, false) : product(b, 1, rows, true, dy, false);
}

/* PyTorch's addmm makes dx first, its mm dw; what was made meets other gradients in the order bias, x, w. */
static bool rows_times_matrix(Backward *b, bool tw, bool rows_first) {
    if (!dy_becomes_matrix(b)) return false;
    Val dy = dy_as_factor(b), dx = rows_first ? row_gradient(b, tw, dy) : NO_VAL, dw = matrix_gradient(b, tw, dy);
    if (!rows_first) dx = row_gradient(b, tw, dy);
    if (backward_wants(b, 2)) backward_give(b, 2, sum_over(b, b->dy, (Dims){.count = 1, .at = {0}}));
    grad_give_pair(b, dx, dw);
    return true;
}

static bool gradient_linear(Backward *b) {
    return rows_times_matrix(b, !ir_attr(b->op, "transposed")->b, b->op->n_in == 3);
}

/* y = A B: dA = dy B^T, dB = A^T dy, where A is a or, with ta, a^T; the gradient of a is then dA^T.  Leading dimensions
 * are a batch; those that were broadcast are summed away by backward_give. */
static bool gradient_matmul(Backward *b) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1), dx = NO_VAL, dw = NO_VAL;
    bool ta = ir_attr(b->op, "ta")->b, tb = ir_attr(b->op, "tb")->b;
    if (grad_shape(b, w)->rank == 2 && !ta) return rows_times_matrix(b, tb, false);
    Val dy = dy_as_factor(b);
    if (backward_wants(b, 1)) dw = tb ? product(b, 1, dy, true, x, ta) : product(b, 1, x, !ta, dy, false);
    if (backward_wants(b, 0)) dx = ta ? product(b, 0, w, tb, dy, true) : product(b, 0, dy, false, w, !tb);
    grad_give_pair(b, dx, dw);
    return true;
}

/* ---- convolutions and pooling ------------------------------------------------------------------------------------ */

/* The gradient of operand |to| from dy and the other factor, and |like|, which gives its shape alone. */
static void conv2d_factor(Backward *b, int to, Opcode code, Val dy, Val other, Val like) {
    Op *o = backward_op3(b, code, dy, other, like);
    grad_copy_attrs(b, o);
    backward_give(b, to, backward_result(b, o, grad_type_of(b, to)));
}

static bool gradient_conv2d(Backward *b) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1), factor = dy_as_factor(b);
    if (backward_wants(b, 0)) conv2d_factor(b, 0, OP_conv2d_input_grad, factor, w, x);
    if (backward_wants(b, 1)) conv2d_factor(b, 1, OP_conv2d_weight_grad, factor, x, w);
    if (backward_wants(b, 2)) backward_give(b, 2, sum_over(b, b->dy, (Dims){.count = 3, .at = {0, 2, 3}}));
    return true;
}

/* The rows (axis 0) or columns of zeros that conv_transpose2d puts after x for output_padding of a stride or more. */
static int64_t zeros_after(const Backward *b, int axis) {
    return ir_attr(b->op, "output_padding")->dims.at[axis] / ir_attr(b->op, "stride")->dims.at[axis];
}

static Val with_zeros_after(Backward *b, Val x) {
    for (int axis = 0; axis < 2; axis++) {
        if (!zeros_after(b, axis)) continue;
        Op *o = backward_op(b, OP_pad, x, NO_VAL);
        ir_attr(o, "dim")->i = 2 + axis;
        ir_attr(o, "after")->i = zeros_after(b, axis);
        x = backward_result(b, o, grad_type(b, x));
    }
    return x;
}

static Val without_zeros_after(Backward *b, Val dx, const Shape *x) {
    for (int axis = 0; axis < 2; axis++)
        if (zeros_after(b, axis)) dx = slice(b, dx, 2 + axis, 0, x->d[2 + axis].mul);
    return dx;
}

/* y is what conv2d's gradient makes of x: so conv2d makes d x of dy; d weight takes dy as the image, x as gradient. */
static bool gradient_conv_transpose2d(Backward *b) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1), factor = dy_as_factor(b);
    if (backward_wants(b, 0)) {
        Op *o = backward_op(b, OP_conv2d, factor, w);
        grad_copy_attrs(b, o);
        Val dx = backward_result(b, o, grad_type_of(b, 0));
        backward_give(b, 0, without_zeros_after(b, dx, grad_shape(b, x)));
    }
    if (backward_wants(b, 1)) conv2d_factor(b, 1, OP_conv2d_weight_grad, with_zeros_after(b, x), factor, w);
    if (backward_wants(b, 2)) backward_give(b, 2, sum_over(b, b->dy, (Dims){.count = 3, .at = {0, 2, 3}}));
    return true;
}

/* Which element each window chose is the forward op's second result. */
static bool gradient_max_pool2d(Backward *b) {
    Op *o = backward_op3(b, OP_max_pool2d_grad, b->dy, b->op->out[1], grad_operand(b, 0));
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_top_k(Backward *b) {
    Op *o = backward_op3(b, OP_top_k_grad, b->dy, b->op->out[1], grad_operand(b, 0));
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

/* x gives its shape alone. */
static bool resized(Backward *b, Opcode code) {
    Op *o = backward_op(b, code, b->dy, grad_operand(b, 0));
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_avg_pool2d(Backward *b) { return resized(b, OP_avg_pool2d_grad); }
static bool gradient_adaptive_avg_pool2d(Backward *b) { return resized(b, OP_adaptive_avg_pool2d_grad); }
static bool gradient_upsample(Backward *b) { return resized(b, OP_upsample_grad); }

static bool gradient_global_avg_pool(Backward *b) {
    Op *o = backward_op(b, OP_global_avg_pool_grad, b->dy, grad_operand(b, 0));
    return grad_give_first(b, o, grad_type_of(b, 0));
}

const Gradient gradient_ops[OP_COUNT] = {
    [OP_reshape] = {gradient_reshape},
    [OP_flatten] = {gradient_reshape},
    [OP_transpose] = {gradient_transpose},
    [OP_permute] = {gradient_permute},
    [OP_expand] = {gradient_expand},
    [OP_slice] = {gradient_slice},
    [OP_pad] = {gradient_pad},
    [OP_concat] = {gradient_concat},
    [OP_stack] = {gradient_stack},
    [OP_embedding] = {gradient_embedding, {"ids", "table"}},
    [OP_sum] = {gradient_sum},
    [OP_mean] = {gradient_mean},
    [OP_max] = {gradient_extreme},
    [OP_min] = {gradient_extreme},
    [OP_var] = {gradient_var},
    [OP_std] = {gradient_std},
    [OP_top_k] = {gradient_top_k},
    [OP_batch_norm] = {gradient_batch_norm, {"input", "weight", "bias"}},
    [OP_batch_norm_eval] = {gradient_batch_norm_eval, {"input", "weight", "bias"}},
    [OP_sum_ranks] = {gradient_sum_ranks, {"input"}},
    [OP_layer_norm] = {gradient_layer_norm, {"input", "weight", "bias"}},
    [OP_group_norm] = {gradient_group_norm, {"input", "weight", "bias"}},
    [OP_instance_norm] = {gradient_group_norm, {"input", "weight", "bias"}},
    [OP_rms_norm] = {gradient_rms_norm, {"input", "weight"}},
    [OP_softmax] = {gradient_softmax},
    [OP_log_softmax] = {gradient_log_softmax},
    [OP_linear] = {gradient_linear, {"input", "weight", "bias"}},
    [OP_matmul] = {gradient_matmul, {"a", "b"}},
    [OP_conv2d] = {gradient_conv2d, {"input", "weight", "bias"}},
    [OP_conv_transpose2d] = {gradient_conv_transpose2d, {"input", "weight", "bias"}},
    [OP_max_pool2d] = {gradient_max_pool2d},
    [OP_avg_pool2d] = {gradient_avg_pool2d},
    [OP_adaptive_avg_pool2d] = {gradient_adaptive_avg_pool2d},
    [OP_upsample] = {gradient_upsample},
    [OP_global_avg_pool] = {gradient_global_avg_pool},
};
