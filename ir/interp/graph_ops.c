/* graph_ops.c: what each graph op computes, as its doc in ops.def says. */
#include "ir/interp/ops.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"

/* M_SQRT1_2, M_2_SQRTPI and friends are not in C11. */
static const double SQRT_HALF = 0.70710678118654752440, SQRT_TWO_OVER_PI = 0.79788456080286535588,
                    INVERSE_SQRT_TWO_PI = 0.39894228040143267794, GELU_CUBE = 0.044715;

/* ---- activations ----------------------------------------------------------------------------- */

static double *result(const Running *r) { return r->out[0]->data; }
static double in(const Running *r, int operand, int64_t i) { return interp_at(r->in[operand], r->out[0], i); }

#define FOR_EACH(r, i) for (int64_t i = 0; i < (r)->out[0]->count; i++)

static void run_relu(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) < 0 ? 0.0 : in(r, 0, i); }

static void run_relu_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 1, i) <= 0 ? 0.0 : in(r, 0, i); }

static bool is_tanh(const Running *r) { return !strcmp(ir_attr(r->op, "approximate")->s, "tanh"); }

/* The argument of tanh and its derivative. */
static double gelu_inner(double x) { return SQRT_TWO_OVER_PI * (x + GELU_CUBE * x * x * x); }
static double gelu_inner_slope(double x) { return SQRT_TWO_OVER_PI * (1 + 3 * GELU_CUBE * x * x); }

static void run_gelu(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        double cdf = is_tanh(r) ? 0.5 * (1 + tanh(gelu_inner(x))) : 0.5 * (1 + erf(x * SQRT_HALF));
        result(r)[i] = x * cdf;
    }
}

/* Phi(x) + x phi(x); the same by the chain rule where Phi is approximated. */
static void run_gelu_grad(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 1, i), t = tanh(gelu_inner(x));
        double slope = is_tanh(r) ? 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_inner_slope(x)
                                  : 0.5 * (1 + erf(x * SQRT_HALF)) + x * INVERSE_SQRT_TWO_PI * exp(-0.5 * x * x);
        result(r)[i] = in(r, 0, i) * slope;
    }
}

static void run_sigmoid(Running *r) { FOR_EACH(r, i) result(r)[i] = 1 / (1 + exp(-in(r, 0, i))); }

static void run_sigmoid_grad(Running *r) {
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * in(r, 1, i) * (1 - in(r, 1, i));
}

static void run_tanh_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (1 - in(r, 1, i) * in(r, 1, i)); }

/* The mask and the factor are f32 numbers in every backend. */
static void run_dropout(Running *r) {
    const char *key = ir_attr(r->op, "key")->s;
    uint32_t hash = amp_hash32(key && *key ? key : r->op->path ? r->op->path : "");
    double p = interp_round(r->round, AMP_DT_F32, interp_float(r, "p"));
    double factor = interp_round(r->round, AMP_DT_F32, 1.0 / (1.0 - interp_float(r, "p")));
    FOR_EACH(r, i) {
        uint32_t word = amp_random_u32(r->seed, hash, (uint32_t)r->iteration, (uint32_t)r->micro, (uint64_t)i);
        result(r)[i] = amp_random_unit(word) >= p ? in(r, 0, i) * factor : 0.0;
    }
}

/* ---- products and reductions ----------------------------------------------------------------- */

static void run_linear(Running *r) {
    const InterpTensor *x = r->in[0], *w = r->in[1], *bias = r->op->n_in == 3 ? r->in[2] : NULL;
    bool transposed = interp_bool(r, "transposed");
    int64_t inner = x->dims[x->rank - 1], outer = r->out[0]->dims[x->rank - 1];
    FOR_EACH(r, i) {
        int64_t row = i / outer, o = i % outer;
        double sum = 0.0;
        for (int64_t k = 0; k < inner; k++)
            sum += x->data[row * inner + k] * w->data[transposed ? k * outer + o : o * inner + k];
        result(r)[i] = sum + (bias ? bias->data[o] : 0.0);
    }
}

static const Dims *dims_of(const Running *r) { return &ir_attr(r->op, "dims")->dims; }

static void run_sum(Running *r) {
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < r->in[0]->count; i++)
        result(r)[interp_folded_index(r->in[0], dims_of(r), i)] += r->in[0]->data[i];
}

static void run_mean(Running *r) {
    run_sum(r);
    FOR_EACH(r, i) result(r)[i] /= (double)interp_folded_count(r->in[0], dims_of(r));
}

static void run_broadcast_to(Running *r) {
    double divisor = interp_bool(r, "mean") ? (double)interp_folded_count(r->out[0], dims_of(r)) : 1.0;
    FOR_EACH(r, i) result(r)[i] = r->in[0]->data[interp_folded_index(r->out[0], dims_of(r), i)] / divisor;
}

