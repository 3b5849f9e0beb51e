/* memory_plan.c: see memory_plan.h. */
#include "runtime/memory/memory_plan.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/model/matrix_layout.h"

/* ---- offsets of temporaries -------------------------------------------------------------------------------------- */

/* Those that are live at the same time may not overlap.
 *
 * An order of the temporaries decides: each is placed at the lowest gap that takes it between those placed before and
 * live at the same time (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net
 * inference", 2020).  Finding the best order is NP-hard, so several simple ones are tried, and the best of them is
 * improved: what ends at the top of the arena is placed first the next time.  The search ends at the largest set that
 * is live at once, which no plan can beat, or when its budget is used up.  The same program gives the same plan
 * everywhere. */

typedef struct Temporary {
    int32_t buffer, first, last; /* live from kernel |first| to |last|; buffers are told apart by their number */
    size_t bytes, offset;
    int64_t rank; /* of the order in which they are placed; scratch */
} Temporary;

enum { MAX_ROUNDS = 400 };
static const double BUDGET = 2e7; /* pairs of temporaries looked at */

static bool live_together(const Temporary *a, const Temporary *b) { return a->first <= b->last && b->first <= a->last; }

/* ---- one order --------------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b) {
    const Temporary *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer < y->buffer ? -1 : 1;
}

/* |placed| has those that were placed before, by their offsets. */

/* The lowest gap that takes |it| between those that are live at the same time. */
static size_t find_place(const Temporary *it, const Temporary *const *placed, int count, bool separate) {
    size_t at = 0;
    for (int i = 0; i < count && placed[i]->offset < at + it->bytes; i++) {
        const size_t end = placed[i]->offset + placed[i]->bytes;
        if (end > at && (separate || live_together(it, placed[i]))) at = end;
    }
    return at;
}

static void insert_by_offset(const Temporary **placed, int count, const Temporary *it) {
    int at = count;
    for (; at > 0 && placed[at - 1]->offset > it->offset; at--) placed[at] = placed[at - 1];
    placed[at] = it;
}

static size_t place_in_order(Temporary *items, int count, const Temporary **placed, bool separate) {
    size_t arena = 0;
    qsort(items, (size_t)count, sizeof *items, by_rank);
    for (int i = 0; i < count; i++) {
        items[i].offset = find_place(&items[i], placed, i, separate);
        insert_by_offset(placed, i, &items[i]);
        if (items[i].offset + items[i].bytes > arena) arena = items[i].offset + items[i].bytes;
    }
    return arena;
}

/* ---- orders to try ----------------------------------------------------------------------------------------------- */

static int64_t largest_first(const Temporary *t) {
    (void)t;
    return 0; /* ties go by size */
}
static int64_t longest_life_first(const Temporary *t) { return t->last - t->first; }
static int64_t largest_area_first(const Temporary *t) { return (int64_t)(t->bytes / 64) * (t->last - t->first + 1); }
static int64_t earliest_first(const Temporary *t) { return -(int64_t)t->first; }
static int64_t latest_first(const Temporary *t) { return t->last; }

static int64_t (*const orders[])(const Temporary *) = {largest_first, largest_area_first, longest_life_first,
                                                       earliest_first, latest_first};
enum { ORDERS = sizeof orders / sizeof orders[0] };

