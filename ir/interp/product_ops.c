/* product_ops.c: products of matrices; convolution, pooling and their gradients: the defining sums, one element at a
 * time. */
#include "ir/interp/ops.h"
#include "ir/operands.h"

#include <math.h>

/* ---- products of matrices ---------------------------------------------------------------------------------------- */

static int64_t last_dim(const InterpTensor *t) { return t->dims[t->rank - 1]; }

/* Element (row, column) of a matrix that is stored |width| wide, or transposed. */
static double element(const double *data, int64_t width, bool transposed, int64_t row, int64_t column) {
    return data[transposed ? column * width + row : row * width + column];
}

typedef struct Product {
    const double *a, *b;
    int64_t width_of_a, width_of_b, inner;
    bool ta, tb;
} Product;

static double terms_between(const Product *p, int64_t row, int64_t column, int64_t begin, int64_t end) {
    double sum = 0.0;
    for (int64_t k = begin; k < end; k++)
        sum += element(p->a, p->width_of_a, p->ta, row, k) * element(p->b, p->width_of_b, p->tb, k, column);
    return sum;
}

static double product_at(const Product *p, int64_t row, int64_t column) {
    return terms_between(p, row, column, 0, p->inner);
}

/* The matrix of |t| that belongs to the one of |out| at element |i|: leading dims broadcast. */
static const double *matrix_at(const InterpTensor *t, const InterpTensor *out, int64_t i) {
    int64_t of_out[MAX_RANK], at[MAX_RANK] = {0};
    interp_coordinates(out, i, of_out);
    for (int d = 0; d < t->rank - 2; d++) at[d] = t->dims[d] == 1 ? 0 : of_out[d + out->rank - t->rank];
    return t->data + interp_offset(t, at);
}

/* Batched, as NumPy: matmul; batch_contract but where it is merged. */
void interp_op_matmul(Running *r) {
    const InterpTensor *a = r->in[0], *b = r->in[1];
    InterpTensor *out = r->out[0];
    Product p = {
        .ta = interp_bool(r, "ta"), .tb = interp_bool(r, "tb"), .width_of_a = last_dim(a), .width_of_b = last_dim(b)};
    p.inner = a->dims[a->rank - (p.ta ? 2 : 1)];
    int64_t columns = last_dim(out), size = columns * out->dims[out->rank - 2];
    for (int64_t i = 0; i < out->count; i++) {
        p.a = matrix_at(a, out, i);
        p.b = matrix_at(b, out, i);
        out->data[i] = product_at(&p, i % size / columns, i % columns);
    }
}

/* Merged: the products of the last leading dim lie beside each other. */
void interp_op_batch_contract(Running *r) {
    const InterpTensor *a = r->in[0], *b = r->in[1];
    InterpTensor *out = r->out[0];
    if (!interp_bool(r, "merged")) {
        interp_op_matmul(r);
        return;
    }
    Product p = {
        .ta = interp_bool(r, "ta"), .tb = interp_bool(r, "tb"), .width_of_a = last_dim(a), .width_of_b = last_dim(b)};
    p.inner = a->dims[a->rank - (p.ta ? 2 : 1)];
    int64_t columns = last_dim(out), size = columns * out->dims[out->rank - 2],
            width = b->dims[b->rank - (p.tb ? 2 : 1)];
    for (int64_t i = 0; i < out->count; i++) {
        int64_t column = i % columns, product = i / size * (columns / width) + column / width;
        p.a = a->data + product * p.width_of_a * a->dims[a->rank - 2];
        p.b = b->data + product * p.width_of_b * b->dims[b->rank - 2];
        out->data[i] = product_at(&p, i % size / columns, column % width);
    }
}

