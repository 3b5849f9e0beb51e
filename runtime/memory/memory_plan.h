/* memory_plan.h: where each buffer of a program is, for one capacity: each has room for its largest size.
 *
 * Temporaries that are never live at the same time share memory, and so do those that take
 * another's place (amp_model_buffer.place); where buffers are separate, only those that are renamed do.
 */
#ifndef AMP_RUNTIME_MEMORY_MEMORY_PLAN_H
#define AMP_RUNTIME_MEMORY_MEMORY_PLAN_H

#include <stdbool.h>

#include "runtime/model/model.h"

typedef struct amp_memory_plan {
    int32_t count;
    size_t *bytes;  /* by buffer: its size at the capacity */
    size_t *offset; /* by buffer: in the arena (TEMP), among the flags (FLAG), among the outputs (OUTPUT), among the
                       watched (WATCH) */
    size_t arena, flags, outputs, watched; /* bytes in all */
} amp_memory_plan;

typedef struct amp_memory_plan_options {
    amp_capacity capacity;
    bool separate;   /* temporaries share nothing */
    size_t align;    /* a power of two, of every buffer; at least 128 */
    bool sizes_only; /* |bytes| alone is filled */
} amp_memory_plan_options;

amp_status amp_memory_plan_make(amp_memory_plan *plan, const amp_program *program,
                                const amp_memory_plan_options *options, const amp_allocator *allocator, amp_error *err);
void amp_memory_plan_free(amp_memory_plan *plan, const amp_allocator *allocator);

#endif
