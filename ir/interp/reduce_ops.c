/* reduce_ops.c: reductions, what undoes them, and what is made by them: extremes, variance, normalisations over
 * channels, over rows and along one dimension. */
#include "ir/interp/ops.h"

#include <math.h>

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void fold(Running *r, double start, double (*f)(double, double)) {
    FOR_EACH(r, i) result(r)[i] = start;
    FOR_FOLDED(r, r->in[0], i, to) result(r)[to] = f(result(r)[to], r->in[0]->data[i]);
}

void interp_op_sum(Running *r) { fold(r, 0.0, interp_add); }
void interp_op_max(Running *r) { fold(r, -INFINITY, interp_larger); }
void interp_op_min(Running *r) { fold(r, INFINITY, interp_smaller); }
void interp_op_reduce_or(Running *r) { fold(r, 0.0, interp_either); }

void interp_op_mean(Running *r) {
    interp_op_sum(r);
    FOR_EACH(r, i) result(r)[i] /= (double)interp_folded_count(r->in[0], dims_of(r));
}

INTERP_ALIKE(reduce_sum, sum)
INTERP_ALIKE(reduce_mean, mean)
INTERP_ALIKE(reduce_max, max)
INTERP_ALIKE(reduce_min, min)

void interp_op_broadcast_to(Running *r) {
    double divisor = interp_bool(r, "mean") ? (double)interp_folded_count(r->out[0], dims_of(r)) : 1.0;
    FOR_EACH(r, i) result(r)[i] = r->in[0]->data[interp_folded_index(r->out[0], dims_of(r), i)] / divisor;
}

/* Every element of dy is added to the element of the result that it was broadcast from. */
void interp_op_sum_to(Running *r) {
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

/* ---- extremes ---------------------------------------------------------------------------------------------------- */

/* NaN wins. */
static bool beats(double x, double best) { return (isnan(x) && !isnan(best)) || x > best; }

/* (dy, x, y) */
void interp_op_extreme_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1], *y = r->in[2];
    double *equals = interp_scratch(r, y->count);
    FOR_FOLDED(r, x, i, to) { equals[to] += x->data[i] == y->data[to]; }
    FOR_FOLDED(r, x, i, to) {
        result(r)[i] = (double)(x->data[i] == y->data[to]) * (dy->data[to] / equals[to]); /* NaN where y is */
    }
}

void interp_op_argmax(Running *r) {
    const InterpTensor *x = r->in[0];
    for (int64_t l = 0; l < r->out[0]->count; l++) {
        Line line = interp_line(x, interp_int(r, "dim"), l);
        int64_t best = 0;
        for (int64_t j = 1; j < line.length; j++)
            if (beats(x->data[line.base + j * line.stride], x->data[line.base + best * line.stride])) best = j;
        result(r)[l] = (double)best;
    }
}

/* Element |i| along a line of |t|, whose dim has another size in other tensors. */
static double *element_along(const InterpTensor *t, int64_t dim, int64_t l, int64_t i) {
    Line line = interp_line(t, dim, l);
    return &t->data[line.base + i * line.stride];
}

void interp_op_top_k(Running *r) {
    const InterpTensor *x = r->in[0];
    int64_t dim = interp_int(r, "dim"), k = interp_int(r, "k");
    bool *taken = arena_array(r->a, bool, x->count + 1);
    for (int64_t l = 0; l < interp_line_count(x, dim); l++) {
        Line line = interp_line(x, dim, l);
        for (int64_t n = 0; n < k; n++) {
            int64_t best = -1;
            for (int64_t j = 0; j < line.length; j++) {
                int64_t at = line.base + j * line.stride;
                if (!taken[at] && (best < 0 || beats(x->data[at], x->data[line.base + best * line.stride]))) best = j;
            }
            taken[line.base + best * line.stride] = true;
            *element_along(r->out[0], dim, l, n) = x->data[line.base + best * line.stride];
            *element_along(r->out[1], dim, l, n) = (double)best;
        }
    }
}