/* Every element of dy is added to the element of the result that it was broadcast from. */
static void run_sum_to(Running *r) {
    const InterpTensor *dy = r->in[0], *to = r->out[0];
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < dy->count; i++) {
        int64_t index = 0, stride = 1, rest = i;
        for (int d = dy->rank - 1, own = to->rank - 1; own >= 0; d--, own--) {
            index += (to->dims[own] == 1 ? 0 : rest % dy->dims[d]) * stride;
            stride *= to->dims[own];
            rest /= dy->dims[d];
        }
        result(r)[index] += dy->data[i];
    }
}

/* ---- along one dim --------------------------------------------------------------------------- */

typedef void (*LineFn)(Running *r, Line line);

static void for_each_line(Running *r, LineFn f) {
    int64_t dim = interp_int(r, "dim");
    for (int64_t l = 0; l < interp_line_count(r->out[0], dim); l++) f(r, interp_line(r->out[0], dim, l));
}

#define FOR_LINE(line, i)                                                                                              \
    for (int64_t i = (line).base; i < (line).base + (line).length * (line).stride; i += (line).stride)

/* max + log(sum(exp(x - max))); a NaN anywhere gives NaN. */
static double log_sum_exp(const double *x, Line line) {
    double max = -INFINITY, sum = 0.0;
    FOR_LINE(line, i) if (isnan(x[i]) || x[i] > max) max = x[i];
    FOR_LINE(line, i) sum += exp(x[i] - max);
    return max + log(sum);
}

static void softmax_line(Running *r, Line line) {
    double total = log_sum_exp(r->in[0]->data, line);
    FOR_LINE(line, i) result(r)[i] = exp(r->in[0]->data[i] - total);
}

static void log_softmax_line(Running *r, Line line) {
    double total = log_sum_exp(r->in[0]->data, line);
    FOR_LINE(line, i) result(r)[i] = r->in[0]->data[i] - total;
}

static void softmax_grad_line(Running *r, Line line) {
    const double *dy = r->in[0]->data, *y = r->in[1]->data;
    double dot = 0.0;
    FOR_LINE(line, i) dot += y[i] * dy[i];
    FOR_LINE(line, i) result(r)[i] = y[i] * (dy[i] - dot);
}

static void log_softmax_grad_line(Running *r, Line line) {
    const double *dy = r->in[0]->data, *y = r->in[1]->data;
    double sum = 0.0;
    FOR_LINE(line, i) sum += dy[i];
    FOR_LINE(line, i) result(r)[i] = dy[i] - exp(y[i]) * sum;
}

static void run_softmax(Running *r) { for_each_line(r, softmax_line); }
static void run_log_softmax(Running *r) { for_each_line(r, log_softmax_line); }
static void run_softmax_grad(Running *r) { for_each_line(r, softmax_grad_line); }
static void run_log_softmax_grad(Running *r) { for_each_line(r, log_softmax_grad_line); }

/* ---- losses and metrics ---------------------------------------------------------------------- */

static int64_t classes(const InterpTensor *logp) { return logp->dims[logp->rank - 1]; }

static bool is_counted(const Running *r, double target) { return target != (double)interp_int(r, "ignore"); }

static double counted_rows(const Running *r, const InterpTensor *targets) {
    double count = 0.0;
    for (int64_t i = 0; i < targets->count; i++) count += is_counted(r, targets->data[i]);
    return count;
}

/* The weight of class c in a row's loss: 1 - s at the target, and s / C everywhere. */
static double class_weight(const Running *r, const InterpTensor *logp, int64_t c, double target) {
    double smoothing = interp_float(r, "label_smoothing");
    return ((double)c == target ? 1.0 - smoothing : 0.0) + smoothing / (double)classes(logp);
}

static void run_nll_loss(Running *r) {
    const InterpTensor *logp = r->in[0], *targets = r->in[1];
    double loss = 0.0, count = counted_rows(r, targets);
    for (int64_t i = 0; i < logp->count; i++) {
        double target = targets->data[i / classes(logp)], weight = class_weight(r, logp, i % classes(logp), target);
        if (is_counted(r, target) && weight != 0) loss -= weight * logp->data[i]; /* not 0 * -inf */
    }
    result(r)[0] = count > 0 ? loss / count : 0.0;
}

static void run_nll_loss_grad(Running *r) {
    const InterpTensor *logp = r->in[1], *targets = r->in[2];
    double g = r->in[0]->data[0], count = counted_rows(r, targets);
    FOR_EACH(r, i) {
        double target = targets->data[i / classes(logp)];
        result(r)[i] = is_counted(r, target) ? -g * class_weight(r, logp, i % classes(logp), target) / count : 0.0;
    }
}

/* The index of the first largest; -1 where the row has a NaN. */
static int64_t first_largest(const double *x, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i])) return -1;
        if (x[i] > x[best]) best = i;
    }
    return best;
}

