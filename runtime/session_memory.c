/* session_memory.c: what a session and its params take. */
#include "runtime/session_own.h"
#include "runtime/state.h"

static uint64_t own_state_bytes(const amp_session *s) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (amp_session_holds(s, i)) bytes += amp_state_bytes(&s->model->states[i]);
    return bytes;
}

static uint64_t bytes_of_role(const amp_session *s, uint32_t role) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (s->model->states[i].role == role) bytes += amp_state_bytes(&s->model->states[i]);
    return bytes;
}

/* Of the device, what allocators do not see. */
static uint64_t device_bytes(const amp_session *s) {
    if (!amp_session_has_own_memory(s)) return 0;
    return s->blocks.bytes + s->params->home.bytes + s->device->type->own->bytes(s->device);
}

void amp_session_memory(const amp_session *s, amp_memory_info *out) {
    *out = (amp_memory_info){0};
    if (!s) return;
    *out = (amp_memory_info){
        .params = bytes_of_role(s, AMP_STATE_PARAM) + bytes_of_role(s, AMP_STATE_BUFFER),
        .derived = bytes_of_role(s, AMP_STATE_DERIVED),
        .moments = own_state_bytes(s),
        .activations = s->arena_bytes,
        .total = s->memory.bytes + s->params->memory.bytes + sizeof *s + sizeof *s->params + device_bytes(s),
    };
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_bound_program *b = amp_session_program((amp_session *)(uintptr_t)s, i);
        out->activations += amp_bound_program_temporaries(b);
        out->outputs += b->kept_bytes;
    }
    /* Threads, scratch of products, and the tables that the session itself needs; with a device's own memory, what the
     * host keeps besides. */
    out->scratch = out->total - out->params - out->derived - out->moments - out->activations - out->outputs;
}
