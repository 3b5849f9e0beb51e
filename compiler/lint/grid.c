/* grid.c: numbers a step apart, as counting makes them.  Exact arithmetic: `whole-numbers` looks at the roundings. */
#include <math.h>

#include "compiler/lint/lint.h"

#define MASK_BELOW -1000.0 /* -1e4, -1e9, -inf in place of a number: no position */
#define LOOKED_AT 64       /* neighbours */

static const Grid none = {0.0, 0.0, NAN, false, false};

static bool is_known(Grid g) { return !isnan(g.step); }

double grid_low(Grid g) { return fmin(g.first, g.last); }
double grid_high(Grid g) { return fmax(g.first, g.last); }

/* What overflows is nothing that one can count on; a mask of -inf alone is kept for |grid_join|. */
static Grid grid(double first, double last, double step, bool counted, bool in_order) {
    if (isnan(step) || (step != 0.0 && (!isfinite(first) || !isfinite(last)))) return none;
    return (Grid){first, last, step, counted && step != 0.0, in_order && step != 0.0};
}

Grid grid_none(void) { return none; }
Grid grid_one(double x) { return grid(x, x, 0.0, false, false); }
Grid grid_counted(double first, double last, double step) { return grid(first, last, step, true, true); }
Grid grid_bits(void) { return grid(0.0, 1.0, 1.0, false, false); }
Grid grid_unordered(Grid g) { return g.in_order = false, g; }

/* The largest number that divides both; NAN if it is so much smaller that few of its multiples occur. */
static double divisor(double a, double b) {
    a = fabs(a), b = fabs(b);
    const double least = a == 0.0 ? b : b == 0.0 ? a : fmin(a, b), near = 1e-6 * least;
    while (b > near) {
        double rest = fmod(a, b);
        if (b - rest <= near) rest = 0.0;
        a = b, b = rest;
    }
    return a < least / 16.0 ? NAN : a;
}

static bool is_one(Grid g) { return g.step == 0.0; }

static Grid moved(Grid g, double factor, double by) {
    return grid(g.first * factor + by, g.last * factor + by, g.step * fabs(factor), g.counted, g.in_order);
}

Grid grid_negated(Grid g) { return moved(g, -1.0, 0.0); }

Grid grid_sum(Grid a, Grid b) {
    if (!is_known(a) || !is_known(b)) return none;
    if (is_one(a)) return moved(b, 1.0, a.first);
    if (is_one(b)) return moved(a, 1.0, b.first);
    return grid(grid_low(a) + grid_low(b), grid_high(a) + grid_high(b), divisor(a.step, b.step), a.counted || b.counted,
                false);
}

/* Of elements that are at the same place in both orders. */
Grid grid_sum_in_order(Grid a, Grid b) {
    const double first = a.first + b.first, last = a.last + b.last, counts = fabs(a.last - a.first) / a.step;
    return grid(first, last, fabs(last - first) / counts, a.counted || b.counted, true);
}

Grid grid_product(Grid a, Grid b) {
    if (!is_known(a) || !is_known(b)) return none;
    if (is_one(a)) return moved(b, a.first, 0.0);
    if (is_one(b)) return moved(a, b.first, 0.0);
    const double p = a.first * b.first, q = a.first * b.last, r = a.last * b.first, s = a.last * b.last;
    const double step = divisor(divisor(a.first * b.step, b.first * a.step), a.step * b.step);
    return grid(fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)), step, a.counted || b.counted, false);
}

/* Those from |low| to |high|. */
Grid grid_clipped(Grid g, double low, double high) {
    if (!is_known(g) || (grid_low(g) >= low && grid_high(g) <= high)) return g;
    if (is_one(g)) return grid_one(fmin(fmax(g.first, low), high));
    const double least = grid_low(g), from = low > least ? least + ceil((low - least) / g.step) * g.step : least;
    const double to = high < grid_high(g) ? least + floor((high - least) / g.step) * g.step : grid_high(g);
    return from < to ? grid(from, to, g.step, g.counted, false) : grid_one(fmin(fmax(least, low), high));
}

Grid grid_maximum(Grid a, Grid b) {
    if (!is_known(a) || !is_known(b)) return none;
    if (is_one(a)) return grid_clipped(b, a.first, INFINITY);
    if (is_one(b)) return grid_clipped(a, b.first, INFINITY);
    return grid(fmax(grid_low(a), grid_low(b)), fmax(grid_high(a), grid_high(b)),
                divisor(divisor(a.step, b.step), a.first - b.first), a.counted || b.counted, false);
}

