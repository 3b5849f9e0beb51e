/* memory_plan.c: see memory_plan.h. */
#include "runtime/memory_plan.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/layout.h"

typedef struct Item { /* a temporary */
    int32_t buffer, first, last;
    size_t bytes, offset;
} Item;

/* Largest first; equal sizes in order of the table, so that the plan is the same everywhere. */
static int by_size(const void *a, const void *b) {
    const Item *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer < y->buffer ? -1 : 1;
}

static int by_offset(const void *a, const void *b) {
    const Item *const *x = a, *const *y = b;
    if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
    return (*x)->buffer < (*y)->buffer ? -1 : 1;
}

static bool live_together(const Item *a, const Item *b) { return a->first <= b->last && b->first <= a->last; }

/* The lowest gap that takes |it| between the placed items that are live at the same time. */
static size_t find_place(const Item *it, Item *placed, int count, const Item **neighbours, bool separate) {
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

static size_t place_all(Item *items, int count, const Item **neighbours, bool separate) {
    size_t arena = 0;
    qsort(items, (size_t)count, sizeof *items, by_size);
    for (int i = 0; i < count; i++) {
        items[i].offset = find_place(&items[i], items, i, neighbours, separate);
        if (items[i].offset + items[i].bytes > arena) arena = items[i].offset + items[i].bytes;
    }
    return arena;
}

static amp_status measure(amp_memory_plan *plan, const amp_program *program, int64_t capacity, amp_error *err) {
    size_t total = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        int64_t rows = amp_model_dim_at(&b->rows, capacity), cols = amp_model_dim_at(&b->cols, capacity);
        if (!amp_layout_bytes(b->layout, b->storage, rows, cols, &plan->bytes[i]) ||
            !amp_size_add(total, plan->bytes[i], &total))
            return amp_fail(err, AMP_INVALID_ARGUMENT,
                            "capacity %lld: %s would be larger than memory can address; choose a smaller capacity",
                            (long long)capacity, b->name);
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

amp_status amp_memory_plan_make(amp_memory_plan *plan, const amp_program *program, int64_t capacity, bool separate,
                                const amp_allocator *allocator, amp_error *err) {
    size_t count = (size_t)program->buffer_count, used = 0;
    *plan = (amp_memory_plan){.count = program->buffer_count};
    plan->bytes = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->bytes, 16);
    plan->offset = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->offset, 16);
    Item *items = amp_alloc_zeroed(allocator, (count + 1) * sizeof *items, 16);
    const Item **neighbours = amp_alloc_zeroed(allocator, (count + 1) * sizeof *neighbours, 16);
    amp_status status = plan->bytes && plan->offset && items && neighbours
                            ? measure(plan, program, capacity, err)
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to plan %s", program->name);
    for (size_t i = 0; !status && i < count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind == AMP_BUFFER_TEMP)
            items[used++] = (Item){(int32_t)i, b->first_kernel, b->last_kernel, plan->bytes[i], 0};
    }
    if (!status) {
        plan->arena = place_all(items, (int)used, neighbours, separate);
        for (size_t i = 0; i < used; i++) plan->offset[items[i].buffer] = items[i].offset;
        plan->flags = line_up(plan, program, AMP_BUFFER_FLAG);
        plan->outputs = line_up(plan, program, AMP_BUFFER_OUTPUT);
        plan->watched = line_up(plan, program, AMP_BUFFER_WATCH);
    }
    amp_free(allocator, items, (count + 1) * sizeof *items, 16);
    amp_free(allocator, neighbours, (count + 1) * sizeof *neighbours, 16);
    if (status) amp_memory_plan_free(plan, allocator);
    return status;
}

void amp_memory_plan_free(amp_memory_plan *plan, const amp_allocator *allocator) {
    size_t count = (size_t)plan->count + 1;
    amp_free(allocator, plan->bytes, count * sizeof *plan->bytes, 16);
    amp_free(allocator, plan->offset, count * sizeof *plan->offset, 16);
    *plan = (amp_memory_plan){0};
}
