/* driver_memory.c: device memory, page-locked host memory, copies and fills. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- device memory ----------------------------------------------------------------------------------------------- */

CuResult memory_info(Context *c, size_t *free_bytes, size_t *total) {
    if (!free_bytes || !total) return CU_INVALID_VALUE;
    *total = driver.settings.memory;
    *free_bytes = driver.settings.memory - exec_bytes_in_use(c->memory);
    return CU_SUCCESS;
}

CuResult memory_alloc(Context *c, CuPointer *out, size_t bytes) {
    if (!out || bytes == 0) return CU_INVALID_VALUE;
    uint64_t address = exec_alloc(c->memory, bytes);
    if (address == 0) return CU_OUT_OF_MEMORY;
    if (c->allocation_count == c->allocation_room) {
        c->allocation_room = c->allocation_room ? 2 * c->allocation_room : 16;
        c->allocations = must_grow(c->allocations, (size_t)c->allocation_room * sizeof *c->allocations);
    }
    c->allocations[c->allocation_count++] =
        (Allocation){.address = address, .bytes = bytes, .number = ++report.allocations};
    uint64_t used = exec_bytes_in_use(c->memory);
    if (used > report.peak_bytes) report.peak_bytes = used;
    *out = address;
    return CU_SUCCESS;
}

/* "May perform implicit synchronization": it does, and is counted as a wait where there is work. */
CuResult memory_free(Context *c, CuPointer pointer) {
    int i = 0;
    while (i < c->allocation_count && c->allocations[i].address != pointer) i++;
    if (i == c->allocation_count) {
        report_misuse("cuMemFree of 0x%llx, which is no live allocation's start", pointer);
        return CU_INVALID_VALUE;
    }
    if (queue_length(c)) {
        report.waits[CALL_cuMemFree_v2]++;
        queue_run_all(c);
    }
    if (c->sticky) return c->sticky;
    exec_release(c->memory, pointer);
    c->allocation_count--;
    memmove(&c->allocations[i], &c->allocations[i + 1], (size_t)(c->allocation_count - i) * sizeof *c->allocations);
    return CU_SUCCESS;
}

bool memory_inside(Context *c, CuPointer address, uint64_t bytes) {
    uint64_t start, size;
    bool freed = false;
    if (!exec_range(c->memory, address, &start, &size, &freed)) {
        report_misuse("0x%llx is no device memory", address);
        return false;
    }
    if (freed) {
        report_misuse("0x%llx is device memory that was freed", address);
        return false;
    }
    if (bytes <= size && address - start <= size - bytes) return true;
    report_misuse("%llu bytes at 0x%llx go past the end of an allocation of %llu bytes", (unsigned long long)bytes,
                  address, (unsigned long long)size);
    return false;
}

/* ---- page-locked host memory ------------------------------------------------------------------------------------- */

/* Copies of it are asynchronous, so the bytes that the device reads are those at the time of the copy. */

enum { PAGE = 4096, UNDEFINED = 0xa5, PORTABLE = 1, MAPPED = 2, WRITE_COMBINED = 4 };

typedef struct Pinned {
    struct Pinned *next;
    char *start;
    uint64_t bytes, number;
    const Context *owner;
} Pinned;
static Pinned *pinned;

HostKind host_kind(const void *pointer, uint64_t bytes) {
    for (const Pinned *p = pinned; p; p = p->next) {
        uint64_t at = (uint64_t)((uintptr_t)pointer - (uintptr_t)p->start);
        if (at < p->bytes) return bytes <= p->bytes - at ? HOST_PINNED : HOST_PAST_END;
    }
    return HOST_PAGEABLE;
}

CuResult host_alloc(Context *c, void **out, size_t bytes, unsigned int flags) {
    if (!out || bytes == 0 || flags & ~(unsigned)(PORTABLE | MAPPED | WRITE_COMBINED)) return CU_INVALID_VALUE;
    if (flags & MAPPED) return CU_NOT_SUPPORTED;
    if (bytes > SIZE_MAX - PAGE) return CU_OUT_OF_MEMORY;
    size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    char *start = aligned_alloc(PAGE, rounded);
    if (!start) return CU_OUT_OF_MEMORY;
    memset(start, UNDEFINED, bytes);
    Pinned *p = must_alloc(sizeof *p);
    *p = (Pinned){.next = pinned, .start = start, .bytes = bytes, .number = ++report.host_allocations, .owner = c};
    pinned = p;
    *out = start;
    return CU_SUCCESS;
}

/* Waits for all work, as drivers do, though no document says so. */
CuResult host_free(Context *c, void *pointer) {
    Pinned **link = &pinned;
    while (*link && (*link)->start != pointer) link = &(*link)->next;
    if (!*link || !pointer) {
        report_misuse("cuMemFreeHost of %p, which is no live allocation's start", pointer);
        return CU_INVALID_VALUE;
    }
    if (queue_length(c)) {
        report.waits[CALL_cuMemFreeHost]++;
        queue_run_all(c);
    }
    Pinned *p = *link;
    *link = p->next;
    free(p->start);
    free(p);
    return CU_SUCCESS;
}

void host_leaks(const Context *c) {
    for (const Pinned *p = pinned; p; p = p->next)
        if (p->owner == c)
            report_leak("page-locked host memory: allocation %llu, of %llu bytes", (unsigned long long)p->number,
                        (unsigned long long)p->bytes);
}

