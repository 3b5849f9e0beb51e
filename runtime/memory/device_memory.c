/* device_memory.c: see device_memory.h. */
#include "runtime/memory/device_memory.h"

#include "base/alloc.h"
#include "base/error.h"

void amp_device_memory_retain(amp_device_memory *m) {
    if (m) atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
}

void amp_device_memory_release(amp_device_memory *m) {
    if (m && atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) == 1) m->type->destroy(m);
}

bool amp_device_memory_same(const amp_device_memory *a, const amp_device_memory *b) {
    return a == b || (a && b && a->type == b->type && a->type->same(a, b));
}

const char *amp_device_memory_name(const amp_device_memory *m) { return m ? m->name : "the host's memory"; }

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static size_t aligned(size_t bytes) {
    return (bytes + AMP_DEVICE_MEMORY_ALIGN - 1) / AMP_DEVICE_MEMORY_ALIGN * AMP_DEVICE_MEMORY_ALIGN;
}

void amp_device_arena_begin(amp_device_arena *b, amp_device_memory *memory, bool separate) {
    *b = (amp_device_arena){.memory = memory, .separate = separate};
    amp_device_memory_retain(memory);
}

static void *place_alone(amp_device_arena *b, size_t bytes) {
    void **at = &b->each[b->given];
    if (b->status) return NULL;
    b->status = b->memory->type->allocate(b->memory, bytes, at, &b->error);
    b->given += !b->status;
    return *at;
}

static void *place_in_line(amp_device_arena *b, size_t bytes) {
    char *at = b->base + b->taken;
    b->taken += aligned(bytes);
    return at;
}

/* A program without arena takes 0 bytes, which have no address. */
void *amp_device_arena_take(amp_device_arena *b, size_t bytes) {
    if (!bytes) return NULL;
    if (b->placing) return b->separate ? place_alone(b, bytes) : place_in_line(b, bytes);
    b->bytes += b->separate ? bytes : aligned(bytes);
    b->count++;
    return NULL;
}

amp_status amp_device_arena_allocate(amp_device_arena *b, const amp_allocator *allocator, amp_error *err) {
    void *base = NULL;
    b->placing = true;
    if (b->separate) {
        b->each = amp_alloc_zeroed(allocator, b->count * sizeof *b->each);
        return b->each ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to list %zu buffers", b->count);
    }
    if (b->bytes) AMP_TRY(b->memory->type->allocate(b->memory, b->bytes, &base, err));
    b->base = base;
    return AMP_OK;
}

amp_status amp_device_arena_end(const amp_device_arena *b, amp_error *err) {
    return b->status ? amp_fail(err, b->status, "%s", b->error.message) : AMP_OK;
}

void amp_device_arena_free(amp_device_arena *b, const amp_allocator *allocator) {
    if (!b->memory) return;
    for (size_t i = 0; b->each && i < b->given; i++) b->memory->type->release(b->memory, b->each[i]);
    if (b->base) b->memory->type->release(b->memory, b->base);
    amp_free(allocator, b->each, b->count * sizeof *b->each);
    amp_device_memory_release(b->memory);
    *b = (amp_device_arena){0};
}
