/* session.h: what a session holds. */
#ifndef AMP_RUNTIME_SESSION_H
#define AMP_RUNTIME_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/bound_program.h"
#include "runtime/counted_allocator.h"
#include "runtime/device.h"
#include "runtime/params.h"

typedef struct amp_value { /* of a training step, kept to be read */
    const char *name;
    int32_t buffer, result; /* of train_step; |result| -1 where the value is none */
} amp_value;

struct amp_session {
    atomic_int references;
    amp_model *model;
    amp_params *params;
    amp_counted_allocator memory; /* everything below comes from it */
    int64_t capacity;
    bool training;
    amp_device *device;
    void **own_states; /* by state of the model: moments, counters, scaler; else NULL */
    void **states;     /* by state of the model: own, or the params' */
    amp_bound_program train_step, eval, infer, refresh;
    char *arena; /* that the programs use in turn */
    size_t arena_bytes;
    int64_t last_n;    /* of the last step; 0: no step yet */
    amp_value *values; /* by name; NULL: the session keeps none */
    int32_t value_count;
};

/* Pointers to scalar states, NULL where the model or the session has none. */
float *amp_session_scale(const amp_session *session);
int32_t *amp_session_growth_tracker(const amp_session *session);
int32_t *amp_session_floor_hits(const amp_session *session);
int64_t *amp_session_counter(const amp_session *session, const char *name);

/* AMP_WRONG_STATE where the session does not train; |call| is the function's name. */
amp_status amp_session_check_training(const amp_session *session, const char *call, amp_error *err);

/* session_run.c: checks n and the inputs that the program reads, refreshes derived states where params were set, runs.
 */
amp_status amp_session_run(amp_session *session, amp_bound_program *bound, const void *const *inputs, int64_t n,
                           amp_error *err);

/* values.c */
amp_status amp_session_list_values(amp_session *session, amp_error *err);
void amp_session_free_values(amp_session *session);

#endif
