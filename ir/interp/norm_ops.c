/* norm_ops.c: normalisations over channels, over rows and along one dimension. */
#include "ir/interp/ops.h"

#include <math.h>

static double *data(const Running *r, int result) { return r->out[result]->data; }

/* ---- channels: [N, C, ...] --------------------------------------------------------------------------------------- */

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

static void run_batch_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    double *mean = data(r, 1), *var = data(r, 2), *rstd = data(r, 3);
    double count = (double)(x->count / x->dims[1]);
    channel_moments(x, mean, var);
    for (int64_t c = 0; c < x->dims[1]; c++) {
        rstd[c] = 1.0 / sqrt(var[c] / count + interp_float(r, "eps"));
        var[c] /= fmax(count - 1, 1); /* one element has no variance; a NaN would stay in the running statistics */
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        data(r, 0)[i] = (x->data[i] - mean[c]) * rstd[c] * r->in[1]->data[c] + r->in[2]->data[c];
    }
}

static void run_batch_norm_eval(Running *r) {
    const InterpTensor *x = r->in[0];
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        double rstd = 1.0 / sqrt(r->in[4]->data[c] + interp_float(r, "eps"));
        data(r, 0)[i] = (x->data[i] - r->in[3]->data[c]) * rstd * r->in[1]->data[c] + r->in[2]->data[c];
    }
}

/* (dy, x, weight, mean, rstd): with h = (x - mean) rstd, dw = sum(dy h) and db = sum(dy),
 * dx = w rstd (dy - db / count - h dw / count). */
static void run_batch_norm_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1];
    const double *w = r->in[2]->data, *mean = r->in[3]->data, *rstd = r->in[4]->data;
    double *dw = data(r, 1), *db = data(r, 2), count = (double)(x->count / x->dims[1]);
    for (int64_t c = 0; c < x->dims[1]; c++) dw[c] = db[c] = 0.0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        dw[c] += dy->data[i] * (x->data[i] - mean[c]) * rstd[c];
        db[c] += dy->data[i];
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t c = channel_of(x, i);
        double h = (x->data[i] - mean[c]) * rstd[c];
        data(r, 0)[i] = w[c] * rstd[c] * (dy->data[i] - db[c] / count - h * dw[c] / count);
    }
}

/* ---- rows: [..., C] ---------------------------------------------------------------------------------------------- */

static void run_layer_norm(Running *r) {
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
static void run_layer_norm_grad(Running *r) {
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

/* ---- along one dim ----------------------------------------------------------------------------------------------- */

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

const InterpFn interp_norm_ops[OP_COUNT] = {
    [OP_softmax] = run_softmax,
    [OP_log_softmax] = run_log_softmax,
    [OP_softmax_grad] = run_softmax_grad,
    [OP_log_softmax_grad] = run_log_softmax_grad,
    [OP_batch_norm] = run_batch_norm,
    [OP_batch_norm_eval] = run_batch_norm_eval,
    [OP_layer_norm] = run_layer_norm,
    [OP_batch_norm_grad] = run_batch_norm_grad,
    [OP_layer_norm_grad] = run_layer_norm_grad,
};
