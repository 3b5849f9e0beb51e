/* training_ops.c: losses and metrics, and what a training step does with gradients: loss scaling, clipping, schedules,
 * optimizers. */
#include "ir/interp/ops.h"

#include <math.h>

#include "base/scale_range.h"

/* ---- losses and metrics of classes ------------------------------------------------------------------------------- */

static int64_t classes(const InterpTensor *logp) { return logp->dims[logp->rank - 1]; }

static bool is_counted(const Running *r, double target) { return target != (double)interp_int(r, "ignore"); }

/* The weight of class |c|: of the operand after the targets, if it is there. */
static double weight_of(const Running *r, int operand, int64_t c) {
    return operand < r->op->n_in ? r->in[operand]->data[c] : 1.0;
}

/* What the loss divides by: the weights of the counted targets.  A target that is no class has none, or 1 where classes
 * have no weights. */
static double counted_weight(const Running *r, const InterpTensor *targets, int operand) {
    double total = 0.0;
    for (int64_t i = 0; i < targets->count; i++) {
        double t = targets->data[i];
        bool is_class = operand >= r->op->n_in || (t >= 0 && t < (double)r->in[operand]->count);
        if (is_counted(r, t) && is_class) total += weight_of(r, operand, (int64_t)t);
    }
    return total;
}

/* The weight of class c in a row's loss: 1 - s at the target, and s / C everywhere. */
static double class_weight(const Running *r, const InterpTensor *logp, int64_t c, double target) {
    double smoothing = interp_float(r, "label_smoothing");
    return ((double)c == target ? 1.0 - smoothing : 0.0) + smoothing / (double)classes(logp);
}

void interp_op_nll_loss(Running *r) {
    const InterpTensor *logp = r->in[0], *targets = r->in[1];
    double loss = 0.0, total = counted_weight(r, targets, 2);
    for (int64_t i = 0; i < logp->count; i++) {
        int64_t c = i % classes(logp);
        double target = targets->data[i / classes(logp)], weight = class_weight(r, logp, c, target);
        if (is_counted(r, target) && weight != 0)
            loss -= weight * weight_of(r, 2, c) * logp->data[i]; /* not 0 * -inf */
    }
    result(r)[0] = total != 0 ? loss / total : 0.0;
}

void interp_op_nll_loss_grad(Running *r) {
    const InterpTensor *logp = r->in[1], *targets = r->in[2];
    double g = r->in[0]->data[0], total = counted_weight(r, targets, 3);
    FOR_EACH(r, i) {
        int64_t c = i % classes(logp);
        double target = targets->data[i / classes(logp)],
               weight = class_weight(r, logp, c, target) * weight_of(r, 3, c);
        result(r)[i] = is_counted(r, target) ? -g * weight / (total != 0 ? total : 1.0) : 0.0;
    }
}

void interp_op_count_samples(Running *r) {
    const Shape *s = ir_shape(r->f, r->op->in[0]);
    int batch = 0;
    while (batch < s->rank && !s->d[batch].n) batch++;
    const double n = batch < s->rank ? (double)r->in[0]->dims[batch] : 1.0;
    result(r)[0] = batch < s->rank ? n * (double)(s->d[batch].div ? s->d[batch].div : 1) / (double)s->d[batch].mul : n;
}

void interp_op_count_labels(Running *r) { result(r)[0] = counted_weight(r, r->in[1], 2); }

/* The index of the first largest; -1 where the row has a NaN. */
static int64_t first_largest(const double *x, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i])) return -1;
        if (x[i] > x[best]) best = i;
    }
    return best;
}

static void give_share(Running *r, double right) {
    const double count = counted_weight(r, r->in[1], r->op->n_in);
    result(r)[0] = count != 0 ? right / count : 0.0;
}

void interp_op_accuracy(Running *r) {
    const InterpTensor *logits = r->in[0], *targets = r->in[1];
    double right = 0.0;
    for (int64_t i = 0; i < targets->count; i++)
        right += is_counted(r, targets->data[i]) &&
                 (double)first_largest(logits->data + i * classes(logits), classes(logits)) == targets->data[i];
    give_share(r, right);
}

