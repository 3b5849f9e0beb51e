/* shape.c: dimensions with a symbolic batch N and length T, shapes, broadcasting. */
#include "ir/ir.h"

/* ---- dimensions -------------------------------------------------------------------------------------------------- */

int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

Dim dim_const(int64_t v) { return (Dim){.mul = v, .div = 1}; }

static Dim in_lowest_terms(Dim d) {
    const int64_t g = d.mul > 0 && d.div > 0 ? greatest_common_divisor(d.mul, d.div) : 1;
    d.mul /= g;
    d.div /= g;
    return d;
}

Dim dim_n(int64_t mul, int64_t div) { return in_lowest_terms((Dim){.mul = mul, .div = div, .n = 1}); }
Dim dim_sized(int64_t number) { return (Dim){.mul = number, .div = 1, .sized = 1, .number = (int32_t)number}; }
Dim dim_t(int64_t mul, int64_t div) { return in_lowest_terms((Dim){.mul = mul, .div = div, .t = 1}); }

bool dim_varies(Dim d) { return d.n || d.t; }
bool dim_is_sized(Dim d) { return dim_varies(d) || d.sized; }

Dim dim_divided(Dim d, int64_t by) {
    if (dim_varies(d)) d.div *= by;
    else d.mul /= by;
    return in_lowest_terms(d);
}

Dim dim_quotient(Dim d, Dim by) {
    d = dim_divided(d, by.mul);
    if (dim_varies(by)) d.mul *= by.div;
    d.n -= by.n, d.t -= by.t, d.sized -= d.sized < by.sized ? d.sized : by.sized;
    if (!dim_varies(d)) d.mul /= d.div, d.div = 1;
    return in_lowest_terms(d);
}

bool dim_equal(Dim a, Dim b) {
    return a.n == b.n && a.t == b.t && a.mul == b.mul && (!dim_varies(a) || a.div == b.div);
}

bool dim_is_one(Dim d) { return !dim_varies(d) && d.mul == 1; }

bool dim_times(Dim a, Dim b, Dim *out) {
    Dim d = {.div = 1,
             .n = (uint8_t)(a.n + b.n),
             .t = (uint8_t)(a.t + b.t),
             .sized = (uint8_t)(a.sized + b.sized),
             .number = a.sized ? a.number : b.number};
    if (d.n > LARGEST_POWER || d.t > LARGEST_POWER || __builtin_mul_overflow(a.mul, b.mul, &d.mul)) return false;
    if (dim_varies(a)) d.div = a.div;
    if (dim_varies(b) && __builtin_mul_overflow(d.div, b.div, &d.div)) return false;
    *out = in_lowest_terms(d);
    return true;
}

bool dim_mul(Dim a, Dim b, Dim *out) { return a.n + b.n <= 1 && dim_times(a, b, out); }

int64_t dim_eval(Dim d, Sizes at) {
    int64_t count = d.mul;
    for (int i = 0; i < d.n; i++) count *= at.n;
    for (int i = 0; i < d.t; i++) count *= at.t;
    return dim_varies(d) ? count / d.div : count;
}

int64_t dim_assumed(Dim d, int64_t n) {
    double count = (double)d.mul;
    for (int i = 0; i < d.n; i++) count *= (double)n;
    for (int i = 0; i < d.t + d.sized; i++) count *= ASSUMED_T;
    for (int i = 0; i < d.sized; i++) count /= d.number;
    return (int64_t)(dim_varies(d) ? count / (double)d.div : count);
}

int64_t dim_given(Dim d) {
    int64_t given = 1;
    for (int i = 0; i < d.sized; i++) given *= d.number;
    return given;
}

/* With T's number as a factor: 256 as 4 * T=64, 4 as T=64 / 16. */
static void sized_print(Text *t, Dim d) {
    const int64_t length = dim_given(d);
    const int64_t by = length / greatest_common_divisor(length, d.mul), mul = d.mul * by / length, div = by;
    const char *times = "";
    if (mul != 1) text_printf(t, "%lld", (long long)mul), times = " * ";
    for (int i = 0; i < d.sized; i++, times = " * ") text_printf(t, "%sT=%d", times, (int)d.number);
    for (int i = 0; i < d.n; i++) text_puts(t, " * N");
    const int64_t all = dim_varies(d) ? div * d.div : div;
    if (all != 1) text_printf(t, " / %lld", (long long)all);
}

