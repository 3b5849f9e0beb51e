/* host_memory.c: page-locked host memory.  Copies of it are asynchronous, so the bytes that the device reads are
 * those at the time of the copy. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

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