/* ---- of pairs, and top k ----------------------------------------------------------------------------------------- */

void interp_op_mse_loss(Running *r) {
    const double *a = r->in[0]->data, *b = r->in[1]->data;
    double sum = 0.0, count = (double)r->in[0]->count;
    for (int64_t i = 0; i < r->in[0]->count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    result(r)[0] = sum / count;
}

void interp_op_mse_loss_grad(Running *r) {
    double g = r->in[0]->data[0], count = (double)r->in[1]->count;
    FOR_EACH(r, i) {
        double d = g * 2.0 * (r->in[1]->data[i] - r->in[2]->data[i]) / count;
        r->out[0]->data[i] = d;
        r->out[1]->data[i] = -d;
    }
}

void interp_op_bce_with_logits(Running *r) {
    double sum = 0.0;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        double x = r->in[0]->data[i], t = r->in[1]->data[i];
        sum += (x > 0 ? x : 0.0) - x * t + log1p(exp(-fabs(x)));
    }
    result(r)[0] = sum / (double)r->in[0]->count;
}

void interp_op_bce_with_logits_grad(Running *r) {
    double g = r->in[0]->data[0], count = (double)r->in[1]->count;
    FOR_EACH(r, i) {
        double x = r->in[1]->data[i], t = r->in[2]->data[i];
        r->out[0]->data[i] = g * (1.0 / (1.0 + exp(-x)) - t) / count;
        r->out[1]->data[i] = -g * x / count;
    }
}

/* Among the k largest: fewer than k logits stand before the target's.  A target that is no class, or whose logit
 * is NaN, is not. */
static bool is_in_top(const double *x, int64_t classes, double target, int64_t k) {
    if (!(target >= 0 && target < (double)classes)) return false;
    int64_t t = (int64_t)target, before = 0;
    if (isnan(x[t])) return false;
    for (int64_t c = 0; c < classes; c++) before += x[c] > x[t] || (x[c] == x[t] && c < t);
    return before < k;
}

void interp_op_top_k_accuracy(Running *r) {
    const InterpTensor *logits = r->in[0], *targets = r->in[1];
    int64_t classes = logits->dims[logits->rank - 1];
    double right = 0.0;
    for (int64_t i = 0; i < targets->count; i++)
        right += is_counted(r, targets->data[i]) &&
                 is_in_top(logits->data + i * classes, classes, targets->data[i], interp_int(r, "k"));
    give_share(r, right);
}

/* ---- loss scaling ------------------------------------------------------------------------------------------------ */

/* A collective does nothing: the interpreter is the only rank, so its sums are the sums of all. */
void interp_op_all_reduce(Running *r) { (void)r; }
INTERP_ALIKE(gather_batches, all_reduce)
INTERP_ALIKE(all_gather, all_reduce)
INTERP_ALIKE(reduce_scatter, all_reduce)

void interp_op_sum_ranks(Running *r) {
    memcpy(result(r), r->in[0]->data, sizeof(double) * (size_t)r->out[0]->count);
    if (r->options && r->options->sum_ranks) r->options->sum_ranks(r->options->user, result(r), r->out[0]->count);
}

void interp_op_grad_seed(Running *r) { result(r)[0] = 1.0; }

void interp_op_scale_loss(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * in(r, 1, i); }
INTERP_ALIKE(unscale, scale_loss)

void interp_op_inverse_scale(Running *r) { result(r)[0] = 1.0 / r->in[0]->data[0]; }

void interp_op_all_finite(Running *r) {
    bool finite = true;
    for (int j = 0; j < r->op->n_in; j++)
        for (int64_t i = 0; i < r->in[j]->count; i++) finite = finite && isfinite(r->in[j]->data[i]);
    result(r)[0] = finite;
}

/* torch._amp_update_scale_ (aten/src/ATen/native/cuda/AmpKernels.cu), kept in [min, max] and in what a step can use;
 * products in f64, rounded to f32 once. */
