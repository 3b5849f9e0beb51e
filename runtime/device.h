/* device.h: what runs programs.  device/null and device/cpu implement it; tests/conformance runs one suite over every
 * device. */
#ifndef AMP_RUNTIME_DEVICE_H
#define AMP_RUNTIME_DEVICE_H

#include <stdbool.h>

#include "runtime/model.h"

typedef struct amp_device amp_device;

typedef struct amp_device_options {
    int32_t threads; /* 0: one per processor */
    const char *isa; /* "portable", "v3", "v4"; NULL: the best */
} amp_device_options;

/* One execution of a program. */
typedef struct amp_run {
    const amp_program *program;
    void *const *buffers; /* by buffer of the program; WATCH may be NULL */
    int64_t n;
} amp_run;

typedef struct amp_device_type {
    const char *name;
    amp_status (*create)(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                         amp_error *err);
    void (*destroy)(amp_device *device); /* NULL is a no-op */
    /* Memory for running |program| with up to |n| samples: what was reserved is not allocated by a run. */
    amp_status (*reserve)(amp_device *device, const amp_program *program, int64_t n, amp_error *err);
    amp_status (*run)(amp_device *device, const amp_run *run, amp_error *err);
    size_t (*scratch_bytes)(const amp_device *device); /* memory of its own */
    bool computes;                                     /* false: results are zeros and states stay as they are */
} amp_device_type;

struct amp_device { /* the head of every device */
    const amp_device_type *type;
    amp_allocator allocator;
};

extern const amp_device_type amp_device_cpu, amp_device_null;
/* By name; NULL when there is none. */
const amp_device_type *amp_device_type_named(const char *name);

#endif
