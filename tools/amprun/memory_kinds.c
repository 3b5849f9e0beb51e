/* memory_kinds.c: see memory_kinds.h. */
#include "tools/amprun/memory_kinds.h"

#include <string.h>

void memory_kinds(const amp_memory_info *m, MemoryKind out[MEMORY_KINDS]) {
    const MemoryKind kinds[MEMORY_KINDS] = {
        {"weights", m->params},  {"copies", m->derived},  {"moments", m->moments}, {"activations", m->activations},
        {"outputs", m->outputs}, {"scratch", m->scratch}, {"total", m->total},
    };
    memcpy(out, kinds, sizeof kinds);
}

void memory_put(amp_json_writer *w, const amp_memory_info *memory) {
    MemoryKind kinds[MEMORY_KINDS];
    memory_kinds(memory, kinds);
    amp_json_begin_object(w, "memory");
    for (int i = 0; i < MEMORY_KINDS; i++) amp_json_put_int(w, kinds[i].name, (int64_t)kinds[i].bytes);
    amp_json_put_int(w, "device", (int64_t)memory->device);
    amp_json_end_object(w);
}