void interp_op_update_scale(Running *r) {
    double scale = r->in[0]->data[0], tracker = r->in[1]->data[0];
    double min = amp_scale_floor(interp_float(r, "min")), max = amp_scale_ceiling(interp_float(r, "max"));
    bool ok = r->in[2]->data[0] != 0;
    bool due = ok && tracker + 1 == (double)interp_int(r, "interval");
    double next = scale;
    if (!ok) next = fmax(interp_round(r->round, AMP_DT_F32, scale * interp_float(r, "backoff")), min);
    if (due) {
        double grown = interp_round(r->round, AMP_DT_F32, scale * interp_float(r, "growth"));
        if (isfinite(grown)) next = fmin(grown, max);
    }
    r->out[0]->data[0] = next;
    r->out[1]->data[0] = ok && !due ? tracker + 1 : 0.0;
    r->out[2]->data[0] = !ok && scale <= min;
}

/* torch.optim.swa_utils.AveragedModel: its first update copies. */
void interp_op_ema(Running *r) {
    const double share = r->in[2]->data[0] < 2 ? 1 : 1 - interp_float(r, "decay");
    FOR_EACH(r, i) r->out[0]->data[i] = in(r, 1, i) + share * (in(r, 0, i) - in(r, 1, i));
}

void interp_op_is_due(Running *r) {
    bool ok = r->op->n_in < 2 || r->in[1]->data[0] != 0;
    result(r)[0] = ok && fmod(r->in[0]->data[0] + 1, (double)interp_int(r, "every")) == 0;
}

/* ---- norms of gradients ------------------------------------------------------------------------------------------ */

void interp_op_global_norm(Running *r) {
    double sum = 0.0;
    for (int j = 0; j < r->op->n_in; j++)
        for (int64_t i = 0; i < r->in[j]->count; i++) sum += r->in[j]->data[i] * r->in[j]->data[i];
    result(r)[0] = sqrt(sum);
}

/* torch.nn.utils.clip_grad_norm_; a norm that is NaN makes the gradient NaN. */
void interp_op_clip_by_norm(Running *r) {
    double factor = interp_float(r, "max") / (r->in[1]->data[0] + 1e-6);
    if (factor > 1.0) factor = 1.0;
    FOR_EACH(r, i) result(r)[i] = r->in[0]->data[i] * factor;
}

/* ---- schedules --------------------------------------------------------------------------------------------------- */

static const double PI = 3.14159265358979323846;

static double step_of(const Running *r) { return r->in[0]->data[0]; }
static double count_of(const Running *r, const char *name) { return (double)interp_int(r, name); }
static void set(Running *r, double rate) { r->out[0]->data[0] = rate; }

/* From |start| to |end| along half a cosine; done: 0 to 1. */
static double along_cosine(double start, double end, double done) {
    return end + (start - end) * (1.0 + cos(PI * done)) / 2.0;
}

void interp_op_settable_rate(Running *r) {
    bool follows = r->op->n_in > 1 && r->in[0]->data[0] < 0;
    set(r, r->in[follows ? 1 : 0]->data[0]);
}
void interp_op_constant_rate(Running *r) { set(r, interp_float(r, "v")); }

void interp_op_cosine_rate(Running *r) {
    double s = step_of(r), peak = interp_float(r, "peak"), floor = interp_float(r, "floor");
    double warmup = count_of(r, "warmup"), steps = count_of(r, "steps");
    if (s < warmup) set(r, peak * (s + 1.0) / warmup);
    else if (s >= steps) set(r, floor);
    else set(r, along_cosine(peak, floor, (s - warmup) / (steps - warmup)));
}

void interp_op_step_rate(Running *r) {
    double times = floor(step_of(r) / count_of(r, "every"));
    set(r, interp_float(r, "base") * pow(interp_float(r, "gamma"), times));
}

void interp_op_linear_rate(Running *r) {
    double s = step_of(r), peak = interp_float(r, "peak"), warmup = count_of(r, "warmup"), steps = count_of(r, "steps");
    if (s < warmup) set(r, peak * (s + 1.0) / warmup);
    else set(r, s >= steps ? 0.0 : peak * (steps - s) / (steps - warmup));
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr, total_steps) with its defaults; it ends where that one refuses to go
 * on. */
