/* kernel_kinds.c: see kernel_kinds.h. */
#include "tools/amprun/kernel_kinds.h"

#include <stddef.h>

const char *kernel_kind_name(uint32_t kind) {
    static const char *const names[] = {
#define KERNEL(id, word, ...) #word,
#include "base/kernels.def"
#undef KERNEL
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}
