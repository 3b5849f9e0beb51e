/* model_check_attention.c: what kernels of attention must fulfil: every row that the runtime reads or writes is in its
 * buffer; see model_check.c. */
#include "runtime/model/matrix_layout.h"
#include "runtime/model/model_check.h"

typedef amp_check Check;

enum { WIDEST = 256 };

static bool is_stride(Check *c, const amp_model_dim *d) {
    return (!d->mul && !amp_dim_varies(d)) || amp_check_dim(c, d);
}

static bool is_one_of(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

static bool is_length(Check *c, const amp_model_dim *d) {
    const amp_sizes most = {1, c->m->desc.length_most};
    return !d->of_n && amp_check_dim(c, d) && is_one_of(amp_model_dim_at(d, most), 1, INT32_MAX);
}

static bool strides_are_sound(Check *c, const amp_model_attention *x, const amp_model_attention_operand *o) {
    if (o->operand == AMP_MODEL_NONE) return true;
    bool sound = o->at.offset >= 0 && is_stride(c, &o->at.pitch);
    for (uint32_t i = 0; sound && i < x->rank; i++) sound = is_stride(c, &o->at.strides[i]);
    return sound;
}

static bool is_sound(Check *c, const amp_model_attention *x) {
    if (!x || !is_one_of(x->rank, 1, AMP_MODEL_BATCH_MAX_DIMS)) return false;
    const amp_model_attention_operand *all[] = {&x->q,    &x->k,         &x->v,         &x->mask,     &x->dy,
                                                &x->sums, &x->result[0], &x->result[1], &x->result[2]};
    bool sound = (x->storage == AMP_DT_F32 || x->storage == AMP_DT_BF16) && x->backward <= 1 && x->causal <= 1 &&
                 x->mask.one_step <= 1 && is_length(c, &x->queries) && is_length(c, &x->keys) &&
                 is_one_of(x->width, 1, WIDEST) && is_one_of(x->v_width, 1, WIDEST);
    for (uint32_t i = 0; sound && i < x->rank; i++) sound = amp_check_dim(c, &x->dims[i]);
    for (size_t i = 0; sound && i < sizeof all / sizeof *all; i++) sound = strides_are_sound(c, x, all[i]);
    const amp_model_dim *heads = &x->dims[x->rank - 1];
    return sound && !amp_dim_varies(heads) && is_one_of(x->share, 1, heads->mul) && heads->mul % x->share == 0;
}

/* |*sum| plus (count - 1) strides. */
static bool add_steps(int64_t *sum, int64_t count, int64_t stride) {
    int64_t steps;
    return !__builtin_mul_overflow(count - 1, stride, &steps) && !__builtin_add_overflow(*sum, steps, sum);
}

/* Rows of heads: |rows| of |across| elements each, of |share| times fewer heads than there are of queries. */
typedef struct Rows {
    const amp_model_attention_operand *at;
    int64_t share;
    amp_model_dim rows, across;
} Rows;

static amp_model_dim number(int64_t value) { return (amp_model_dim){.mul = value, .div = 1}; }

static const amp_model_buffer *buffer_of(const Check *c, const amp_model_kernel *k, int32_t operand) {
    return amp_check_index(operand, k->operand_count) ? &c->program->buffers[k->operands[operand]] : NULL;
}

/* Whether all of them are in the buffer. */
static bool rows_fit_at(const amp_model_attention *x, const Rows *r, const amp_model_buffer *b, amp_sizes sizes) {
    int64_t last = r->at->at.offset, size;
    bool fits = add_steps(&last, amp_model_dim_at(&r->rows, sizes), amp_model_dim_at(&r->at->at.pitch, sizes)) &&
                add_steps(&last, amp_model_dim_at(&r->across, sizes), 1);
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        const int64_t dim = amp_model_dim_at(&x->dims[i], sizes), count = i + 1 == x->rank ? dim / r->share : dim;
        fits = add_steps(&last, count, amp_model_dim_at(&r->at->at.strides[i], sizes));
    }
    return fits &&
           !__builtin_mul_overflow(amp_model_dim_at(&b->rows, sizes), amp_model_dim_at(&b->cols, sizes), &size) &&
           last < size;
}

static bool rows_fit(const Check *c, const amp_model_attention *x, const Rows *r, const amp_model_buffer *b) {
    for (int i = 0; i < AMP_CHECK_CORNERS; i++)
        if (!rows_fit_at(x, r, b, amp_check_corner(c, i))) return false;
    return true;
}

