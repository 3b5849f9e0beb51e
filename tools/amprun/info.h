/* memory_kinds.h: the memory of a session by kind, as tables print it. */
#ifndef AMP_TOOLS_AMPRUN_MEMORY_KINDS_H
#define AMP_TOOLS_AMPRUN_MEMORY_KINDS_H

#include "amp/amp.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MemoryKind {
    const char *name;
    uint64_t bytes;
} MemoryKind;

enum { MEMORY_KINDS = 7 }; /* the last is the total */

void memory_kinds(const amp_memory_info *memory, MemoryKind out[MEMORY_KINDS]);
/* An object "memory". */
void memory_put(amp_json_writer *w, const amp_memory_info *memory);

#ifdef __cplusplus
}
#endif
#endif
