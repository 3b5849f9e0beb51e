/* memory_plan.c: see memory_plan.h. */
#include "runtime/memory/memory_plan.h"

#include "base/alloc.h"
#include "runtime/memory/place_temporaries.h"
#include "runtime/model/layout.h"

static amp_status measure(amp_memory_plan *plan, const amp_program *program, const amp_memory_plan_options *o,
                          amp_error *err) {
    int64_t capacity = o->capacity;
    size_t total = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        int64_t rows = amp_model_dim_at(&b->rows, capacity), cols = amp_model_dim_at(&b->cols, capacity);
        bool fits = amp_layout_bytes(b->layout, b->storage, rows, cols, &plan->bytes[i]) &&
                    amp_size_add(plan->bytes[i], o->align - 1, &plan->bytes[i]);
        plan->bytes[i] &= ~(o->align - 1);
        if (!fits || !amp_size_add(total, plan->bytes[i], &total))
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

/* Buffers that take another's place have no item of their own: |items| of the others, which live as long as all in
 * their place. Their numbers are left in |offset|. */
static int list_items(amp_memory_plan *plan, const amp_program *program, bool separate, amp_temporary *items) {
    int used = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind != AMP_BUFFER_TEMP || (b->place && !separate)) continue;
        plan->offset[i] = (size_t)used;
        items[used++] = (amp_temporary){i, b->first_kernel, b->last_kernel, plan->bytes[i], 0, 0};
    }
    for (int32_t i = 0; !separate && i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind != AMP_BUFFER_TEMP || !b->place) continue;
        amp_temporary *item = &items[plan->offset[b->place - 1]];
        if (item->last < b->last_kernel) item->last = b->last_kernel;
    }
    return used;
}

static void share_places(amp_memory_plan *plan, const amp_program *program) {
    for (int32_t i = 0; i < plan->count; i++) {
        const amp_model_buffer *b = &program->buffers[i];
        if (b->kind == AMP_BUFFER_TEMP && b->place) plan->offset[i] = plan->offset[b->place - 1];
    }
}

amp_status amp_memory_plan_make(amp_memory_plan *plan, const amp_program *program,
                                const amp_memory_plan_options *options, const amp_allocator *allocator,
                                amp_error *err) {
    size_t count = (size_t)program->buffer_count;
    *plan = (amp_memory_plan){.count = program->buffer_count};
    plan->bytes = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->bytes);
    plan->offset = amp_alloc_zeroed(allocator, (count + 1) * sizeof *plan->offset);
    amp_temporary *items = amp_alloc_zeroed(allocator, (count + 1) * sizeof *items);
    const amp_temporary **neighbours = amp_alloc_zeroed(allocator, (count + 1) * sizeof *neighbours);
    amp_status status = plan->bytes && plan->offset && items && neighbours
                            ? measure(plan, program, options, err)
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to plan %s", program->name);
    if (!status) {
        int used = list_items(plan, program, options->separate, items);
        plan->arena = amp_place_temporaries(items, used, neighbours, plan->offset, options->separate);
        if (!options->separate) share_places(plan, program);
        plan->flags = line_up(plan, program, AMP_BUFFER_FLAG);
        plan->outputs = line_up(plan, program, AMP_BUFFER_OUTPUT);
        plan->watched = line_up(plan, program, AMP_BUFFER_WATCH);
    }
    amp_free(allocator, items, (count + 1) * sizeof *items);
    amp_free(allocator, neighbours, (count + 1) * sizeof *neighbours);
    if (status) amp_memory_plan_free(plan, allocator);
    return status;
}

void amp_memory_plan_free(amp_memory_plan *plan, const amp_allocator *allocator) {
    size_t count = (size_t)plan->count + 1;
    amp_free(allocator, plan->bytes, count * sizeof *plan->bytes);
    amp_free(allocator, plan->offset, count * sizeof *plan->offset);
    *plan = (amp_memory_plan){0};
}