/* What reaches the top of the arena goes before all others. */
static void raise_the_top(Temporary *items, int count, size_t arena, int64_t rank) {
    for (int i = 0; i < count; i++)
        if (items[i].offset + items[i].bytes == arena) items[i].rank = rank;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static size_t largest_live_set(const Temporary *items, int count) {
    size_t largest = 0;
    for (int i = 0; i < count; i++) { /* such a set is complete when its last member begins to live */
        size_t live = 0;
        for (int j = 0; j < count; j++)
            if (items[j].first <= items[i].first && items[i].first <= items[j].last) live += items[j].bytes;
        if (live > largest) largest = live;
    }
    return largest;
}

static void keep(const Temporary *items, int count, size_t *best) {
    for (int i = 0; i < count; i++) best[items[i].buffer] = items[i].offset;
}

/* Fills in the offsets and returns the bytes of the arena.  The order of |items| changes.  |placed| and |best| are
 * scratch for |count| elements each.  |separate|: nothing is shared. */
static size_t place_temporaries(Temporary *items, int count, const Temporary **placed, size_t *best, bool separate) {
    double pairs = (double)count * count;
    int rounds = pairs * MAX_ROUNDS > BUDGET ? (int)(BUDGET / pairs) : MAX_ROUNDS;
    size_t least = SIZE_MAX, wanted = separate || rounds < ORDERS ? 0 : largest_live_set(items, count);
    for (int order = 0; order < ORDERS && least > wanted; order++) {
        for (int i = 0; i < count; i++) items[i].rank = orders[order](&items[i]);
        for (int round = 0; least > wanted; round++) {
            size_t arena = place_in_order(items, count, placed, separate);
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

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* At the sizes of the capacity where it has most. */
static bool largest_bytes(const amp_model_buffer *b, const amp_capacity *capacity, size_t *out) {
    *out = 0;
    for (amp_sizes at = {0}; amp_capacity_next(capacity, &at);) {
        const int64_t rows = amp_model_dim_at(&b->rows, at), cols = amp_model_dim_at(&b->cols, at);
        size_t bytes;
        if (!amp_layout_bytes(b->layout, b->storage, rows, cols, &bytes)) return false;
        if (bytes > *out) *out = bytes;
    }
    return true;
}

static amp_status measure(amp_memory_plan *plan, const amp_program *program, const amp_memory_plan_options *o,
                          amp_error *err) {
    size_t total = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        bool fits = largest_bytes(b, &o->capacity, &plan->bytes[i]) &&
                    amp_size_add(plan->bytes[i], o->align - 1, &plan->bytes[i]);
        plan->bytes[i] &= ~(o->align - 1);
        if (!fits || !amp_size_add(total, plan->bytes[i], &total))
            return amp_fail(err, AMP_INVALID_ARGUMENT,
                            "capacity %lld: %s would be larger than memory can address; choose a smaller capacity",
                            (long long)o->capacity.most.n, b->name);
    }
    return AMP_OK;
}

/* Buffers of one kind one after the other. */
static size_t line_up(amp_memory_plan *plan, const amp_program *program, uint32_t kind) {
    size_t at = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        if (program->buffers[i].kind != kind) continue;
        plan->offset[i] = at;
        at += plan->bytes[i];
    }
    return at;
}

static bool takes_place(const amp_model_buffer *b, bool separate) { return b->place && (b->renamed || !separate); }

/* Buffers that take another's place have no item of their own: |items| of the others, which live as long as all in
 * their place. Their numbers are left in |offset|. */
static int list_items(amp_memory_plan *plan, const amp_program *program, bool separate, Temporary *items) {
    int used = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind != AMP_BUFFER_TEMP || takes_place(b, separate)) continue;
        plan->offset[i] = (size_t)used;
        items[used++] = (Temporary){i, b->first_kernel, b->last_kernel, plan->bytes[i], 0, 0};
    }
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind != AMP_BUFFER_TEMP || !takes_place(b, separate)) continue;
        Temporary *item = &items[plan->offset[b->place - 1]];
        if (item->last < b->last_kernel) item->last = b->last_kernel;
    }
    return used;
}

static void share_places(amp_memory_plan *plan, const amp_program *program, bool separate) {
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind == AMP_BUFFER_TEMP && takes_place(b, separate)) plan->offset[i] = plan->offset[b->place - 1];
    }
}

amp_status amp_memory_plan_make(amp_memory_plan *plan, const amp_program *program,
                                const amp_memory_plan_options *options, const amp_allocator *allocator,
                                amp_error *err) {
    size_t count = (size_t)program->buffer_count;
    *plan = (amp_memory_plan){.count = program->buffer_count};
    plan->bytes = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->bytes);
    plan->offset = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->offset);
    Temporary *items = amp_alloc_zeroed(allocator, (count + 1) * sizeof *items);
    const Temporary **placed = amp_alloc_zeroed(allocator, (count + 1) * sizeof *placed);
    amp_status status = plan->bytes && plan->offset && items && placed
                            ? measure(plan, program, options, err)
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to plan %s", program->name);
    if (!status && !options->sizes_only) {
        int used = list_items(plan, program, options->separate, items);
        plan->arena = place_temporaries(items, used, placed, plan->offset, options->separate);
        share_places(plan, program, options->separate);
        plan->flags = line_up(plan, program, AMP_BUFFER_FLAG);
        plan->outputs = line_up(plan, program, AMP_BUFFER_OUTPUT);
        plan->watched = line_up(plan, program, AMP_BUFFER_WATCH);
    }
    amp_free(allocator, items, (count + 1) * sizeof *items);
    amp_free(allocator, placed, (count + 1) * sizeof *placed);
    if (status) amp_memory_plan_free(plan, allocator);
    return status;
}

void amp_memory_plan_free(amp_memory_plan *plan, const amp_allocator *allocator) {
    size_t count = (size_t)plan->count + 1;
    amp_free(allocator, plan->bytes, count * sizeof *plan->bytes);
    amp_free(allocator, plan->offset, count * sizeof *plan->offset);
    *plan = (amp_memory_plan){0};
}