void interp_op_one_cycle_rate(Running *r) {
    double peak = interp_float(r, "peak"), last = count_of(r, "steps") - 1.0, top = 0.3 * count_of(r, "steps") - 1.0;
    double start = peak / 25.0, end = start / 1e4, s = fmin(step_of(r), last);
    if (s <= top) set(r, along_cosine(start, peak, s / top));
    else set(r, along_cosine(peak, end, (s - top) / (last - top)));
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

/* torch.optim.SGD.  A buffer that starts as zero becomes g at the first step, as PyTorch's does. */
void interp_op_sgd(Running *r) {
    double lr = r->in[3]->data[0], momentum = interp_float(r, "momentum");
    FOR_EACH(r, i) {
        double w = in(r, 0, i), g = in(r, 1, i) + r->in[4]->data[0] * w, buffer = 0.0, step = g;
        if (r->op->n_in == 6) {
            buffer = momentum * in(r, 5, i) + g;
            step = interp_bool(r, "nesterov") ? g + momentum * buffer : buffer;
        }
        r->out[0]->data[i] = w - lr * step;
        r->out[1]->data[i] = r->op->n_in == 6 ? buffer : w - lr * step;
    }
}

/* torch.optim.Adam from the decayed weight and gradient of one element; t is the step, 1 at the first update.  |lazy|:
 * torch.optim.SparseAdam, whose eps is added before the correction of v. */
static void adam_element(Running *r, int64_t i, double w, double g, bool lazy) {
    double beta1 = interp_float(r, "beta1"), beta2 = interp_float(r, "beta2"), t = r->in[2]->data[0];
    double m = beta1 * in(r, 5, i) + (1 - beta1) * g;
    double v = beta2 * in(r, 6, i) + (1 - beta2) * g * g;
    double step_size = r->in[3]->data[0] / (1 - pow(beta1, t));
    double correction = sqrt(1 - pow(beta2, t)), eps = interp_float(r, "eps");
    double denominator = lazy ? (sqrt(v) + eps) / correction : sqrt(v) / correction + eps;
    r->out[0]->data[i] = w - step_size * m / denominator;
    r->out[1]->data[i] = m;
    r->out[2]->data[i] = v;
}

void interp_op_adam(Running *r) {
    FOR_EACH(r, i)
    adam_element(r, i, in(r, 0, i), in(r, 1, i) + r->in[4]->data[0] * in(r, 0, i), interp_bool(r, "lazy"));
}

void interp_op_adamw(Running *r) {
    double keep = 1 - r->in[3]->data[0] * r->in[4]->data[0];
    FOR_EACH(r, i) adam_element(r, i, in(r, 0, i) * keep, in(r, 1, i), false);
}

/* torch.optim.Adagrad */
void interp_op_adagrad(Running *r) {
    double lr = r->in[3]->data[0] / (1 + (r->in[2]->data[0] - 1) * interp_float(r, "lr_decay"));
    FOR_EACH(r, i) {
        double w = in(r, 0, i), g = in(r, 1, i) + r->in[4]->data[0] * w, sum = in(r, 5, i) + g * g;
        r->out[0]->data[i] = w - lr * g / (sqrt(sum) + interp_float(r, "eps"));
        r->out[1]->data[i] = sum;
    }
}

/* You et al. 2019, algorithm 2; phi is the identity, and the ratio 1 where a norm is 0. */
void interp_op_lamb(Running *r) {
    const double beta1 = interp_float(r, "beta1"), beta2 = interp_float(r, "beta2"), t = r->in[2]->data[0];
    double weights = 0, steps = 0;
    FOR_EACH(r, i) {
        double w = in(r, 0, i), g = in(r, 1, i);
        double m = r->out[1]->data[i] = beta1 * in(r, 5, i) + (1 - beta1) * g;
        double v = r->out[2]->data[i] = beta2 * in(r, 6, i) + (1 - beta2) * g * g;
        double step = m / (1 - pow(beta1, t)) / (sqrt(v / (1 - pow(beta2, t))) + interp_float(r, "eps"));
        r->out[0]->data[i] = step += r->in[4]->data[0] * w;
        weights += w * w;
        steps += step * step;
    }
    const double ratio = weights > 0 && steps > 0 ? sqrt(weights / steps) : 1;
    FOR_EACH(r, i) r->out[0]->data[i] = in(r, 0, i) - r->in[3]->data[0] * ratio * r->out[0]->data[i];
}

/* Chen et al. 2023, algorithm 2 */
void interp_op_lion(Running *r) {
    double lr = r->in[3]->data[0], beta1 = interp_float(r, "beta1"), beta2 = interp_float(r, "beta2");
    FOR_EACH(r, i) {
        double g = in(r, 1, i), m = in(r, 5, i), c = beta1 * m + (1 - beta1) * g;
        r->out[0]->data[i] = in(r, 0, i) * (1 - lr * r->in[4]->data[0]) - lr * ((c > 0) - (c < 0));
        r->out[1]->data[i] = beta2 * m + (1 - beta2) * g;
    }
}

/* ---- muon: matrices of Newton and Schulz' iteration are in bf16 ---- */

typedef struct Matrix {
    int64_t rows, cols;
    double *at;
} Matrix;

static double bf16(const Running *r, double x) { return interp_round(r->round, AMP_DT_BF16, x); }

static Matrix matrix(const Running *r, int64_t rows, int64_t cols) {
    return (Matrix){rows, cols, arena_array(r->a, double, rows *cols)};
}

static Matrix transposed(const Running *r, Matrix a) {
    Matrix t = matrix(r, a.cols, a.rows);
    for (int64_t i = 0; i < a.rows * a.cols; i++) t.at[i % a.cols * a.rows + i / a.cols] = a.at[i];
    return t;
}

/* factor a b + more c; |c| may be of no elements */
static Matrix product(const Running *r, double factor, Matrix a, Matrix b, double more, Matrix c) {
    Matrix y = matrix(r, a.rows, b.cols);
    for (int64_t i = 0; i < y.rows * y.cols; i++) {
        double sum = 0;
        for (int64_t k = 0; k < a.cols; k++) sum += a.at[i / y.cols * a.cols + k] * b.at[k * b.cols + i % y.cols];
        y.at[i] = bf16(r, factor * sum + (c.at ? more * c.at[i] : 0));
    }
    return y;
}

/* torch.optim.Muon's _zeropower_via_newtonschulz */
static Matrix orthogonal(const Running *r, Matrix x) {
    const bool tall = x.rows > x.cols;
    double squares = 0;
    for (int64_t i = 0; i < x.rows * x.cols; i++) x.at[i] = bf16(r, x.at[i]), squares += x.at[i] * x.at[i];
    const double norm = fmax(bf16(r, sqrt(squares)), interp_float(r, "eps"));
    for (int64_t i = 0; i < x.rows * x.cols; i++) x.at[i] = bf16(r, x.at[i] / norm);
    if (tall) x = transposed(r, x);
    for (int64_t k = 0; k < interp_int(r, "ns_steps"); k++) {
        const Matrix gram = product(r, 1, x, transposed(r, x), 0, (Matrix){0});
        x = product(r, 1, product(r, 2.0315, gram, gram, -4.775, gram), x, 3.4445, x);
    }
    return tall ? transposed(r, x) : x;
}

static double muon_ratio(const Running *r, double rows, double cols) {
    const char *how = ir_attr(r->op, "adjust_lr")->s;
    if (!strcmp(how, "match_rms_adamw")) return 0.2 * sqrt(fmax(rows, cols));
    return !strcmp(how, "spectral_unclamped") ? sqrt(rows / cols) : sqrt(fmax(1, rows / cols));
}

void interp_op_muon(Running *r) {
    const double momentum = interp_float(r, "momentum"), lr = r->in[3]->data[0], kept = 1 - lr * r->in[4]->data[0];
    const int64_t rows = r->in[0]->dims[0], cols = r->in[0]->dims[1];
    Matrix x = matrix(r, rows, cols);
    FOR_EACH(r, i) {
        double g = in(r, 1, i), m = r->out[1]->data[i] = momentum * in(r, 5, i) + (1 - momentum) * g;
        x.at[i] = interp_bool(r, "nesterov") ? momentum * m + (1 - momentum) * g : m;
    }
    x = orthogonal(r, x);
    const double rate = lr * muon_ratio(r, (double)rows, (double)cols);
    FOR_EACH(r, i) r->out[0]->data[i] = in(r, 0, i) * kept - rate * x.at[i];
}

/* ---- adafactor: torch.optim.Adafactor ---- */

static double root_mean_square(const double *x, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += x[i] * x[i];
    return sqrt(squares / (double)count);
}

/* |state| of means along the rows of g g, |along| apart from one to the next, which are |apart| apart; into |out|. */
static void mean_squares(const InterpTensor *g, int64_t apart, int64_t along, double share, const InterpTensor *state,
                         double *out) {
    const int64_t each = g->count / state->count;
    for (int64_t i = 0; i < state->count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < each; k++) sum += pow(g->data[i * apart + k * along], 2);
        out[i] = state->data[i] + share * (sum / (double)each - state->data[i]);
    }
}

