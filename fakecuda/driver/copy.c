/* copy.c: copies and fills, in the order of their stream.
 *
 * As the document's page "API synchronization behavior" says: of pageable memory, a copy to the device takes the
 * bytes before it returns and a copy from the device has happened when it returns; of page-locked memory, both happen
 * later. */
#include <string.h>

#include "fakecuda/driver/driver.h"

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

CuResult copy_fill(Context *c, CuPointer to, uint32_t value, int width, size_t count, CuStream handle) {
    Stream *s;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS || count == 0) return found;
    if (to % (unsigned)width || count > SIZE_MAX / (unsigned)width || !memory_inside(c, to, count * (unsigned)width))
        return CU_INVALID_VALUE;
    return stream_submit(s, &(Work){.kind = WORK_FILL, .to = to, .value = value, .width = width, .count = count});
}
