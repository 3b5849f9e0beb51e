/* memory.c: device memory. */
#include <string.h>

#include "fakecuda/driver/driver.h"

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