/* (dy, indexes, x for its shape) */
void interp_op_top_k_grad(Running *r) {
    int64_t dim = interp_int(r, "dim");
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t l = 0; l < interp_line_count(r->in[0], dim); l++)
        for (int64_t n = 0; n < interp_line(r->in[0], dim, l).length; n++) {
            int64_t index = (int64_t)*element_along(r->in[1], dim, l, n);
            *element_along(r->out[0], dim, l, index) += *element_along(r->in[0], dim, l, n);
        }
}

/* ---- variance ---------------------------------------------------------------------------------------------------- */

/* The mean of what folds into each element of a reduction over the op's dims. */
static double *folded_means(Running *r, const InterpTensor *x) {
    double count = (double)interp_folded_count(x, dims_of(r));
    double *means = interp_scratch(r, x->count);
    for (int64_t i = 0; i < x->count; i++) means[interp_folded_index(x, dims_of(r), i)] += x->data[i] / count;
    return means;
}

static double divisor(const Running *r, const InterpTensor *x) {
    return fmax((double)(interp_folded_count(x, dims_of(r)) - interp_int(r, "correction")), 0.0);
}

void interp_op_var(Running *r) {
    const InterpTensor *x = r->in[0];
    const double *means = folded_means(r, x);
    FOR_EACH(r, i) result(r)[i] = 0.0;
    FOR_FOLDED(r, x, i, to) { result(r)[to] += (x->data[i] - means[to]) * (x->data[i] - means[to]); }
    FOR_EACH(r, i) result(r)[i] /= divisor(r, x);
}

void interp_op_std(Running *r) {
    interp_op_var(r);
    FOR_EACH(r, i) result(r)[i] = sqrt(result(r)[i]);
}

/* (dy, x) */
void interp_op_var_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    const double *means = folded_means(r, x);
    FOR_FOLDED(r, x, i, to) { result(r)[i] = r->in[0]->data[to] * 2.0 * (x->data[i] - means[to]) / divisor(r, x); }
}

/* (dy, x, y) */
void interp_op_std_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    const double *means = folded_means(r, x), *y = r->in[2]->data;
    FOR_FOLDED(r, x, i, to) {
        const double share = y[to] == 0.0 ? 0.0 : r->in[0]->data[to] / y[to];
        result(r)[i] = share * (x->data[i] - means[to]) / divisor(r, x);
    }
}

/* ---- normalisations of channels: [N, C, ...] --------------------------------------------------------------------- */

static double *data(const Running *r, int result) { return r->out[result]->data; }

static int64_t channel_of(const InterpTensor *x, int64_t i) {
    int64_t inner = 1;
    for (int d = 2; d < x->rank; d++) inner *= x->dims[d];
    return i / inner % x->dims[1];
}

/* Mean and sum of squared distances of each channel. */
static void channel_moments(const InterpTensor *x, double *mean, double *squares) {
    int64_t channels = x->dims[1];
    double count = (double)(x->count / channels);
    for (int64_t c = 0; c < channels; c++) mean[c] = squares[c] = 0.0;
    for (int64_t i = 0; i < x->count; i++) mean[channel_of(x, i)] += x->data[i] / count;
    for (int64_t i = 0; i < x->count; i++) {
        double distance = x->data[i] - mean[channel_of(x, i)];
        squares[channel_of(x, i)] += distance * distance;
    }
}

/* The moments of all ranks, from their sums; returns the count. */
static double moments_of_sums(const InterpTensor *sums, const InterpTensor *squares, double *mean, double *out) {
    const double count = sums->data[squares->count];
    for (int64_t c = 0; c < squares->count; c++) {
        mean[c] = sums->data[c] / count;
        out[c] = squares->data[c];
    }
    return count;
}

void interp_op_batch_norm_eval(Running *r) {
    const InterpTensor *x = r->in[0];
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        double rstd = 1.0 / sqrt(r->in[4]->data[c] + interp_float(r, "eps"));
        data(r, 0)[i] = (x->data[i] - r->in[3]->data[c]) * rstd * r->in[1]->data[c] + r->in[2]->data[c];
    }
}