/* Numbers of both.  Beside counts no other number counts, and beside numbers no mask. */
Grid grid_join(Grid a, Grid b) {
    if (a.counted != b.counted) return grid_unordered(a.counted ? a : b);
    if (!is_known(a) || !is_known(b)) return none;
    if (!a.counted && grid_low(a) < MASK_BELOW && grid_low(a) < grid_low(b)) return b;
    if (!b.counted && grid_low(b) < MASK_BELOW && grid_low(b) < grid_low(a)) return a;
    return grid(fmin(grid_low(a), grid_low(b)), fmax(grid_high(a), grid_high(b)),
                divisor(divisor(a.step, b.step), a.first - b.first), a.counted, false);
}

Grid grid_magnitude(Grid g) {
    if (!is_known(g) || grid_low(g) >= 0.0) return g;
    return grid_high(g) <= 0.0
               ? grid_negated(g)
               : grid_join(grid_clipped(g, 0.0, INFINITY), grid_negated(grid_clipped(g, -INFINITY, 0.0)));
}

/* Squares are further apart the larger they are: the step is the distance of the two largest. */
Grid grid_square(Grid g) {
    const Grid m = grid_magnitude(g);
    const double least = grid_low(m), most = grid_high(m);
    return grid(least * least, most * most, m.step * (2.0 * most - m.step), m.counted, false);
}

Grid grid_floor(Grid g) {
    if (is_one(g)) return grid_one(floor(g.first));
    return grid(floor(g.first), floor(g.last), fmax(floor(g.step), 1.0), true, g.in_order && g.step == floor(g.step));
}

/* Sums of 1 to |count| of them: one number over and over is counted, as bits are.  Sums of counts are further apart the
 * larger they are, and no grid. */
Grid grid_sums(Grid g, double count) {
    if (!is_known(g) || g.counted) return none;
    if (is_one(g)) return grid(g.first, g.first * count, fabs(g.first), true, true);
    const double low = grid_low(g), high = grid_high(g);
    return grid(fmin(low, low * count), fmax(high, high * count), divisor(g.step, low), true, false);
}

/* Of a grid in order: |count| of its numbers, from the one at |from| on. */
Grid grid_sliced(Grid g, double from, double count) {
    const double step = g.last > g.first ? g.step : -g.step, first = g.first + from * step;
    return grid(first, first + (count - 1.0) * step, count > 1.0 ? g.step : 0.0, g.counted, true);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* Significant bits; 0: enough for all that is counted. */
static int bits_of(Dtype t) { return t == AMP_DT_BF16 ? 8 : t == AMP_DT_F16 || t == AMP_DT_TF32 ? 11 : 0; }

static double largest(Grid g) { return fmax(fabs(g.first), fabs(g.last)); }

static double rounded(Dtype t, double x) {
    if (x == 0.0) return x;
    const double least = t == AMP_DT_F16 ? 0x1p-24 : 0x1p-126; /* f16's own end */
    const double spacing = fmax(ldexp(1.0, ilogb(x) + 1 - bits_of(t)), least);
    return nearbyint(x / spacing) * spacing;
}

/* Numbers of a type are further apart the larger they are: neighbours become one at the end that is further from 0. */
bool grid_is_apart(Grid g, Dtype t) {
    if (!g.counted || !bits_of(t)) return true;
    const double end = fabs(g.last) > fabs(g.first) ? g.last : g.first, step = copysign(g.step, end);
    for (int i = 0; i < LOOKED_AT && i * g.step < fabs(g.last - g.first) - g.step / 2.0; i++)
        if (rounded(t, end - i * step) == rounded(t, end - (i + 1) * step)) return false;
    return true;
}

/* Up to which number; a power of two. */
double grid_apart_to(Grid g, Dtype t) {
    const double to = ldexp(1.0, ilogb(g.step) + bits_of(t)), low = fabs(fmod(g.first, g.step));
    const Grid below = {low, low + floor((to - low) / g.step) * g.step, g.step, true, false};
    return grid_is_apart(below, t) ? to : to / 2.0;
}

bool grid_is_finite(Grid g, Dtype t) { return !g.counted || t != AMP_DT_F16 || largest(g) < F16_INFINITE; }

bool grid_is_held(Grid g, Dtype t) { return grid_is_apart(g, t) && grid_is_finite(g, t); }
