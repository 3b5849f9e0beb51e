/* model_check_kernels.c: what the kernels of a model's programs must fulfil; see model_check.c. */
#include "base/alloc.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/model_check.h"

typedef amp_check Check;

enum { MAX_OPERANDS = 4096 /* of a kernel: the executor keeps them on its stack */ };

/* ---- matrix products --------------------------------------------------------------------------------------------- */

static bool same_dim(const Check *c, const amp_model_dim *a, const amp_model_dim *b) {
    for (int i = 0; i < AMP_CHECK_POINTS; i++)
        if (amp_model_dim_at(a, amp_check_point(c, i)) != amp_model_dim_at(b, amp_check_point(c, i))) return false;
    return true;
}

static bool is_narrow(const amp_model_dim *d) { return !amp_dim_varies(d) && d->mul < 32; }

/* One operand of a product: stored as |down| x |across|, in the layout that the table of docs/design/kernels.md names,
 * or dense where it is narrow, but for B transposed.
 */
static bool product_operand_fits(const Check *c, const amp_model_kernel *k, int32_t at, uint32_t layout,
                                 const amp_model_dim *down, const amp_model_dim *across) {
    if (!amp_check_index(at, k->operand_count)) return false;
    const amp_model_buffer *b = &c->program->buffers[k->operands[at]];
    bool dense =
        b->layout == AMP_LAYOUT_ROWS && is_narrow(&b->cols) && !(at == k->product.b && k->product.b_transposed);
    return !amp_buffer_is_optional(b) && (b->layout == layout || dense) && b->storage == k->product.operand &&
           same_dim(c, &b->rows, down) && same_dim(c, &b->cols, across);
}

static amp_status check_matrices(Check *c, const amp_model_kernel *k) {
    const amp_model_product *p = &k->product;
    bool pairs = p->operand == AMP_DT_BF16;
    if (!amp_check_dim(c, &p->k)) return amp_check_fail(c, "kernel %s: its inner dimension is damaged", k->name);
    uint32_t a_layout = p->a_transposed && pairs ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS;
    uint32_t b_layout = p->b_transposed ? (pairs ? AMP_LAYOUT_PAIRS_T : AMP_LAYOUT_PANELS_T)
                                        : (pairs ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS);
    const amp_model_dim *a_down = p->a_transposed ? &p->k : &k->rows, *a_across = p->a_transposed ? &k->rows : &p->k;
    const amp_model_dim *b_down = p->b_transposed ? &k->cols : &p->k, *b_across = p->b_transposed ? &p->k : &k->cols;
    if (!product_operand_fits(c, k, p->a, a_layout, a_down, a_across) ||
        !product_operand_fits(c, k, p->b, b_layout, b_down, b_across))
        return amp_check_fail(c, "kernel %s: the operands of its product do not fit it", k->name);
    return AMP_OK;
}

/* ---- batches of products ----------------------------------------------------------------------------------------- */

static bool is_stride(Check *c, const amp_model_dim *d) {
    return (!d->mul && !amp_dim_varies(d)) || amp_check_dim(c, d);
}

static bool batch_is_sound(Check *c, const amp_model_kernel *k) {
    const amp_model_batch *x = k->batch;
    bool sound = x->rank <= AMP_MODEL_BATCH_MAX_DIMS && x->in_columns <= 1 && x->in_columns <= x->rank &&
                 amp_check_dim(c, &x->m) && amp_check_dim(c, &x->n) && amp_check_dim(c, &k->product.k) &&
                 is_stride(c, &x->a.pitch) && is_stride(c, &x->b.pitch);
    for (uint32_t i = 0; sound && i < x->rank; i++)
        sound = amp_check_dim(c, &x->dims[i]) && is_stride(c, &x->a.strides[i]) && is_stride(c, &x->b.strides[i]);
    return sound;
}

/* |*sum| plus (count - 1) strides. */
static bool add_steps(int64_t *sum, int64_t count, int64_t stride) {
    int64_t steps;
    return !__builtin_mul_overflow(count - 1, stride, &steps) && !__builtin_add_overflow(*sum, steps, sum);
}