void interp_op_batch_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    double *mean = data(r, 1), *var = data(r, 2), *rstd = data(r, 3);
    double count = (double)(x->count / x->dims[1]);
    if (r->op->n_in > 5) count = moments_of_sums(r->in[5], r->in[6], mean, var);
    else channel_moments(x, mean, var);
    for (int64_t c = 0; c < x->dims[1]; c++) {
        const double used = count > 1 ? var[c] / count : r->in[4]->data[c];
        rstd[c] = 1.0 / sqrt(used + interp_float(r, "eps"));
        var[c] /= count - 1;
        if (count <= 1) mean[c] = r->in[3]->data[c];
    }
    if (interp_bool(r, "frozen")) {
        interp_op_batch_norm_eval(r);
        return;
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        data(r, 0)[i] = (x->data[i] - mean[c]) * rstd[c] * r->in[1]->data[c] + r->in[2]->data[c];
    }
}

/* Sums and counts of elements. */
void interp_op_batch_norm_sums(Running *r) {
    const InterpTensor *x = r->in[0];
    const int64_t channels = x->dims[1];
    double *sums = data(r, 0);
    channel_moments(x, sums, data(r, 1));
    sums[channels] = (double)(x->count / channels);
    for (int64_t c = 0; c < channels; c++) sums[c] *= sums[channels];
}

void interp_op_batch_norm_squares(Running *r) {
    const double *own = r->in[1]->data, *all = r->in[2]->data;
    const int64_t channels = r->out[0]->count;
    FOR_EACH(r, c) {
        double distance = own[c] / own[channels] - all[c] / all[channels];
        result(r)[c] = r->in[3]->data[c] + own[channels] * distance * distance;
    }
}

static void grad_sums(const InterpTensor *dy, const InterpTensor *x, const double *mean, const double *rstd, double *dw,
                      double *db) {
    for (int64_t c = 0; c < x->dims[1]; c++) dw[c] = db[c] = 0.0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        dw[c] += dy->data[i] * (x->data[i] - mean[c]) * rstd[c];
        db[c] += dy->data[i];
    }
}

/* (dy, x, weight, running mean, running variance) */
void interp_op_batch_norm_eval_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const double *variance = r->in[4]->data;
    double *rstd = interp_scratch(r, x->dims[1]);
    for (int64_t c = 0; c < x->dims[1]; c++) rstd[c] = 1.0 / sqrt(variance[c] + interp_float(r, "eps"));
    grad_sums(dy, x, r->in[3]->data, rstd, data(r, 1), data(r, 2));
    FOR_EACH(r, i) result(r)[i] = dy->data[i] * rstd[channel_of(x, i)] * r->in[2]->data[channel_of(x, i)];
}

/* (dy, x, mean, rstd) */
void interp_op_batch_norm_grad_sums(Running *r) {
    double *dw = data(r, 0);
    grad_sums(r->in[0], r->in[1], r->in[2]->data, r->in[3]->data, dw, dw + r->in[1]->dims[1]);
}

/* (dy, x, weight, mean, rstd): with h = (x - mean) rstd, dw = sum(dy h) and db = sum(dy),
 * dx = w rstd (dy - db / count - h dw / count), or w rstd dy of one value a channel.
 * For d x of the batches of all ranks these are theirs. */
void interp_op_batch_norm_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const int64_t channels = x->dims[1];
    const double *w = r->in[2]->data, *mean = r->in[3]->data, *rstd = r->in[4]->data;
    const double *dw = data(r, 1), *db = data(r, 2);
    double count = (double)(x->count / channels);
    grad_sums(dy, x, mean, rstd, data(r, 1), data(r, 2));
    if (r->op->n_in > 5) {
        count = r->in[5]->data[channels];
        memcpy(data(r, 1), r->in[6]->data, sizeof(double) * (size_t)channels);
        memcpy(data(r, 2), r->in[6]->data + channels, sizeof(double) * (size_t)channels);
        dw = r->in[7]->data;
        db = dw + channels;
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        double h = (x->data[i] - mean[c]) * rstd[c], plane = count > 1 ? db[c] / count + h * dw[c] / count : 0;
        data(r, 0)[i] = w[c] * rstd[c] * (dy->data[i] - plane);
    }
}

