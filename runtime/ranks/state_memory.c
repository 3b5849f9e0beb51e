/* state_memory.c: bytes of a session's states, which are in the host's memory or in its device's. */
#include <string.h>

#include "runtime/ranks/rank_exchange.h"

static const amp_device_memory_calls *calls_of(const amp_ranks *r) { return r->session.device->type->device_memory; }

amp_status amp_ranks_copy_bytes(const amp_ranks *r, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_ranks_on_device(r)) return calls_of(r)->copy(r->session.device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}

amp_status amp_ranks_clear_bytes(const amp_ranks *r, void *at, size_t bytes, amp_error *err) {
    if (amp_ranks_on_device(r)) return calls_of(r)->clear(r->session.device, at, bytes, err);
    memset(at, 0, bytes);
    return AMP_OK;
}

amp_status amp_ranks_read_bytes(const amp_ranks *r, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_ranks_on_device(r)) return calls_of(r)->read(r->session.device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}

amp_status amp_ranks_write_bytes(const amp_ranks *r, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_ranks_on_device(r)) return calls_of(r)->write(r->session.device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}