/* Whether all elements of an operand, |down| rows of |across| in memory, are in its buffer at |sizes|. */
static bool batch_operand_fits(const Check *c, const amp_model_kernel *k, const amp_model_batch_operand *x, int32_t at,
                               int64_t down, int64_t across, amp_sizes sizes) {
    if (!amp_check_index(at, k->operand_count)) return false;
    const amp_model_buffer *b = &c->program->buffers[k->operands[at]];
    int64_t last = x->offset, size;
    if (amp_buffer_is_optional(b) || b->layout != AMP_LAYOUT_ROWS || b->storage != k->product.operand) return false;
    bool fits =
        x->offset >= 0 && add_steps(&last, down, amp_model_dim_at(&x->pitch, sizes)) && add_steps(&last, across, 1);
    for (uint32_t i = 0; fits && i < k->batch->rank; i++)
        fits = add_steps(&last, amp_model_dim_at(&k->batch->dims[i], sizes), amp_model_dim_at(&x->strides[i], sizes));
    return fits &&
           !__builtin_mul_overflow(amp_model_dim_at(&b->rows, sizes), amp_model_dim_at(&b->cols, sizes), &size) &&
           last < size;
}

static bool batch_fits_at(const Check *c, const amp_model_kernel *k, amp_sizes sizes) {
    const amp_model_batch *x = k->batch;
    const amp_model_product *p = &k->product;
    int64_t size[3] = {amp_model_dim_at(&x->m, sizes), amp_model_dim_at(&x->n, sizes), amp_model_dim_at(&p->k, sizes)};
    int64_t rows = size[0], cols = size[1];
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t *of = x->in_columns && i + 1 == x->rank ? &cols : &rows;
        if (__builtin_mul_overflow(*of, amp_model_dim_at(&x->dims[i], sizes), of)) return false;
    }
    return rows == amp_model_dim_at(&k->rows, sizes) && cols == amp_model_dim_at(&k->cols, sizes) &&
           batch_operand_fits(c, k, &x->a, p->a, size[p->a_transposed ? 2 : 0], size[p->a_transposed ? 0 : 2], sizes) &&
           batch_operand_fits(c, k, &x->b, p->b, size[p->b_transposed ? 1 : 2], size[p->b_transposed ? 2 : 1], sizes);
}

static amp_status check_batch(Check *c, const amp_model_kernel *k) {
    if (!batch_is_sound(c, k)) return amp_check_fail(c, "kernel %s: its batch of products is damaged", k->name);
    for (int i = 0; i < AMP_CHECK_CORNERS; i++)
        if (!batch_fits_at(c, k, amp_check_corner(c, i)))
            return amp_check_fail(c, "kernel %s: the operands of its batch of products do not fit it", k->name);
    return AMP_OK;
}

/* ---- windows of images ------------------------------------------------------------------------------------------- */

enum { WINDOW_LIMIT = 1 << 20 };

static bool in_range(const int32_t *v, int count, int32_t least) {
    for (int i = 0; i < count; i++)
        if (v[i] < least || v[i] > WINDOW_LIMIT) return false;
    return true;
}