void host_free_all(const Context *c) {
    for (Pinned **link = &pinned; *link;) {
        Pinned *p = *link;
        if (p->owner != c) {
            link = &p->next;
            continue;
        }
        *link = p->next;
        free(p->start);
        free(p);
    }
}

/* ---- whose memory an address is in ------------------------------------------------------------------------------- */

static const Context *device_owner(CuPointer pointer) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        bool freed = false;
        const Context *c = driver.primary[i];
        if (c && exec_range(c->memory, pointer, NULL, NULL, &freed) && !freed) return c;
    }
    return NULL;
}

static const Context *pinned_owner(CuPointer pointer) {
    for (const Pinned *p = pinned; p; p = p->next)
        if (pointer - (uintptr_t)p->start < p->bytes) return p->owner;
    return NULL;
}

/* An address that the driver never gave out is an error, as is memory that was freed. */
CuResult pointer_attribute(void *value, int attribute, CuPointer pointer) {
    const Context *on_device = device_owner(pointer), *owner = on_device ? on_device : pinned_owner(pointer);
    if (!value || !owner) return CU_INVALID_VALUE;
    if (attribute == CU_POINTER_MEMORY_TYPE) *(unsigned int *)value = on_device ? CU_MEMORY_DEVICE : CU_MEMORY_HOST;
    else if (attribute == CU_POINTER_DEVICE_ORDINAL) *(int *)value = owner->device;
    else return CU_INVALID_VALUE;
    return CU_SUCCESS;
}

/* ---- copies and fills, in the order of their stream -------------------------------------------------------------- */

/* As the document's page "API synchronization behavior" says: of pageable memory, a copy to the device takes the
 * bytes before it returns and a copy from the device has happened when it returns; of page-locked memory, both happen
 * later. */

/* A device's address where the host's is meant: it cannot be read here (no unified addressing). */
static bool is_host(Context *c, const void *pointer, uint64_t bytes) {
    uint64_t start, size;
    bool freed;
    if (!pointer) return false;
    if (exec_range(c->memory, (uint64_t)(uintptr_t)pointer, &start, &size, &freed)) {
        report_misuse("%p is device memory where host memory is meant", pointer);
        return false;
    }
    if (host_kind(pointer, bytes) != HOST_PAST_END) return true;
    report_misuse("%llu bytes at %p go past the end of page-locked memory", (unsigned long long)bytes, pointer);
    return false;
}

CuResult copy_in(Context *c, CuPointer to, const void *from, size_t bytes, CuStream handle) {
    Stream *s;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS || bytes == 0) return found;
    if (!is_host(c, from, bytes) || !memory_inside(c, to, bytes)) return CU_INVALID_VALUE;
    Work work = {.kind = WORK_COPY_IN, .to = to, .host_from = from, .bytes = bytes};
    if (host_kind(from, bytes) == HOST_PAGEABLE) {
        if (s->capture) return capture_refuse(s);
        work.staged = must_alloc(bytes);
        memcpy(work.staged, from, bytes);
    }
    return stream_submit(s, &work);
}

CuResult copy_out(Context *c, void *to, CuPointer from, size_t bytes, CuStream handle) {
    Stream *s;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS || bytes == 0) return found;
    if (!is_host(c, to, bytes) || !memory_inside(c, from, bytes)) return CU_INVALID_VALUE;
    bool pageable = host_kind(to, bytes) == HOST_PAGEABLE;
    Work work = {.kind = WORK_COPY_OUT, .from = from, .host_to = to, .bytes = bytes, .pinned = !pageable};
    if (!pageable) return stream_submit(s, &work);
    if (s->capture) return capture_refuse(s);
    CuResult unsafe = capture_check_unsafe();
    if (unsafe == CU_SUCCESS) unsafe = stream_submit(s, &work);
    if (unsafe != CU_SUCCESS) return unsafe;
    report.waits[CALL_cuMemcpyDtoHAsync_v2]++;
    queue_run_to(s, UINT64_MAX);
    return CU_SUCCESS;
}

CuResult copy_inside(Context *c, CuPointer to, CuPointer from, size_t bytes, CuStream handle) {
    Stream *s;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS || bytes == 0) return found;
    if (!memory_inside(c, to, bytes) || !memory_inside(c, from, bytes)) return CU_INVALID_VALUE;
    if (to < from + bytes && from < to + bytes) {
        report_misuse("a copy of %zu bytes from 0x%llx to 0x%llx overlaps itself", bytes, from, to);
        return CU_INVALID_VALUE;
    }
    return stream_submit(s, &(Work){.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes});
}

CuResult copy_fill(Context *c, CuPointer to, size_t pitch, uint32_t value, int width, size_t count, size_t lines,
                   CuStream handle) {
    Stream *s;
    const size_t most = SIZE_MAX / (unsigned)width;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS || count == 0 || lines == 0) return found;
    if (to % (unsigned)width || pitch % (unsigned)width || count > most) return CU_INVALID_VALUE;
    const size_t line = count * (unsigned)width;
    if (lines > 1 && (pitch < line || lines - 1 > (SIZE_MAX - line) / pitch)) return CU_INVALID_VALUE;
    if (!memory_inside(c, to, (lines - 1) * pitch + line)) return CU_INVALID_VALUE;
    return stream_submit(s, &(Work){.kind = WORK_FILL,
                                    .to = to,
                                    .value = value,
                                    .width = width,
                                    .count = count,
                                    .pitch = pitch,
                                    .lines = lines});
}