/* The operands are matrices: their leading dims are rows. */
void interp_op_contract(Running *r) {
    const InterpTensor *a = r->in[0], *b = r->in[1];
    Product p = {.a = a->data, .b = b->data, .width_of_a = last_dim(a), .width_of_b = last_dim(b)};
    p.ta = interp_bool(r, "ta");
    p.tb = interp_bool(r, "tb");
    p.inner = p.ta ? a->count / p.width_of_a : p.width_of_a;
    const int64_t parts = ir_parts(r->op), size = ir_part_size(p.inner, parts);
    const int64_t columns = last_dim(r->out[0]), rows = r->out[0]->count / columns / parts;
    FOR_EACH(r, i) {
        const int64_t row = i / columns % rows, begin = i / columns / rows * size;
        const int64_t end = parts > 1 && begin + size < p.inner ? begin + size : p.inner;
        result(r)[i] = terms_between(&p, row, i % columns, begin, end);
    }
}

/* The parts of a sum, in order. */
void interp_op_sum_parts(Running *r) {
    FOR_EACH(r, i) {
        result(r)[i] = 0.0;
        for (int64_t at = i; at < r->in[0]->count; at += r->out[0]->count) result(r)[i] += r->in[0]->data[at];
    }
}

void interp_op_linear(Running *r) {
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

/* ---- images and weights ------------------------------------------------------------------------------------------ */

/* Images: [N, C, H, W] in a graph, [N, H, W, C] in core IR. */
typedef struct Image {
    double *data;
    int64_t n, channels, size[2];         /* size: height and width */
    int64_t by_sample, by_channel, by[2]; /* distances between neighbours */
} Image;

/* Weights: [O, C / groups, KH, KW] in a graph, [KH, KW, C / groups, O] in core IR. */
typedef struct Weight {
    double *data;
    int64_t outputs, inputs, size[2];
    int64_t by_output, by_input, by[2];
    int64_t part_size, by_part; /* of a weight in parts: pixels of y that meet one of them */
} Weight;

static bool is_core(const Running *r) { return ir_op_info[r->op->code].core; }

static int64_t stride_of(const InterpTensor *t, int dim) {
    int64_t stride = 1;
    for (int d = dim + 1; d < t->rank; d++) stride *= t->dims[d];
    return stride;
}

static Image image_of(const Running *r, const InterpTensor *t) {
    int c = is_core(r) ? 3 : 1, h = is_core(r) ? 1 : 2;
    return (Image){t->data,
                   t->dims[0],
                   t->dims[c],
                   {t->dims[h], t->dims[h + 1]},
                   stride_of(t, 0),
                   stride_of(t, c),
                   {stride_of(t, h), stride_of(t, h + 1)}};
}

/* Of a weight in parts, the first one. */
static Weight weight_of(const Running *r, const InterpTensor *t) {
    int front = t->rank - 4;
    int o = front + (is_core(r) ? 3 : 0), i = front + (is_core(r) ? 2 : 1), h = front + (is_core(r) ? 0 : 2);
    return (Weight){.data = t->data,
                    .outputs = t->dims[o],
                    .inputs = t->dims[i],
                    .size = {t->dims[h], t->dims[h + 1]},
                    .by_output = stride_of(t, o),
                    .by_input = stride_of(t, i),
                    .by = {stride_of(t, h), stride_of(t, h + 1)}};
}

static double *pixel(const Image *x, int64_t n, int64_t c, const int64_t *at) {
    return &x->data[n * x->by_sample + c * x->by_channel + at[0] * x->by[0] + at[1] * x->by[1]];
}

static double *tap(const Weight *w, int64_t o, int64_t i, const int64_t *at) {
    return &w->data[o * w->by_output + i * w->by_input + at[0] * w->by[0] + at[1] * w->by[1]];
}

static void clear(InterpTensor *t) {
    for (int64_t i = 0; i < t->count; i++) t->data[i] = 0.0;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

typedef struct WindowSteps { /* by axis, of an op of a graph or of core IR */
    int64_t stride[2], padding[2], dilation[2];
} WindowSteps;

static void take_pair(const Running *r, const char *name, int64_t otherwise, int64_t pair[2]) {
    const AttrValue *v = ir_attr(r->op, name);
    for (int axis = 0; axis < 2; axis++) pair[axis] = v ? v->dims.at[axis] : otherwise;
}

static WindowSteps steps_of(const Running *r) {
    WindowSteps s;
    take_pair(r, "stride", 1, s.stride);
    take_pair(r, "padding", 0, s.padding);
    take_pair(r, "dilation", 1, s.dilation);
    return s;
}

/* The pixel of x under element |k| of the window at |y|; false where that is padding. */
static bool under(const WindowSteps *s, const Image *x, const int64_t *y, const int64_t *k, int64_t *at) {
    for (int axis = 0; axis < 2; axis++) {
        at[axis] = y[axis] * s->stride[axis] - s->padding[axis] + k[axis] * s->dilation[axis];
        if (at[axis] < 0 || at[axis] >= x->size[axis]) return false;
    }
    return true;
}

#define FOR_PLACES(at, size)                                                                                           \
    for ((at)[0] = 0; (at)[0] < (size)[0]; (at)[0]++)                                                                  \
        for ((at)[1] = 0; (at)[1] < (size)[1]; (at)[1]++)

/* ---- convolution ------------------------------------------------------------------------------------------------- */

/* One product of the sum: elements of y, x and w that meet. */
typedef void (*MeetFn)(double *y, double *x, double *w);

static void to_output(double *y, double *x, double *w) { *y += *x * *w; }
static void to_image(double *y, double *x, double *w) { *x += *y * *w; }
static void to_weight(double *y, double *x, double *w) { *w += *y * *x; }

/* In conv_data's weight the two kinds of channels have changed places (not with tb): [kh, kw, j, c] is output g * O /
 * groups + j. */
static double *tap_for(const Running *r, const Weight *w, int64_t o, int64_t c, int64_t per_output, int64_t per_input,
                       const int64_t *k) {
    return r->op->code == OP_conv_data && !ir_attr(r->op, "tb")->b ? tap(w, c, o % per_output, k)
                                                                   : tap(w, o, c % per_input, k);
}

static Weight part_at(const Weight *w, int64_t pixel) {
    Weight part = *w;
    if (w->part_size) part.data += pixel / w->part_size * w->by_part;
    return part;
}

static void convolve(Running *r, Image y, Image x, Weight w, MeetFn meet) {
    const WindowSteps steps = steps_of(r);
    int64_t groups = interp_int(r, "groups"), per_input = x.channels / groups, per_output = y.channels / groups;
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t o = 0; o < y.channels; o++) {
            int64_t at[2], k[2], under_at[2], first = o / per_output * per_input;
            FOR_PLACES(at, y.size) {
                const Weight part = part_at(&w, (n * y.size[0] + at[0]) * y.size[1] + at[1]);
                FOR_PLACES(k, w.size) {
                    if (!under(&steps, &x, at, k, under_at)) continue;
                    for (int64_t c = first; c < first + per_input; c++)
                        meet(pixel(&y, n, o, at), pixel(&x, n, c, under_at),
                             tap_for(r, &part, o, c, per_output, per_input, k));
                }
            }
        }
}

static void add_bias(const Running *r, Image y) {
    const InterpTensor *bias = r->op->n_in == 3 ? r->in[2] : NULL;
    int64_t at[2];
    for (int64_t n = 0; bias && n < y.n; n++)
        for (int64_t o = 0; o < y.channels; o++) FOR_PLACES(at, y.size) * pixel(&y, n, o, at) += bias->data[o];
}

void interp_op_conv(Running *r) {
    Image y = image_of(r, r->out[0]);
    clear(r->out[0]);
    convolve(r, y, image_of(r, r->in[0]), weight_of(r, r->in[1]), to_output);
    add_bias(r, y);
}
INTERP_ALIKE(conv2d, conv)

/* (dy, weight, ...) */
void interp_op_conv_data(Running *r) {
    clear(r->out[0]);
    convolve(r, image_of(r, r->in[0]), image_of(r, r->out[0]), weight_of(r, r->in[1]), to_image);
}
INTERP_ALIKE(conv2d_input_grad, conv_data)

void interp_op_conv_transpose2d(Running *r) {
    interp_op_conv_data(r);
    add_bias(r, image_of(r, r->out[0]));
}

/* (dy, x, ...) in a graph, (x, dy) in core IR */
void interp_op_conv_weight(Running *r) {
    const InterpTensor *dy = r->in[is_core(r) ? 1 : 0], *x = r->in[is_core(r) ? 0 : 1];
    Image y = image_of(r, dy);
    Weight w = weight_of(r, r->out[0]);
    if (ir_parts(r->op) > 1) {
        w.part_size = ir_part_size(y.n * y.size[0] * y.size[1], ir_parts(r->op));
        w.by_part = stride_of(r->out[0], 0);
    }
    clear(r->out[0]);
    convolve(r, y, image_of(r, x), w, to_weight);
}
INTERP_ALIKE(conv2d_weight_grad, conv_weight)

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* NaN wins, the first of several. */
static bool beats(double x, double best) { return x > best || (isnan(x) && !isnan(best)); }

void interp_op_max_pool2d(Running *r) {
    Image x = image_of(r, r->in[0]), y = image_of(r, r->out[0]), which = image_of(r, r->out[1]);
    const int64_t *size = ir_attr(r->op, "kernel")->dims.at;
    const WindowSteps steps = steps_of(r);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t c = 0; c < y.channels; c++) {
            int64_t at[2], k[2], in[2];
            FOR_PLACES(at, y.size) {
                double best = -INFINITY;
                int64_t chosen = -1;
                FOR_PLACES(k, size) {
                    if (!under(&steps, &x, at, k, in)) continue;
                    double v = *pixel(&x, n, c, in);
                    if (chosen >= 0 && !beats(v, best)) continue;
                    best = v;
                    chosen = k[0] * size[1] + k[1];
                }
                *pixel(&y, n, c, at) = best;
                *pixel(&which, n, c, at) = (double)chosen;
            }
        }
}
INTERP_ALIKE(window_max, max_pool2d)

