/* place_temporaries.c: see place_temporaries.h.
 *
 * An order of the temporaries decides: each is placed at the lowest gap that takes it between those placed before and
 * live at the same time (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net
 * inference", 2020).  Finding the best order is NP-hard, so several simple ones are tried, and the best of them is
 * improved: what ends at the top of the arena is placed first the next time.  The search ends at the largest set that
 * is live at once, which no plan can beat, or when its budget is used up.  The same program gives the same plan
 * everywhere.
 */
#include "runtime/memory/place_temporaries.h"

#include <stdlib.h>

enum { MAX_ROUNDS = 400 };
static const double BUDGET = 2e7; /* pairs of temporaries looked at */

static bool live_together(const amp_temporary *a, const amp_temporary *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* ---- one order
 * ------------------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b) {
    const amp_temporary *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer < y->buffer ? -1 : 1;
}

static int by_offset(const void *a, const void *b) {
    const amp_temporary *const *x = a, *const *y = b;
    if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
    return (*x)->buffer < (*y)->buffer ? -1 : 1;
}

/* The lowest gap that takes |it| between the placed items that are live at the same time. */
static size_t find_place(const amp_temporary *it, const amp_temporary *placed, int count,
                         const amp_temporary **neighbours, bool separate) {
    int n = 0;
    for (int i = 0; i < count; i++)
        if (separate || live_together(it, &placed[i])) neighbours[n++] = &placed[i];
    qsort(neighbours, (size_t)n, sizeof *neighbours, by_offset);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (neighbours[i]->offset >= at + it->bytes) break;
        size_t end = neighbours[i]->offset + neighbours[i]->bytes;
        if (end > at) at = end;
    }
    return at;
}

static size_t place_in_order(amp_temporary *items, int count, const amp_temporary **neighbours, bool separate) {
    size_t arena = 0;
    qsort(items, (size_t)count, sizeof *items, by_rank);
    for (int i = 0; i < count; i++) {
        items[i].offset = find_place(&items[i], items, i, neighbours, separate);
        if (items[i].offset + items[i].bytes > arena) arena = items[i].offset + items[i].bytes;
    }
    return arena;
}

/* ---- orders to try
 * --------------------------------------------------------------------------------------------------- */

static int64_t largest_first(const amp_temporary *t) {
    (void)t;
    return 0; /* ties go by size */
}
static int64_t longest_life_first(const amp_temporary *t) { return t->last - t->first; }
static int64_t largest_area_first(const amp_temporary *t) {
    return (int64_t)(t->bytes / 64) * (t->last - t->first + 1);
}
static int64_t earliest_first(const amp_temporary *t) { return -(int64_t)t->first; }
static int64_t latest_first(const amp_temporary *t) { return t->last; }

static int64_t (*const orders[])(const amp_temporary *) = {largest_first, largest_area_first, longest_life_first,
                                                           earliest_first, latest_first};
enum { ORDERS = sizeof orders / sizeof orders[0] };

/* What reaches the top of the arena goes before all others. */
static void raise_the_top(amp_temporary *items, int count, size_t arena, int64_t rank) {
    for (int i = 0; i < count; i++)
        if (items[i].offset + items[i].bytes == arena) items[i].rank = rank;
}

/* ---- the search
 * ------------------------------------------------------------------------------------------------------ */

static size_t largest_live_set(const amp_temporary *items, int count) {
    size_t largest = 0;
    for (int i = 0; i < count; i++) { /* such a set is complete when its last member begins to live */
        size_t live = 0;
        for (int j = 0; j < count; j++)
            if (items[j].first <= items[i].first && items[i].first <= items[j].last) live += items[j].bytes;
        if (live > largest) largest = live;
    }
    return largest;
}

static void keep(const amp_temporary *items, int count, size_t *best) {
    for (int i = 0; i < count; i++) best[items[i].buffer] = items[i].offset;
}

size_t amp_place_temporaries(amp_temporary *items, int count, const amp_temporary **neighbours, size_t *best,
                             bool separate) {
    double pairs = (double)count * count;
    int rounds = pairs * MAX_ROUNDS > BUDGET ? (int)(BUDGET / pairs) : MAX_ROUNDS;
    size_t least = SIZE_MAX, wanted = separate || rounds < ORDERS ? 0 : largest_live_set(items, count);
    for (int order = 0; order < ORDERS && least > wanted; order++) {
        for (int i = 0; i < count; i++) items[i].rank = orders[order](&items[i]);
        for (int round = 0; least > wanted; round++) {
            size_t arena = place_in_order(items, count, neighbours, separate);
            if (arena < least) {
                least = arena;
                keep(items, count, best);
            }
            if (separate || round >= rounds / ORDERS) break;
            raise_the_top(items, count, arena, INT64_MAX - MAX_ROUNDS + round);
        }
        if (separate || rounds < ORDERS) break;
    }
    for (int i = 0; i < count; i++) items[i].offset = best[items[i].buffer];
    return count ? least : 0;
}