/* ---- normalisations of groups of channels: [N, C, ...] ----------------------------------------------------------- */

/* Groups of equal size follow each other in memory. */
static int64_t size_of_group(const Running *r, const InterpTensor *x) {
    int64_t groups = r->op->code == OP_instance_norm ? x->dims[1] : interp_int(r, "groups");
    return x->count / (x->dims[0] * groups);
}

/* Mean and 1 / sqrt(variance + eps) of the group of each channel of each sample. */
void interp_op_group_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    int64_t size = size_of_group(r, x), inner = x->count / r->out[1]->count;
    for (int64_t start = 0; start < x->count; start += size) {
        double mean = 0.0, squares = 0.0;
        for (int64_t i = start; i < start + size; i++) mean += x->data[i] / (double)size;
        for (int64_t i = start; i < start + size; i++) squares += (x->data[i] - mean) * (x->data[i] - mean);
        double rstd = 1.0 / sqrt(squares / (double)size + interp_float(r, "eps"));
        for (int64_t i = start; i < start + size; i++) {
            int64_t c = channel_of(x, i);
            double bias = r->op->n_in == 3 ? r->in[2]->data[c] : 0.0;
            data(r, 0)[i] = (x->data[i] - mean) * rstd * r->in[1]->data[c] + bias;
            data(r, 1)[i / inner] = mean;
            data(r, 2)[i / inner] = rstd;
        }
    }
}
INTERP_ALIKE(instance_norm, group_norm)

/* (dy, x, weight, mean, rstd): with h = (x - mean) rstd and g = w dy,
 * dx = rstd (g - mean(g) - h mean(g h)) over the group, dw = sum(dy h) and db = sum(dy) over samples and elements. */
void interp_op_group_norm_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const double *w = r->in[2]->data, *mean = r->in[3]->data, *rstd = r->in[4]->data;
    double *dw = data(r, 1), *db = data(r, 2);
    int64_t size = size_of_group(r, x), inner = x->count / r->in[3]->count;
    for (int64_t c = 0; c < x->dims[1]; c++) dw[c] = db[c] = 0.0;
    for (int64_t start = 0; start < x->count; start += size) {
        double mean_g = 0.0, mean_gh = 0.0;
        for (int64_t i = start; i < start + size; i++) {
            int64_t c = channel_of(x, i);
            double h = (x->data[i] - mean[i / inner]) * rstd[i / inner];
            mean_g += w[c] * dy->data[i] / (double)size;
            mean_gh += w[c] * dy->data[i] * h / (double)size;
            dw[c] += dy->data[i] * h;
            db[c] += dy->data[i];
        }
        for (int64_t i = start; i < start + size; i++) {
            double h = (x->data[i] - mean[i / inner]) * rstd[i / inner];
            data(r, 0)[i] = rstd[i / inner] * (w[channel_of(x, i)] * dy->data[i] - mean_g - h * mean_gh);
        }
    }
}

/* ---- normalisations of rows: [..., C] ---------------------------------------------------------------------------- */

void interp_op_layer_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    int64_t width = x->dims[x->rank - 1];
    for (int64_t row = 0; row < x->count / width; row++) {
        const double *at = x->data + row * width;
        double mean = 0.0, squares = 0.0;
        for (int64_t c = 0; c < width; c++) mean += at[c] / (double)width;
        for (int64_t c = 0; c < width; c++) squares += (at[c] - mean) * (at[c] - mean);
        double rstd = 1.0 / sqrt(squares / (double)width + interp_float(r, "eps"));
        for (int64_t c = 0; c < width; c++)
            data(r, 0)[row * width + c] =
                (at[c] - mean) * rstd * r->in[1]->data[c] + (r->op->n_in == 3 ? r->in[2]->data[c] : 0.0);
        data(r, 1)[row] = mean;
        data(r, 2)[row] = rstd;
    }
}

