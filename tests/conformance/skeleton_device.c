/* skeleton_device.c: a device with memory of its own, to copy for a new one.  It computes with the CPU's kernels, on
 * memory that the host can touch only inside of the device's calls: the runtime that reads or writes device memory by
 * itself ends with a segmentation fault, as it would read nonsense from a real device.  Contents are any bytes until
 * they are written. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/conformance/skeleton_device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/device.h"
#include "runtime/model/matrix_layout.h"

/* ---- memory that is closed to the host --------------------------------------------------------------------------- */

enum { PAGE = 4096, ANY = 0xA5 };

typedef struct Block {
    struct Block *next;
    char *address;
    size_t bytes; /* whole pages */
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the blocks, and held while they are open */
static Block *blocks;

static void protect_all(int protection) {
    for (Block *b = blocks; b; b = b->next) (void)mprotect(b->address, b->bytes, protection);
}

static void open_memory(void) {
    pthread_mutex_lock(&lock);
    protect_all(PROT_READ | PROT_WRITE);
}

static void close_memory(void) {
    protect_all(PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static void *map_block(size_t bytes) {
    size_t whole = (bytes / PAGE + 1) * PAGE;
    Block *b = malloc(sizeof *b);
    char *address = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!b || address == MAP_FAILED) {
        free(b);
        return NULL;
    }
    memset(address, ANY, whole);
    (void)mprotect(address, whole, PROT_NONE);
    pthread_mutex_lock(&lock);
    *b = (Block){blocks, address, whole};
    blocks = b;
    pthread_mutex_unlock(&lock);
    return address;
}

static void unmap_block(void *address) {
    pthread_mutex_lock(&lock);
    for (Block **at = &blocks; *at; at = &(*at)->next) {
        Block *b = *at;
        if (b->address != address) continue;
        *at = b->next;
        (void)munmap(b->address, b->bytes);
        free(b);
        break;
    }
    pthread_mutex_unlock(&lock);
}

int skeleton_blocks(void) {
    int count = 0;
    for (const Block *b = blocks; b; b = b->next) count++;
    return count;
}

/* ---- device memory: allocations and copies ----------------------------------------------------------------------- */

static void memory_destroy(amp_device_memory *memory) { free(memory); }

static amp_status memory_allocate(amp_device_memory *memory, size_t bytes, void **out, amp_error *err) {
    *out = map_block(bytes);
    return *out ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "%s has no memory for %zu bytes", memory->name, bytes);
}

static void memory_release(amp_device_memory *memory, void *address) {
    (void)memory;
    if (address) unmap_block(address);
}

static amp_status memory_clear(amp_device_memory *memory, void *address, size_t bytes, amp_error *err) {
    (void)memory, (void)err;
    open_memory();
    memset(address, 0, bytes);
    close_memory();
    return AMP_OK;
}

static amp_status memory_copy(amp_device_memory *memory, void *to, const void *from, size_t bytes, amp_error *err) {
    (void)memory, (void)err;
    open_memory();
    memcpy(to, from, bytes);
    close_memory();
    return AMP_OK;
}

static amp_status memory_blend(amp_device_memory *memory, const amp_device_memory *other, const amp_memory_blend *list,
                               int32_t count, float t, amp_error *err) {
    (void)memory, (void)other, (void)err;
    open_memory();
    for (int32_t i = 0; i < count; i++) {
        const amp_memory_blend *b = &list[i];
        float *to = b->to;
        const float *from = b->from;
        if (b->copies) memcpy(b->to, b->from, b->bytes);
        for (size_t k = 0; !b->copies && k < b->bytes / sizeof *to; k++) to[k] += t * (from[k] - to[k]);
    }
    close_memory();
    return AMP_OK;
}

static bool memory_same(const amp_device_memory *a, const amp_device_memory *b) { return a->type == b->type; }

static const amp_device_memory_type memory_type = {memory_destroy, memory_allocate, memory_release, memory_clear,
                                                   memory_copy,    memory_copy,     memory_same,    memory_blend};

static amp_device_memory *make_memory(void) {
    amp_device_memory *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->type = &memory_type;
    atomic_init(&m->references, 1);
    snprintf(m->name, sizeof m->name, "the memory of the skeleton");
    return m;
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

typedef struct Skeleton {
    amp_device base;
    amp_device *cpu; /* computes */
    amp_device_memory *memory;
    char *inputs; /* in device memory: the header, then the inputs of a run */
    const void *header;
    size_t header_bytes, inputs_bytes;
    const char *scalars; /* in device memory: what the host reads after runs */
    size_t scalar_bytes;
    char *copies; /* of them, AMP_READBACKS on the host; |pending| are not read yet */
    int oldest, pending;
    void **buffers; /* of a run */
    size_t buffer_capacity;
} Skeleton;

static Skeleton *of(amp_device *device) { return (Skeleton *)device; }

static void skeleton_destroy(amp_device *device) {
    Skeleton *s = of(device);
    if (!s) return;
    amp_allocator a = s->base.allocator;
    if (s->inputs) memory_release(s->memory, s->inputs);
    amp_device_memory_release(s->memory);
    amp_device_cpu.destroy(s->cpu);
    free(s->copies);
    free(s->buffers);
    amp_free(&a, s, sizeof *s);
}

static amp_status skeleton_create(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                                  amp_error *err) {
    *out = NULL;
    Skeleton *s = amp_alloc_zeroed(allocator, sizeof *s);
    if (!s) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the skeleton");
    s->base = (amp_device){.type = &amp_device_skeleton, .allocator = *allocator};
    s->memory = make_memory();
    amp_status status = s->memory ? amp_device_cpu.create(options, allocator, &s->cpu, err)
                                  : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the skeleton's memory");
    if (status) skeleton_destroy(&s->base);
    else *out = &s->base;
    return status;
}

static amp_status skeleton_reserve(amp_device *device, const amp_program *program, amp_sizes sizes, amp_error *err) {
    Skeleton *s = of(device);
    size_t count = (size_t)program->buffer_count;
    if (count > s->buffer_capacity) {
        free(s->buffers);
        s->buffer_capacity = 0;
        s->buffers = calloc(count, sizeof *s->buffers);
        if (!s->buffers) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu buffers", count);
        s->buffer_capacity = count;
    }
    return amp_device_cpu.reserve(s->cpu, program, sizes, err);
}

static size_t skeleton_bytes(const amp_device *device, bool on_device) {
    const Skeleton *s = (const Skeleton *)device;
    return on_device ? s->inputs_bytes : AMP_READBACKS * s->scalar_bytes;
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) {
    return (bytes + AMP_DEVICE_MEMORY_ALIGN - 1) / AMP_DEVICE_MEMORY_ALIGN * AMP_DEVICE_MEMORY_ALIGN;
}

/* The header and the inputs to the device; the run's buffers as the device addresses them. */
static void send_inputs(Skeleton *s, const amp_run *run) {
    size_t at = aligned(s->header_bytes);
    if (s->header_bytes) memcpy(s->inputs, s->header, s->header_bytes);
    for (int32_t i = 0; i < run->program->buffer_count; i++) {
        const amp_model_buffer *b = &run->program->buffers[i];
        s->buffers[i] = run->buffers[i];
        if (b->kind != AMP_BUFFER_INPUT) continue;
        size_t count = (size_t)(amp_model_dim_at(&b->rows, run->sizes) * amp_model_dim_at(&b->cols, run->sizes));
        size_t bytes = count * amp_storage_size(b->storage);
        memcpy(s->inputs + at, run->buffers[i], bytes);
        s->buffers[i] = s->inputs + at;
        at += aligned(bytes);
    }
}

static amp_status skeleton_run(amp_device *device, const amp_run *run, amp_error *err) {
    Skeleton *s = of(device);
    AMP_TRY(skeleton_reserve(device, run->program, run->sizes, err));
    amp_run inside = *run;
    inside.buffers = s->buffers;
    open_memory();
    send_inputs(s, run);
    amp_status status = amp_device_cpu.run(s->cpu, &inside, err);
    close_memory();
    return status;
}

/* ---- device memory of a session ---------------------------------------------------------------------------------- */

static amp_device_memory *skeleton_memory(amp_device *device) { return of(device)->memory; }

static amp_status skeleton_reserve_inputs(amp_device *device, const amp_input_room *room, void **out, amp_error *err) {
    Skeleton *s = of(device);
    s->header = room->header;
    s->header_bytes = room->header_bytes;
    s->inputs_bytes = aligned(room->header_bytes) + aligned(room->input_bytes);
    void *block;
    AMP_TRY(memory_allocate(s->memory, s->inputs_bytes, &block, err));
    *out = s->inputs = block;
    return s->header_bytes ? memory_copy(s->memory, s->inputs, s->header, s->header_bytes, err) : AMP_OK;
}

static amp_status skeleton_reserve_readback(amp_device *device, void *block, size_t bytes, amp_error *err) {
    Skeleton *s = of(device);
    s->scalars = block;
    s->scalar_bytes = bytes;
    s->copies = calloc(AMP_READBACKS, bytes + 1);
    return s->copies ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for what the host reads");
}

static char *copy_at(const Skeleton *s, int at) {
    return s->copies + (size_t)((s->oldest + at) % AMP_READBACKS) * s->scalar_bytes;
}

static amp_status skeleton_start_readback(amp_device *device, amp_error *err) {
    Skeleton *s = of(device);
    if (s->scalar_bytes) AMP_TRY(memory_copy(s->memory, copy_at(s, s->pending), s->scalars, s->scalar_bytes, err));
    s->pending++;
    return AMP_OK;
}

static amp_status skeleton_finish_readback(amp_device *device, bool wait, const void **out, amp_error *err) {
    (void)wait, (void)err; /* runs and copies are done when they return */
    Skeleton *s = of(device);
    *out = copy_at(s, 0);
    s->oldest = (s->oldest + 1) % AMP_READBACKS;
    s->pending--;
    return AMP_OK;
}

static amp_status skeleton_copy(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err) {
    return memory_copy(of(device)->memory, to, from, bytes, err);
}

static void skeleton_settle(amp_device *device) { (void)device; }

/* Calls of it take no less time together. */
static amp_status skeleton_enter(amp_device *device, amp_error *err) {
    (void)device, (void)err;
    return AMP_OK;
}

static void skeleton_leave(amp_device *device) { (void)device; }

static const amp_device_memory_calls memory_calls = {
    .memory = skeleton_memory,
    .enter = skeleton_enter,
    .leave = skeleton_leave,
    .reserve_inputs = skeleton_reserve_inputs,
    .reserve_readback = skeleton_reserve_readback,
    .start_readback = skeleton_start_readback,
    .finish_readback = skeleton_finish_readback,
    .read = skeleton_copy,
    .write = skeleton_copy,
    .settle = skeleton_settle,
    .bytes = skeleton_bytes,
};

const amp_device_type amp_device_skeleton = {.name = "skeleton",
                                             .create = skeleton_create,
                                             .destroy = skeleton_destroy,
                                             .reserve = skeleton_reserve,
                                             .run = skeleton_run,
                                             .computes = true,
                                             .device_memory = &memory_calls};