/* How often the window fits into one axis; 0 where it does not. */
static int64_t positions_of(int64_t size, int64_t taps, int64_t stride, int64_t padding, int64_t dilation) {
    int64_t room = size + 2 * padding - dilation * (taps - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

static bool window_is_sound(const amp_model_window *w) {
    const int32_t sizes[] = {w->h, w->w, w->c, w->oh, w->ow, w->oc, w->kh, w->kw};
    if (w->kind > AMP_WINDOW_CONV_WEIGHT || !in_range(sizes, 8, 1) || !in_range(w->stride, 2, 1) ||
        !in_range(w->padding, 2, 0) || !in_range(w->dilation, 2, 1))
        return false;
    if (w->groups < 0 || (w->groups > 1 && (w->c % w->groups || w->oc % w->groups))) return false;
    size_t weights;
    if (!amp_size_mul((size_t)w->kh * (size_t)w->kw, (size_t)w->c * (size_t)w->oc, &weights) ||
        weights > (size_t)AMP_CHECK_DIM_LIMIT)
        return false;
    return positions_of(w->h, w->kh, w->stride[0], w->padding[0], w->dilation[0]) == w->oh &&
           positions_of(w->w, w->kw, w->stride[1], w->padding[1], w->dilation[1]) == w->ow;
}

static bool is_number(const amp_model_dim *d, int64_t value) { return !amp_dim_varies(d) && d->mul == value; }

/* Samples of |pixels| pixels that |rows| are; 0 where they are no whole number. */
static int64_t samples_at(const amp_model_dim *rows, int64_t pixels, amp_sizes sizes) {
    int64_t count = amp_model_dim_at(rows, sizes);
    return count % pixels ? 0 : count / pixels;
}

static bool same_samples(const Check *c, const amp_model_dim *x, int64_t x_pixels, const amp_model_dim *y,
                         int64_t y_pixels) {
    for (int i = 0; i < AMP_CHECK_POINTS; i++) {
        const amp_sizes at = amp_check_point(c, i);
        const int64_t samples = samples_at(x, x_pixels, at);
        if (!samples || samples != samples_at(y, y_pixels, at)) return false;
    }
    return true;
}

static const amp_model_buffer *operand_of(const Check *c, const amp_model_kernel *k, int32_t at) {
    if (!amp_check_index(at, k->operand_count)) return NULL;
    const amp_model_buffer *b = &c->program->buffers[k->operands[at]];
    return !amp_buffer_is_optional(b) && b->storage == k->product.operand ? b : NULL;
}

static bool is_image(const amp_model_buffer *b, int64_t channels) {
    if (!b || !is_number(&b->cols, channels)) return false;
    return b->layout == AMP_LAYOUT_PANELS || (b->layout == AMP_LAYOUT_ROWS && channels < 32);
}

/* The weights of CONV, for its gradient. */
static bool are_transposed_weights(const amp_model_buffer *b, const amp_model_window *w) {
    bool pairs = b && b->storage == AMP_DT_BF16;
    return b && b->layout == (pairs ? AMP_LAYOUT_PAIRS_T : AMP_LAYOUT_PANELS_T) && !(pairs && w->oc % 2) &&
           w->c % 32 == 0 && is_number(&b->rows, (int64_t)w->kh * w->kw * w->c) && is_number(&b->cols, w->oc);
}

static bool are_weights(const amp_model_buffer *b, const amp_model_window *w, int64_t inner, int64_t cols) {
    bool pairs = b && b->storage == AMP_DT_BF16;
    return b && b->layout == (pairs ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS) && !(pairs && inner % 2) &&
           is_number(&b->rows, (int64_t)w->kh * w->kw * inner) && is_number(&b->cols, cols);
}

static int64_t groups_of(const amp_model_window *w) { return w->groups > 1 ? w->groups : 1; }

/* The weights of CONV, which CONV_DATA reads too. */
static bool are_grouped_weights(const amp_model_buffer *b, const amp_model_window *w, const amp_model_buffer *a) {
    return b && b->layout == AMP_LAYOUT_PANELS && b->storage == a->storage && is_number(&b->cols, w->oc) &&
           is_number(&b->rows, (int64_t)w->kh * w->kw * (w->c / groups_of(w)));
}

static bool weights_fit(const amp_model_kernel *k, const amp_model_buffer *a, const amp_model_buffer *b) {
    const amp_model_window *w = &k->window;
    if (groups_of(w) > 1) return !k->product.b_transposed && are_grouped_weights(b, w, a);
    if (w->kind == AMP_WINDOW_CONV) return are_weights(b, w, w->c, w->oc);
    return k->product.b_transposed ? are_transposed_weights(b, w) : are_weights(b, w, w->oc, w->c);
}

static bool window_operands_fit(const Check *c, const amp_model_kernel *k) {
    const amp_model_window *w = &k->window;
    const amp_model_buffer *a = operand_of(c, k, k->product.a), *b = operand_of(c, k, k->product.b);
    const int64_t x_pixels = (int64_t)w->h * w->w, y_pixels = (int64_t)w->oh * w->ow;
    switch (w->kind) {
    case AMP_WINDOW_CONV:
        return is_image(a, w->c) && weights_fit(k, a, b) && is_number(&k->cols, w->oc) &&
               same_samples(c, &a->rows, x_pixels, &k->rows, y_pixels);
    case AMP_WINDOW_CONV_DATA:
        return is_image(a, w->oc) && weights_fit(k, a, b) && is_number(&k->cols, w->c) &&
               same_samples(c, &a->rows, y_pixels, &k->rows, x_pixels);
    default:
        return is_image(a, w->c) && is_image(b, w->oc) && is_number(&k->cols, w->oc) &&
               is_number(&k->rows, (int64_t)w->kh * w->kw * (w->c / groups_of(w))) &&
               same_samples(c, &a->rows, x_pixels, &b->rows, y_pixels);
    }
}

static amp_status check_window(const Check *c, const amp_model_kernel *k) {
    if (!window_is_sound(&k->window)) return amp_check_fail(c, "kernel %s: its window is damaged", k->name);
    if (k->product.a_transposed || (k->product.b_transposed && k->window.kind != AMP_WINDOW_CONV_DATA))
        return amp_check_fail(c, "kernel %s: operands of an image product are not transposed", k->name);
    if (!window_operands_fit(c, k))
        return amp_check_fail(c, "kernel %s: the operands of its image product do not fit it", k->name);
    return AMP_OK;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static amp_status check_product(Check *c, const amp_model_kernel *k) {
    if (k->product.operand != AMP_DT_F32 && k->product.operand != AMP_DT_BF16)
        return amp_check_fail(c, "kernel %s: products are of f32 or bf16", k->name);
    if (k->batch && k->window.kind == AMP_WINDOW_NONE) return check_batch(c, k);
    return k->window.kind == AMP_WINDOW_NONE ? check_matrices(c, k) : check_window(c, k);
}

/* Rows are a monomial, so what holds for the least sizes holds for all. */
static bool segment_fits(Check *c, const amp_model_kernel *k) {
    const amp_model_dim *segment = &k->segment;
    const amp_sizes at = amp_model_least_sizes(c->m);
    if (!segment->mul && !segment->div && !amp_dim_varies(segment)) return true;
    return k->kind == AMP_KERNEL_COLUMN && amp_check_dim(c, segment) && segment->of_t <= k->rows.of_t &&
           segment->of_n <= k->rows.of_n && amp_model_dim_at(&k->rows, at) % amp_model_dim_at(segment, at) == 0;
}

static bool is_predicate(const Check *c, int32_t index) {
    if (index == AMP_MODEL_NONE) return true;
    if (!amp_check_index(index, c->program->buffer_count)) return false;
    const amp_model_buffer *b = &c->program->buffers[index];
    return !amp_buffer_is_optional(b) && amp_storage_size(b->storage) == sizeof(int32_t);
}

static bool positions_fit(const uint32_t *at, uint32_t count, int64_t limit) {
    if (count && !at) return false;
    for (uint32_t i = 0; i < count; i++)
        if (at[i] >= limit) return false;
    return true;
}

static bool updates_watched(const Check *c, const amp_model_kernel *k) {
    for (uint32_t i = 0; i < k->update_count; i++)
        if (amp_buffer_is_optional(&c->program->buffers[k->operands[k->updates[i]]])) return true;
    return false;
}

/* Two dense vectors of f32 that are as long whatever N is, in the training step. */
bool amp_check_rank_sum(const Check *c, const uint32_t *operands, uint32_t count) {
    const uint32_t in = c->program->kind;
    if (count != 2 || (in != AMP_PROGRAM_MICRO_STEP && in != AMP_PROGRAM_APPLY_STEP)) return false;
    for (int i = 0; i < 2; i++) {
        const amp_model_buffer *b = &c->program->buffers[operands[i]], *first = &c->program->buffers[operands[0]];
        if (b->layout != AMP_LAYOUT_ROWS || b->storage != AMP_DT_F32 || amp_dim_varies(&b->rows) ||
            amp_dim_varies(&b->cols) || b->rows.mul != 1 || b->cols.mul != first->cols.mul || amp_buffer_is_optional(b))
            return false;
    }
    return true;
}

static bool is_rank_sum(const Check *c, const amp_model_kernel *k) {
    return k->predicate == AMP_MODEL_NONE && amp_check_rank_sum(c, k->operands, k->operand_count) && !k->cols.of_n &&
           k->cols.mul == c->program->buffers[k->operands[0]].cols.mul;
}

amp_status amp_check_kernel(Check *c, int32_t index) {
    const amp_model_kernel *k = &c->program->kernels[index];
    if (!k->name) return amp_check_fail(c, "kernel %d has no name", index);
    if (k->kind > AMP_KERNEL_COLLECTIVE) return amp_check_fail(c, "kernel %s: unknown kind %u", k->name, k->kind);
    if (k->operand_count > MAX_OPERANDS || !positions_fit(k->operands, k->operand_count, c->program->buffer_count))
        return amp_check_fail(c, "kernel %s: its operands are not buffers of the program", k->name);
    if (!positions_fit(k->updates, k->update_count, k->operand_count))
        return amp_check_fail(c, "kernel %s: it updates what is no operand", k->name);
    if (updates_watched(c, k))
        return amp_check_fail(c, "kernel %s: it updates a buffer that is written only where the session keeps values",
                              k->name);
    if (!is_predicate(c, k->predicate))
        return amp_check_fail(c, "kernel %s: its predicate is no int32 buffer", k->name);
    if (!amp_check_dim(c, &k->rows) || !amp_check_dim(c, &k->cols))
        return amp_check_fail(c, "kernel %s: its space is damaged", k->name);
    if (!k->run[c->m->lowest_isa]) return amp_check_fail(c, "kernel %s: has no function", k->name);
    if (!segment_fits(c, k)) return amp_check_fail(c, "kernel %s: its rows are not whole segments", k->name);
    if (k->kind == AMP_KERNEL_ATTENTION) return amp_check_attention(c, k);
    if (k->kind == AMP_KERNEL_COLLECTIVE && !is_rank_sum(c, k))
        return amp_check_fail(c, "kernel %s: ranks cannot add up its operands", k->name);
    return k->kind == AMP_KERNEL_PRODUCT ? check_product(c, k) : AMP_OK;
}
