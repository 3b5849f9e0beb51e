/* state_memory.c: bytes of a session's states, which are in the host's memory or in its device's. */
#include <string.h>

#include "runtime/session/session.h"

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

amp_status amp_session_copy_bytes(const amp_session *s, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_session_has_device_memory(s)) return calls_of(s)->copy(s->device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}

amp_status amp_session_clear_bytes(const amp_session *s, void *at, size_t bytes, amp_error *err) {
    if (amp_session_has_device_memory(s)) return calls_of(s)->clear(s->device, at, bytes, err);
    memset(at, 0, bytes);
    return AMP_OK;
}

amp_status amp_session_read_bytes(const amp_session *s, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_session_has_device_memory(s)) return calls_of(s)->read(s->device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}

amp_status amp_session_write_bytes(const amp_session *s, void *to, const void *from, size_t bytes, amp_error *err) {
    if (amp_session_has_device_memory(s)) return calls_of(s)->write(s->device, to, from, bytes, err);
    if (bytes) memcpy(to, from, bytes);
    return AMP_OK;
}
