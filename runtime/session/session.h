/* session.h: what a session holds. */
#ifndef AMP_RUNTIME_SESSION_SESSION_H
#define AMP_RUNTIME_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/memory/device_arena.h"
#include "runtime/memory/bound_program.h"
#include "runtime/memory/counted_allocator.h"
#include "runtime/device/device.h"
#include "runtime/params/params.h"
#include "runtime/session/session_readback.h"

typedef struct amp_value { /* of a training step, kept to be read */
    const char *name;
    int32_t buffer, result; /* of |in|; |result| -1 where the value is none */
    const amp_bound_program *in;
} amp_value;

struct amp_session {
    atomic_int references;
    amp_model *model; /* as the device runs it: amp_model_for */
    amp_params *params;
    amp_params_user params_user;  /* of |params| */
    amp_counted_allocator memory; /* everything below comes from it */
    int64_t capacity;
    bool training;
    amp_device *device;
    void **own_states;  /* by state of the model: moments, counters, scaler; else NULL */
    void **states;      /* by state of the model: own, or the params' */
    void **host_states; /* where the host reads and writes counters and scaler; on its own memory: own_states */
    amp_device_arena device_arena; /* what is in device memory */
    amp_scalars scalars;
    amp_bound_program train_step;  /* or micro_step: what runs the model */
    amp_bound_program apply_step;  /* what ends a step of several micro-batches */
    amp_bound_program eval, infer; /* or their FP32 forms */
    amp_bound_program metrics, refresh;
    char *arena; /* that the programs use in turn */
    size_t arena_bytes;
    int64_t last_n;    /* of the last step; 0: no step yet */
    int64_t micro;     /* micro-batches that were run of a step that is not complete */
    double *measures;  /* of the step, summed over its micro-batches: metric.h */
    int64_t measured;  /* micro-batches in them */
    float used_scale;  /* by the last call of amp_step that is known of */
    double *losses;    /* named ones of the last step or evaluation */
    float *averages;   /* by input of the model: what the program "metrics" reads */
    amp_value *values; /* by name; NULL: the session keeps none */
    int32_t value_count;
};

/* Its device has memory of its own (device memory): session_device_memory.h. */
bool amp_session_has_device_memory(const amp_session *session);
/* A state of its own, not the params'. */
bool amp_session_holds(const amp_session *session, int32_t state);

/* Pointers to scalar states on the host (after amp_session_settle), NULL where the model or the session has none. */
float *amp_session_scale(const amp_session *session);
int32_t *amp_session_growth_tracker(const amp_session *session);
int32_t *amp_session_floor_hits(const amp_session *session);
int64_t *amp_session_counter(const amp_session *session, const char *name);

/* AMP_WRONG_STATE where the session does not train; |call| is the function's name. */
amp_status amp_session_check_training(const amp_session *session, const char *call, amp_error *err);

/* session_run.c: runs a bound program. */
amp_status amp_session_run_bound(amp_session *session, amp_bound_program *bound, int64_t n, amp_error *err);
/* Checks n and the inputs that the program reads, refreshes derived states where params were set, runs.
 */
amp_status amp_session_run(amp_session *session, amp_bound_program *bound, const void *const *inputs, int64_t n,
                           amp_error *err);

/* Every program of a session, bound or not. */
enum { AMP_SESSION_PROGRAMS = 6 };
amp_bound_program *amp_session_program(amp_session *session, int index);
/* The one that ends a step: it has the gradients, "ok" and the norm. */
const amp_bound_program *amp_session_last_program(const amp_session *session);

/* session_values.c */
amp_status amp_session_list_values(amp_session *session, amp_error *err);
void amp_session_free_values(amp_session *session);

#endif
