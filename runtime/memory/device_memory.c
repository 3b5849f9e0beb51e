/* device_memory.c: see device_memory.h. */
#include "runtime/memory/device_memory.h"

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