/* What an element of a window at y and the pixel under it give one another. */
typedef void (*PoolFn)(const Running *r, double *y, double *x, int64_t offset);

static void for_windows(Running *r, Image y, Image x, PoolFn f) {
    const int64_t *size = ir_attr(r->op, "kernel")->dims.at;
    const WindowSteps steps = steps_of(r);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t c = 0; c < y.channels; c++) {
            int64_t at[2], k[2], in[2];
            FOR_PLACES(at, y.size)
            FOR_PLACES(k, size)
            if (under(&steps, &x, at, k, in)) f(r, pixel(&y, n, c, at), pixel(&x, n, c, in), k[0] * size[1] + k[1]);
        }
}

static double window_size(const Running *r) {
    const int64_t *size = ir_attr(r->op, "kernel")->dims.at;
    return (double)size[0] * (double)size[1];
}

static void sum_to_window(const Running *r, double *y, double *x, int64_t offset) {
    (void)r, (void)offset;
    *y += *x;
}

static void sum_to_pixel(const Running *r, double *y, double *x, int64_t offset) {
    (void)r, (void)offset;
    *x += *y;
}

static void mean_to_pixel(const Running *r, double *y, double *x, int64_t offset) {
    (void)offset;
    *x += *y / window_size(r);
}

/* y is an element of dy; the element with the same index in the second operand is the offset that was chosen. */
static void to_chosen(const Running *r, double *y, double *x, int64_t offset) {
    if (r->in[1]->data[y - r->in[0]->data] == (double)offset) *x += *y;
}