void dim_print(Text *t, Dim d) {
    const char *times = "";
    if (d.sized) {
        sized_print(t, d);
        return;
    }
    if (!dim_varies(d) || d.mul != 1) text_printf(t, "%lld", (long long)d.mul), times = " * ";
    for (int i = 0; i < d.n + d.t; i++, times = " * ") text_printf(t, "%s%c", times, i < d.n ? 'N' : 'T');
    if (dim_varies(d) && d.div != 1) text_printf(t, " / %lld", (long long)d.div);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

Shape shape_scalar(void) { return (Shape){.rank = 0}; }

Shape shape_of(int rank, const Dim *d) {
    Shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) s.d[i] = d[i];
    return s;
}

bool shape_equal(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!dim_equal(a->d[i], b->d[i])) return false;
    return true;
}

bool shape_same(const Shape *a, const Shape *b) {
    bool same = shape_equal(a, b);
    for (int i = 0; i < a->rank && same; i++) same = a->d[i].sized == b->d[i].sized;
    return same;
}

/* Dim |i| from the right; 1 past the front. */
static Dim dim_from_right(const Shape *s, int i) { return i < s->rank ? s->d[s->rank - 1 - i] : dim_const(1); }

bool shape_broadcast(const Shape *a, const Shape *b, Shape *out) {
    *out = (Shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < out->rank; i++) {
        Dim x = dim_from_right(a, i), y = dim_from_right(b, i);
        if (!dim_equal(x, y) && !dim_is_one(x) && !dim_is_one(y)) return false;
        /* of two ones the one that T might be */
        out->d[out->rank - 1 - i] = dim_is_one(x) && !(x.sized && dim_is_one(y)) ? y : x;
    }
    return true;
}

static bool count_dims(const Shape *s, int from, int to, Dim *out) {
    *out = dim_const(1);
    for (int i = from; i < to; i++)
        if (!dim_mul(*out, s->d[i], out)) return false;
    return true;
}

bool shape_count(const Shape *s, Dim *out) { return count_dims(s, 0, s->rank, out); }

bool shape_elements(const Shape *s, Elements *out) {
    *out = (Elements){1, 1, 0, 0};
    for (int i = 0; i < s->rank; i++) {
        Dim d = s->d[i];
        if (dim_varies(d) && __builtin_mul_overflow(out->div, d.div, &out->div)) return false;
        if (__builtin_mul_overflow(out->mul, d.mul, &out->mul)) return false;
        out->batches += d.n;
        out->lengths += d.t;
    }
    int64_t g = greatest_common_divisor(out->mul, out->div);
    if (g > 0) out->mul /= g, out->div /= g;
    return true;
}

bool shape_same_count(const Shape *a, const Shape *b) {
    Elements x, y;
    return shape_elements(a, &x) && shape_elements(b, &y) && x.mul == y.mul && x.div == y.div &&
           x.batches == y.batches && x.lengths == y.lengths;
}

int shape_batch_dims(const Shape *s) {
    int count = 0;
    for (int i = 0; i < s->rank; i++) count += s->d[i].n;
    return count;
}

bool shape_varies(const Shape *s) {
    for (int i = 0; i < s->rank; i++)
        if (dim_varies(s->d[i])) return true;
    return false;
}

bool shape_matrix(const Shape *s, Dim *rows, Dim *cols) {
    bool column = s->rank == 1 && s->d[0].n; /* [N] is N rows of one column */
    *cols = s->rank == 0 || column ? dim_const(1) : s->d[s->rank - 1];
    return count_dims(s, 0, column ? 1 : s->rank - 1, rows);
}

bool shape_is_matrix(const Shape *s, Dim rows, Dim cols) {
    Dim r, c;
    return shape_matrix(s, &r, &c) && dim_equal(r, rows) && dim_equal(c, cols);
}

bool shape_same_matrix(const Shape *a, const Shape *b) {
    Dim rows, cols;
    return shape_matrix(a, &rows, &cols) && shape_is_matrix(b, rows, cols);
}

void shape_print(Text *t, const Shape *s) {
    text_putc(t, '[');
    for (int i = 0; i < s->rank; i++) {
        if (i) text_puts(t, ", ");
        dim_print(t, s->d[i]);
    }
    text_putc(t, ']');
}

void type_print(Text *t, Dtype d, const Shape *s) {
    text_puts(t, amp_dtype_name(d));
    if (s->rank) shape_print(t, s);
}

const char *shape_text(Arena *a, const Shape *s) {
    Text t;
    text_init(&t, a);
    shape_print(&t, s);
    return text_str(&t);
}

const char *type_text(Arena *a, Dtype d, const Shape *s) {
    return s->rank ? arena_printf(a, "%s%s", amp_dtype_name(d), shape_text(a, s)) : amp_dtype_name(d);
}