void interp_op_adafactor(Running *r) {
    const InterpTensor *w = r->in[0], *g = r->in[1];
    const bool is_matrix = w->rank == 2;
    const double t = r->in[2]->data[0], lr = r->in[3]->data[0], kept = 1 - lr * r->in[4]->data[0];
    const double share = pow(t, interp_float(r, "beta2_decay")), eps1 = interp_float(r, "eps1");
    const int64_t cols = is_matrix ? w->dims[1] : 1;
    double *u = arena_array(r->a, double, w->count), mean = 0;
    mean_squares(g, cols, 1, share, r->in[5], r->out[1]->data);
    if (is_matrix) mean_squares(g, 1, cols, share, r->in[6], r->out[2]->data);
    for (int64_t i = 0; i < r->out[1]->count; i++) mean += r->out[1]->data[i] / (double)r->out[1]->count;
    FOR_EACH(r, i) {
        const double v = r->out[1]->data[i / cols];
        const double estimate = is_matrix ? v * r->out[2]->data[i % cols] / fmax(mean, eps1) : v;
        u[i] = g->data[i] / sqrt(fmax(estimate, eps1 * eps1));
    }
    const double clip = fmax(1, root_mean_square(u, w->count) / interp_float(r, "d"));
    const double size = fmax(interp_float(r, "eps2"), root_mean_square(w->data, w->count));
    FOR_EACH(r, i) r->out[0]->data[i] = w->data[i] * kept - fmin(lr, 1 / sqrt(t)) * size / clip * u[i];
    FOR_EACH(r, i) if (!is_matrix) r->out[2]->data[i] = r->out[0]->data[i];
}

/* torch.optim.RMSprop; its root of a negative number, which only rounding makes, is 0. */
void interp_op_rmsprop(Running *r) {
    double lr = r->in[3]->data[0], alpha = interp_float(r, "alpha"), momentum = interp_float(r, "momentum");
    bool centered = interp_bool(r, "centered");
    FOR_EACH(r, i) {
        double w = in(r, 0, i), g = in(r, 1, i) + r->in[4]->data[0] * w, states[3], spread;
        int count = 0;
        spread = states[count++] = alpha * in(r, 5, i) + (1 - alpha) * g * g;
        if (centered) {
            double m = states[count++] = alpha * in(r, 6, i) + (1 - alpha) * g;
            spread = fmax(spread - m * m, 0.0);
        }
        double step = g / (sqrt(spread) + interp_float(r, "eps"));
        if (momentum != 0) {
            step += momentum * in(r, 5 + count, i);
            states[count++] = step;
        }
        r->out[0]->data[i] = w - lr * step;
        for (int k = 0; k < 3; k++) r->out[1 + k]->data[i] = k < count ? states[k] : w - lr * step;
    }
}