/* (dy, x, weight, mean, rstd): with h = (x - mean) rstd and g = w dy,
 * dx = rstd (g - mean(g) - h mean(g h)) along the row, dw = sum(dy h) and db = sum(dy) over rows. */
void interp_op_layer_norm_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const double *w = r->in[2]->data;
    int64_t width = x->dims[x->rank - 1];
    double *dw = data(r, 1), *db = data(r, 2);
    for (int64_t c = 0; c < width; c++) dw[c] = db[c] = 0.0;
    for (int64_t row = 0; row < x->count / width; row++) {
        double mean = r->in[3]->data[row], rstd = r->in[4]->data[row], mean_g = 0.0, mean_gh = 0.0;
        for (int64_t i = row * width, c = 0; c < width; c++, i++) {
            double h = (x->data[i] - mean) * rstd;
            mean_g += w[c] * dy->data[i] / (double)width;
            mean_gh += w[c] * dy->data[i] * h / (double)width;
            dw[c] += dy->data[i] * h;
            db[c] += dy->data[i];
        }
        for (int64_t i = row * width, c = 0; c < width; c++, i++)
            data(r, 0)[i] = rstd * (w[c] * dy->data[i] - mean_g - (x->data[i] - mean) * rstd * mean_gh);
    }
}

void interp_op_rms_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    int64_t width = x->dims[x->rank - 1];
    for (int64_t row = 0; row < x->count / width; row++) {
        const double *at = x->data + row * width;
        double squares = 0.0;
        for (int64_t c = 0; c < width; c++) squares += at[c] * at[c];
        double factor = 1.0 / sqrt(squares / (double)width + interp_float(r, "eps"));
        for (int64_t c = 0; c < width; c++) data(r, 0)[row * width + c] = at[c] * factor * r->in[1]->data[c];
        data(r, 1)[row] = factor;
    }
}

/* (dy, x, weight, factor): with h = x factor and g = w dy,
 * dx = factor (g - h mean(g h)) along the row, dw = sum(dy h) over rows. */
void interp_op_rms_norm_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const double *w = r->in[2]->data;
    int64_t width = x->dims[x->rank - 1];
    double *dw = data(r, 1);
    for (int64_t c = 0; c < width; c++) dw[c] = 0.0;
    for (int64_t row = 0; row < x->count / width; row++) {
        double factor = r->in[3]->data[row], mean_gh = 0.0;
        for (int64_t i = row * width, c = 0; c < width; c++, i++) {
            mean_gh += w[c] * dy->data[i] * x->data[i] * factor / (double)width;
            dw[c] += dy->data[i] * x->data[i] * factor;
        }
        for (int64_t i = row * width, c = 0; c < width; c++, i++)
            data(r, 0)[i] = factor * (w[c] * dy->data[i] - x->data[i] * factor * mean_gh);
    }
}

/* ---- softmax and its like, along one dim ------------------------------------------------------------------------- */

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

static void cumsum_line(Running *r, Line line) {
    bool reverse = interp_bool(r, "reverse");
    double sum = 0.0;
    for (int64_t j = 0; j < line.length; j++) {
        int64_t i = line.base + (reverse ? line.length - 1 - j : j) * line.stride;
        result(r)[i] = sum += r->in[0]->data[i];
    }
}

void interp_op_cumsum(Running *r) { for_each_line(r, cumsum_line); }
void interp_op_softmax(Running *r) { for_each_line(r, softmax_line); }
void interp_op_log_softmax(Running *r) { for_each_line(r, log_softmax_line); }
void interp_op_softmax_grad(Running *r) { for_each_line(r, softmax_grad_line); }
void interp_op_log_softmax_grad(Running *r) { for_each_line(r, log_softmax_grad_line); }