void interp_op_window_sum(Running *r) {
    clear(r->out[0]);
    for_windows(r, image_of(r, r->out[0]), image_of(r, r->in[0]), sum_to_window);
}

void interp_op_avg_pool2d(Running *r) {
    interp_op_window_sum(r);
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] /= window_size(r);
}

static void pool_grad(Running *r, PoolFn f) {
    clear(r->out[0]);
    for_windows(r, image_of(r, r->in[0]), image_of(r, r->out[0]), f);
}

void interp_op_max_pool2d_grad(Running *r) { pool_grad(r, to_chosen); }
INTERP_ALIKE(window_max_grad, max_pool2d_grad)
void interp_op_avg_pool2d_grad(Running *r) { pool_grad(r, mean_to_pixel); }
void interp_op_window_sum_grad(Running *r) { pool_grad(r, sum_to_pixel); }

void interp_op_global_avg_pool(Running *r) {
    int64_t area = r->in[0]->dims[2] * r->in[0]->dims[3];
    clear(r->out[0]);
    for (int64_t i = 0; i < r->in[0]->count; i++) r->out[0]->data[i / area] += r->in[0]->data[i] / (double)area;
}

void interp_op_global_avg_pool_grad(Running *r) {
    int64_t area = r->out[0]->dims[2] * r->out[0]->dims[3];
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = r->in[0]->data[i / area] / (double)area;
}

