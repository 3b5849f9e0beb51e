/* session.h: what a session holds.
 *
 * Where states are, by state of the session's model:
 *
 *                  on the host's memory              with device memory
 *   states.held    the session's own states;         the same in |device_arena|; NULL for scalars too, which are in
 *                  NULL for those of the params      the readback's block or in the header of the inputs
 *   states.bound   held, or those of the params      all of them on the device: what programs read and write
 *   states.host    held                              scalars alone: in the readback's copies on the host
 *
 * Scalars on their way, with device memory (session_readback.h):
 *
 *   host                                   device
 *   readback->host   <- start_readback -   readback->block:  counters, scaler | flags | scalar results
 *   readback->header -- with inputs ---->  header of inputs: "micro", "seed"
 */
#ifndef AMP_RUNTIME_SESSION_SESSION_H
#define AMP_RUNTIME_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "runtime/device/device.h"
#include "runtime/memory/bound_program.h"
#include "runtime/memory/device_memory.h"
#include "runtime/params/params.h"
#include "runtime/session/session_readback.h"

typedef struct amp_value { /* of a training step, kept to be read */
    const char *name;
    int32_t buffer, result; /* of |in|; |result| -1 where the value is none */
    const amp_bound_program *in;
} amp_value;

/* The programs of a session, bound or not. */
enum {
    AMP_RUN_TRAIN_STEP, /* or micro_step: what runs the model */
    AMP_RUN_APPLY_STEP, /* what ends a step of several micro-batches */
    AMP_RUN_EVAL,       /* or its FP32 form */
    AMP_RUN_INFER,      /* or its FP32 form */
    AMP_RUN_METRICS,
    AMP_RUN_REFRESH,
    AMP_SESSION_PROGRAMS
};

typedef struct amp_session_states { /* each by state of the model */
    void **held, **bound, **host;
} amp_session_states;

struct amp_session {
    atomic_int references;
    bool training;
    int64_t capacity;
    amp_model *model; /* as the device runs it: amp_model_for */
    amp_params *params;
    amp_params_user params_user; /* of |params| */
    amp_device *device;
    amp_counted_allocator memory; /* everything below comes from it */
    amp_session_states states;
    amp_bound_program programs[AMP_SESSION_PROGRAMS];
    struct {
        char *memory;
        size_t bytes;
    } arena; /* that the programs use in turn */
    amp_device_arena device_arena;
    amp_session_readback *readback; /* apart, because what arrives is no part of what callers see as const */
    struct {
        int64_t last_n; /* of the last step; 0: no step yet */
        int64_t micro;  /* micro-batches that were run of a step that is not complete */
    } step;
    struct {
        amp_value *list; /* by name; NULL: the session keeps none */
        int32_t count;
    } values;
};

/* Its device has device memory: session_device_memory.h. */
bool amp_session_has_device_memory(const amp_session *session);
/* The session's own state, not one of the params. */
bool amp_session_holds(const amp_session *session, int32_t state);

/* Pointers to scalar states on the host (after amp_session_settle), NULL where the model or the session has none. */
float *amp_session_scale(const amp_session *session);
int32_t *amp_session_growth_tracker(const amp_session *session);
int32_t *amp_session_floor_hits(const amp_session *session);
int64_t *amp_session_step(const amp_session *session);
int64_t *amp_session_iteration(const amp_session *session);
int64_t *amp_session_seed(const amp_session *session);
int64_t *amp_session_micro(const amp_session *session);

/* AMP_WRONG_STATE where the session does not train; |call| is the function's name. */
amp_status amp_session_check_training(const amp_session *session, const char *call, amp_error *err);

/* session_run.c: runs a bound program. */
amp_status amp_session_run_bound(const amp_session *session, const amp_bound_program *bound, int64_t n, amp_error *err);
/* Checks n and the inputs that the program reads, refreshes derived states where params were set, runs.
 */
amp_status amp_session_run(amp_session *session, amp_bound_program *bound, const void *const *inputs, int64_t n,
                           amp_error *err);

/* The one that ends a step: it has the gradients, "ok" and the norm. */
const amp_bound_program *amp_session_last_program(const amp_session *session);

/* session_results.c */
amp_status amp_session_list_values(amp_session *session, amp_error *err);
void amp_session_free_values(amp_session *session);

#endif