static void run_accuracy(Running *r) {
    const InterpTensor *logits = r->in[0], *targets = r->in[1];
    double right = 0.0;
    for (int64_t i = 0; i < targets->count; i++)
        right += (double)first_largest(logits->data + i * classes(logits), classes(logits)) == targets->data[i];
    result(r)[0] = right / (double)targets->count;
}

/* ---- loss scaling ---------------------------------------------------------------------------- */

static void run_grad_seed(Running *r) { result(r)[0] = 1.0; }

static void run_product(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * in(r, 1, i); }

static void run_inverse_scale(Running *r) { result(r)[0] = 1.0 / r->in[0]->data[0]; }

static void run_all_finite(Running *r) {
    bool finite = true;
    for (int j = 0; j < r->op->n_in; j++)
        for (int64_t i = 0; i < r->in[j]->count; i++) finite = finite && isfinite(r->in[j]->data[i]);
    result(r)[0] = finite;
}

/* torch._amp_update_scale_ (aten/src/ATen/native/cuda/AmpKernels.cu), kept in [min, max]; products in f64, rounded to
 * f32 once. */
static void run_update_scale(Running *r) {
    double scale = r->in[0]->data[0], tracker = r->in[1]->data[0], min = interp_float(r, "min");
    bool ok = r->in[2]->data[0] != 0;
    bool due = ok && tracker + 1 == (double)interp_int(r, "interval");
    double next = scale;
    if (!ok) next = fmax(interp_round(r->round, AMP_DT_F32, scale * interp_float(r, "backoff")), min);
    if (due) {
        double grown = interp_round(r->round, AMP_DT_F32, scale * interp_float(r, "growth"));
        if (isfinite(grown)) next = fmin(grown, interp_float(r, "max"));
    }
    r->out[0]->data[0] = next;
    r->out[1]->data[0] = ok && !due ? tracker + 1 : 0.0;
    r->out[2]->data[0] = !ok && min > 0 && scale <= min;
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* torch.optim.SGD.  A buffer that starts as zero becomes g at the first step, as PyTorch's does. */
static void run_sgd(Running *r) {
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

/* torch.optim.Adam from the decayed weight and gradient of one element; t is the step, 1 at the first update. */
static void adam_element(Running *r, int64_t i, double w, double g) {
    double beta1 = interp_float(r, "beta1"), beta2 = interp_float(r, "beta2"), t = r->in[2]->data[0];
    double m = beta1 * in(r, 5, i) + (1 - beta1) * g;
    double v = beta2 * in(r, 6, i) + (1 - beta2) * g * g;
    double step_size = r->in[3]->data[0] / (1 - pow(beta1, t));
    double denominator = sqrt(v) / sqrt(1 - pow(beta2, t)) + interp_float(r, "eps");
    r->out[0]->data[i] = w - step_size * m / denominator;
    r->out[1]->data[i] = m;
    r->out[2]->data[i] = v;
}

static void run_adam(Running *r) {
    FOR_EACH(r, i) adam_element(r, i, in(r, 0, i), in(r, 1, i) + r->in[4]->data[0] * in(r, 0, i));
}

static void run_adamw(Running *r) {
    double keep = 1 - r->in[3]->data[0] * r->in[4]->data[0];
    FOR_EACH(r, i) adam_element(r, i, in(r, 0, i) * keep, in(r, 1, i));
}

const InterpFn interp_graph_ops[OP_COUNT] = {
    [OP_linear] = run_linear,
    [OP_relu] = run_relu,
    [OP_gelu] = run_gelu,
    [OP_sigmoid] = run_sigmoid,
    [OP_dropout] = run_dropout,
    [OP_sum] = run_sum,
    [OP_mean] = run_mean,
    [OP_softmax] = run_softmax,
    [OP_log_softmax] = run_log_softmax,
    [OP_nll_loss] = run_nll_loss,
    [OP_accuracy] = run_accuracy,
    [OP_grad_seed] = run_grad_seed,
    [OP_relu_grad] = run_relu_grad,
    [OP_gelu_grad] = run_gelu_grad,
    [OP_sigmoid_grad] = run_sigmoid_grad,
    [OP_tanh_grad] = run_tanh_grad,
    [OP_softmax_grad] = run_softmax_grad,
    [OP_log_softmax_grad] = run_log_softmax_grad,
    [OP_nll_loss_grad] = run_nll_loss_grad,
    [OP_sum_to] = run_sum_to,
    [OP_broadcast_to] = run_broadcast_to,
    [OP_scale_loss] = run_product,
    [OP_inverse_scale] = run_inverse_scale,
    [OP_unscale] = run_product,
    [OP_all_finite] = run_all_finite,
    [OP_update_scale] = run_update_scale,
    [OP_sgd] = run_sgd,
    [OP_adam] = run_adam,
    [OP_adamw] = run_adamw,
};