/* ---- other sizes ------------------------------------------------------------------------------------------------- */

typedef enum Resizing { AREA, NEAREST, LINEAR } Resizing;

static Resizing resizing_of(const Running *r) {
    const AttrValue *mode = ir_attr(r->op, "mode");
    return !mode || !strcmp(mode->s, "area") ? AREA : !strcmp(mode->s, "nearest") ? NEAREST : LINEAR;
}

/* How much element |j| of |in| counts in element |i| of |out|, along one side. */
static double share(const Running *r, double in, double out, double i, double j) {
    double first = floor(i * in / out), end = ceil((i + 1) * in / out);
    switch (resizing_of(r)) {
    case AREA: return j >= first && j < end ? 1 / (end - first) : 0;
    case NEAREST: return j == first;
    default: break;
    }
    double at = interp_bool(r, "align_corners") ? i * (in - 1) / fmax(out - 1, 1) : (i + 0.5) * in / out - 0.5;
    at = fmin(fmax(at, 0), in - 1);
    return fmax(1 - fabs(at - j), 0);
}

/* The shares of |x|'s elements in |y|'s along |axis|: [y, x]. */
static double *shares(const Running *r, const Image *y, const Image *x, int axis) {
    double *all = interp_scratch(r, y->size[axis] * x->size[axis]);
    for (int64_t i = 0; i < y->size[axis]; i++)
        for (int64_t j = 0; j < x->size[axis]; j++)
            all[i * x->size[axis] + j] = share(r, (double)x->size[axis], (double)y->size[axis], (double)i, (double)j);
    return all;
}

/* y = shares x, or with |back| x = shares^T y. */
static void resize(Running *r, Image y, Image x, bool back) {
    const double *high = shares(r, &y, &x, 0), *wide = shares(r, &y, &x, 1);
    clear(r->out[0]);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t c = 0; c < y.channels; c++) {
            int64_t at[2], from[2];
            FOR_PLACES(at, y.size)
            FOR_PLACES(from, x.size) {
                double w = high[at[0] * x.size[0] + from[0]] * wide[at[1] * x.size[1] + from[1]];
                double *to = back ? pixel(&x, n, c, from) : pixel(&y, n, c, at);
                if (w != 0) *to += w * (back ? *pixel(&y, n, c, at) : *pixel(&x, n, c, from));
            }
        }
}

void interp_op_adaptive_avg_pool2d(Running *r) { resize(r, image_of(r, r->out[0]), image_of(r, r->in[0]), false); }
INTERP_ALIKE(resample, adaptive_avg_pool2d)
INTERP_ALIKE(upsample, adaptive_avg_pool2d)
void interp_op_adaptive_avg_pool2d_grad(Running *r) { resize(r, image_of(r, r->in[0]), image_of(r, r->out[0]), true); }
INTERP_ALIKE(resample_grad, adaptive_avg_pool2d_grad)
INTERP_ALIKE(upsample_grad, adaptive_avg_pool2d_grad)
