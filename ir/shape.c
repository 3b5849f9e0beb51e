/* shape.c: dimensions with a symbolic batch N, shapes, broadcasting. */
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

Dim dim_n(int64_t mul, int64_t div) {
    int64_t g = mul > 0 && div > 0 ? greatest_common_divisor(mul, div) : 1;
    return (Dim){.mul = mul / g, .div = div / g, .n = true};
}

bool dim_equal(Dim a, Dim b) { return a.n == b.n && a.mul == b.mul && (!a.n || a.div == b.div); }

bool dim_is_one(Dim d) { return !d.n && d.mul == 1; }

bool dim_mul(Dim a, Dim b, Dim *out) {
    int64_t mul;
    if ((a.n && b.n) || __builtin_mul_overflow(a.mul, b.mul, &mul)) return false;
    *out = a.n ? dim_n(mul, a.div) : b.n ? dim_n(mul, b.div) : dim_const(mul);
    return true;
}

int64_t dim_eval(Dim d, int64_t n) { return d.n ? d.mul * n / d.div : d.mul; }

static void dim_print(Text *t, Dim d) {
    if (!d.n || d.mul != 1) text_printf(t, "%lld", (long long)d.mul);
    if (d.n) text_puts(t, d.mul != 1 ? " * N" : "N");
    if (d.n && d.div != 1) text_printf(t, " / %lld", (long long)d.div);
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

/* Dim |i| from the right; 1 past the front. */
static Dim dim_from_right(const Shape *s, int i) { return i < s->rank ? s->d[s->rank - 1 - i] : dim_const(1); }

bool shape_broadcast(const Shape *a, const Shape *b, Shape *out) {
    *out = (Shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < out->rank; i++) {
        Dim x = dim_from_right(a, i), y = dim_from_right(b, i);
        if (!dim_equal(x, y) && !dim_is_one(x) && !dim_is_one(y)) return false;
        out->d[out->rank - 1 - i] = dim_is_one(x) ? y : x;
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
    *out = (Elements){1, 1, 0};
    for (int i = 0; i < s->rank; i++) {
        Dim d = s->d[i];
        if (d.n && __builtin_mul_overflow(out->div, d.div, &out->div)) return false;
        if (__builtin_mul_overflow(out->mul, d.mul, &out->mul)) return false;
        out->batches += d.n;
    }
    int64_t g = greatest_common_divisor(out->mul, out->div);
    if (g > 0) out->mul /= g, out->div /= g;
    return true;
}

bool shape_same_count(const Shape *a, const Shape *b) {
    Elements x, y;
    return shape_elements(a, &x) && shape_elements(b, &y) && x.mul == y.mul && x.div == y.div && x.batches == y.batches;
}

int shape_batch_dims(const Shape *s) {
    int count = 0;
    for (int i = 0; i < s->rank; i++) count += s->d[i].n;
    return count;
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
