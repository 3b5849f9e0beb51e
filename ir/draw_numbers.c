/* draw_numbers.c: see draw_numbers.h. */
#include "ir/draw_numbers.h"

/* How many a dimension counts as; 0: they are too many. */
static int64_t counted(Dim d) {
    int64_t count = d.mul / greatest_common_divisor(d.mul, dim_given(d));
    for (int i = 0; i < d.t + d.sized; i++)
        if (__builtin_mul_overflow(count, LARGEST_T, &count)) return 0;
    return count;
}

/* Of a dimension of N. */
static bool counts_samples(Dim d) { return d.n == 1 && d.div == 1 && d.mul % dim_given(d) == 0; }

static void add_part(DrawNumbers *d, Dim size) {
    if (!dim_is_one(size) || dim_is_sized(size)) d->part[d->count++] = (DrawPart){.size = size, .inner = dim_const(1)};
}

/* The parts of all dimensions; false: samples are counted in no part, or in two. */
static bool find_parts(const Shape *s, DrawNumbers *d) {
    const bool column = s->rank == 1 && s->d[0].n; /* N rows of one column */
    int samples = 0;
    for (int i = 0; i < s->rank; i++) {
        Dim inner = s->d[i];
        if (i == s->rank - 1 && !column) d->rows = d->count;
        if (inner.n && (samples++ || !counts_samples(inner))) return false;
        if (inner.n) add_part(d, dim_n(1, 1));
        inner.n = 0;
        add_part(d, inner);
    }
    if (column || !s->rank) d->rows = d->count;
    d->by_sample = samples;
    return true;
}

/* Samples are counted last. */
static bool find_strides(DrawNumbers *d) {
    d->each = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        DrawPart *p = &d->part[i];
        if (p->size.n) continue;
        p->stride = d->each;
        const int64_t count = counted(p->size);
        if (!count || __builtin_mul_overflow(d->each, count, &d->each)) return false;
    }
    for (int i = 0; i < d->count; i++)
        if (d->part[i].size.n) d->part[i].stride = d->each;
    return true;
}

static bool find_inner(DrawNumbers *d) {
    for (int i = d->count - 2; i >= 0; i--)
        if (i != d->rows - 1 && !dim_mul(d->part[i + 1].inner, d->part[i + 1].size, &d->part[i].inner)) return false;
    return true;
}

static bool is_in_order(const DrawNumbers *d) {
    int64_t stride = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        if (d->part[i].stride != stride) return false;
        if (i && dim_is_sized(d->part[i].size)) return false;
        stride *= d->part[i].size.mul;
    }
    return true;
}

DrawNumbers ir_draw_numbers(const Shape *s) {
    DrawNumbers d = {0};
    if (!find_parts(s, &d) || !find_strides(&d) || !find_inner(&d)) return (DrawNumbers){.in_order = true, .each = 1};
    d.in_order = is_in_order(&d);
    return d;
}

DrawNumbers ir_draw_numbers_of_queries(const Shape *q) {
    Shape queries = *q;
    queries.rank--;
    return ir_draw_numbers(&queries);
}

int64_t ir_draw_keys(Dim keys) { return counted(keys); }

int64_t ir_draw_number(const DrawNumbers *d, int64_t index, Sizes at) {
    int64_t number = 0;
    if (d->in_order) return index;
    for (int i = d->count - 1; i >= 0; i--) {
        const int64_t size = dim_eval(d->part[i].size, at);
        number += index % size * d->part[i].stride;
        index /= size;
    }
    return number;
}
