/* bound_program.h: a program with memory for every buffer, for one capacity: what a device can run. */
#ifndef AMP_RUNTIME_MEMORY_BOUND_PROGRAM_H
#define AMP_RUNTIME_MEMORY_BOUND_PROGRAM_H

#include <stdbool.h>

#include "runtime/memory/memory_plan.h"
#include "runtime/model/model.h"

typedef enum amp_sharing {
    AMP_SHARE_ARENA,    /* temporaries are in an arena that several programs use in turn */
    AMP_KEEP_RESULTS,   /* in one of their own, where those that are results are readable until the next run */
    AMP_OWN_ARENA,      /* temporaries share nothing: all are readable after a run */
    AMP_OWN_ALLOCATIONS /* the same, each in a separate allocation: sanitizers see overruns */
} amp_sharing;

/* Temporaries that are not live at the same time. */
static inline bool amp_shares_memory(amp_sharing sharing) {
    return sharing == AMP_SHARE_ARENA || sharing == AMP_KEEP_RESULTS;
}

typedef struct amp_bound_options {
    amp_capacity capacity;
    amp_sharing sharing;
    bool watch;         /* WATCH buffers get memory */
    bool device_memory; /* only planned: session_device_memory.c gives every buffer its address */
    bool sizes_only;    /* only planned, and never run */
} amp_bound_options;

typedef struct amp_bound_program {
    const amp_program *program; /* NULL: not bound */
    amp_memory_plan plan;
    amp_bound_options options;
    void **buffers; /* by buffer: INPUT is set with each call; WATCH NULL if nothing watches */
    char *kept;     /* flags, outputs and watched values: what is read after a run */
    size_t kept_bytes;
    char *arena; /* temporaries: AMP_KEEP_RESULTS, AMP_OWN_ARENA */
    /* In device memory: */
    void *flags; /* all of them */
    size_t flag_bytes;
    const char *scalars;          /* the host's copy of what it reads after a run; NULL: in |buffers| */
    size_t *scalar_at;            /* by buffer: its place there, or AMP_NO_SCALAR */
    amp_model_look_counts *looks; /* one for each LOOK, in the order of buffers; then what they begin as */
    int32_t look_count;
} amp_bound_program;

#define AMP_NO_SCALAR SIZE_MAX

/* |states|: memory by state of the model. */
amp_status amp_bound_program_make(amp_bound_program *bound, const amp_program *program,
                                  const amp_bound_options *options, void *const *states, const amp_allocator *allocator,
                                  amp_error *err);
void amp_bound_program_free(amp_bound_program *bound, const amp_allocator *allocator); /* an unbound one is a no-op */

/* AMP_SHARE_ARENA: bytes that the shared arena must have, and where it is.  Other sharing: 0 bytes, and nothing to do.
 */
size_t amp_bound_program_arena_bytes(const amp_bound_program *bound);
void amp_bound_program_use_arena(amp_bound_program *bound, char *arena);

/* Bytes of temporaries that this program holds itself. */
size_t amp_bound_program_temporaries(const amp_bound_program *bound);

/* Memory for temporaries: aligned, zeroed, on huge pages where large. */
char *amp_arena_alloc(const amp_allocator *allocator, size_t bytes);
void amp_arena_free(const amp_allocator *allocator, char *arena, size_t bytes);

/* The first element in memory of the value that it holds. */
int64_t amp_buffer_begin(const amp_model_buffer *buffer);
/* Of the value that it holds, without padding. */
int64_t amp_buffer_elements(const amp_model_buffer *buffer, amp_sizes sizes);
/* The values of a buffer that is at |memory| with |n|, row-major, as amp_readable_dtype. */
void amp_buffer_read(const amp_model_buffer *buffer, const void *memory, amp_sizes sizes, void *to);
/* The same of a bound buffer after a run; of the host's memory only. */
void amp_bound_program_read(const amp_bound_program *bound, int32_t buffer, amp_sizes sizes, void *to);
/* A scalar result. */
double amp_bound_program_scalar(const amp_bound_program *bound, int32_t result);
/* The first |count| measures of |model| that a run left; one that the program does not compute is NaN. */
void amp_bound_program_measures(const amp_bound_program *bound, const amp_model *model, int32_t count, double *to);

#endif
