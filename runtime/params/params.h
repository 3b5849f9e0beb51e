/* params.h: f32 masters, saved buffers, and the copies derived from them. */
#ifndef AMP_RUNTIME_PARAMS_PARAMS_H
#define AMP_RUNTIME_PARAMS_PARAMS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "runtime/model/state.h"
#include "runtime/params/params_residency.h"

struct amp_params {
    atomic_int references;
    amp_model *model;
    amp_counted_allocator memory;
    void **states;                   /* on the host, by state of the model: PARAM, BUFFER and DERIVED; else NULL */
    amp_params_residency *residency; /* apart, because where values are is no part of what callers see as const */
    /* Derived states are recomputed before the next run.  The lock is for sessions that share the params and start at
     * the same time. */
    atomic_bool stale;
    pthread_mutex_t refreshing;
};

#endif