/* An operand that must be there, of elements of |storage|. */
static bool is_read(const Check *c, const amp_model_kernel *k, Rows r, uint32_t storage) {
    const amp_model_buffer *b = buffer_of(c, k, r.at->operand);
    return b && !amp_buffer_is_optional(b) && b->layout == AMP_LAYOUT_ROWS && b->storage == storage &&
           rows_fit(c, k->attention, &r, b);
}

static bool is_mask(const Check *c, const amp_model_kernel *k, Rows r) {
    if (r.at->operand == AMP_MODEL_NONE) return true;
    const amp_model_buffer *b = buffer_of(c, k, r.at->operand);
    if (r.at->one_step) r.across = number(1);
    return b && !amp_buffer_is_optional(b) && b->layout == AMP_LAYOUT_ROWS && amp_storage_size(b->storage) == 4 &&
           rows_fit(c, k->attention, &r, b);
}

static bool is_written(const Check *c, const amp_model_kernel *k, Rows r) {
    if (r.at->operand == AMP_MODEL_NONE) return true;
    const amp_model_buffer *b = buffer_of(c, k, r.at->operand);
    return b && b->kind != AMP_BUFFER_INPUT && b->kind != AMP_BUFFER_STATE && b->layout == AMP_LAYOUT_ROWS &&
           b->storage == AMP_DT_F32 && rows_fit(c, k->attention, &r, b);
}

/* The matrix of all heads together. */
static bool is_result(const Check *c, const amp_model_kernel *k) {
    const amp_model_attention *x = k->attention;
    const amp_model_buffer *b = buffer_of(c, k, x->y);
    const bool stored = b && !amp_buffer_is_optional(b) &&
                        (b->layout == AMP_LAYOUT_ROWS || b->layout == AMP_LAYOUT_PANELS) &&
                        (b->storage == AMP_DT_F32 || b->storage == AMP_DT_BF16 || b->storage == AMP_DT_F16);
    for (int i = 0; stored && i < AMP_CHECK_POINTS; i++) {
        const amp_sizes sizes = amp_check_point(c, i);
        int64_t rows = amp_model_dim_at(&x->queries, sizes);
        for (uint32_t d = 0; d + 1 < x->rank; d++)
            if (__builtin_mul_overflow(rows, amp_model_dim_at(&x->dims[d], sizes), &rows)) return false;
        if (rows != amp_model_dim_at(&b->rows, sizes) ||
            x->dims[x->rank - 1].mul * x->v_width != amp_model_dim_at(&b->cols, sizes))
            return false;
    }
    return stored;
}

static bool operands_fit(const Check *c, const amp_model_kernel *k) {
    const amp_model_attention *x = k->attention;
    const Rows q = {&x->q, 1, x->queries, number(x->width)}, keys = {&x->k, x->share, x->keys, number(x->width)},
               v = {&x->v, x->share, x->keys, number(x->v_width)}, mask = {&x->mask, 1, x->queries, x->keys},
               dy = {&x->dy, 1, x->queries, number(x->v_width)}, sums = {&x->sums, 1, x->queries, number(1)};
    if (!is_read(c, k, q, x->storage) || !is_read(c, k, keys, x->storage) || !is_read(c, k, v, x->storage) ||
        !is_mask(c, k, mask))
        return false;
    if (sums.at->operand != AMP_MODEL_NONE && (sums.at->at.pitch.mul != 1 || amp_dim_varies(&sums.at->at.pitch)))
        return false;
    if (!x->backward)
        return is_written(c, k, sums) && is_written(c, k, (Rows){&x->result[0], 1, x->queries, number(x->v_width)}) &&
               x->dy.operand == AMP_MODEL_NONE && x->y == AMP_MODEL_NONE && x->result[1].operand == AMP_MODEL_NONE &&
               x->result[2].operand == AMP_MODEL_NONE;
    return is_read(c, k, dy, x->storage) && is_read(c, k, sums, AMP_DT_F32) && is_result(c, k) &&
           is_written(c, k, (Rows){&x->result[0], 1, x->queries, number(x->width)}) &&
           is_written(c, k, (Rows){&x->result[1], x->share, x->keys, number(x->width)}) &&
           is_written(c, k, (Rows){&x->result[2], x->share, x->keys, number(x->v_width)});
}

amp_status amp_check_attention(Check *c, const amp_model_kernel *k) {
    if (!is_sound(c, k->attention)) return amp_check_fail(c, "kernel %s: its attention is damaged", k->name);
    if (!operands_fit(c, k))
        return amp_check_fail(c, "kernel %s: the operands of its attention do not fit it", k->name);
    return AMP_OK;
}
