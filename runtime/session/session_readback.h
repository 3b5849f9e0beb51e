/* session_readback.h: the numbers that the host reads after a run: losses, metrics, flags, counters, the loss scaler.
 *
 * On the host's memory they are read where they are.  In device memory they are together in one block, each on
 * AMP_DEVICE_MEMORY_ALIGN bytes: counters and scaler first, then each program's flags and scalar results.  A run that
 * somebody may ask about is followed by one copy of the block (amp_session_start_readback); what has arrived is taken
 * in when it is asked for (amp_session_settle), oldest first, so that a step need not wait. */
#ifndef AMP_RUNTIME_SESSION_SESSION_READBACK_H
#define AMP_RUNTIME_SESSION_SESSION_READBACK_H

#include <stdbool.h>

#include "runtime/device/device.h"

typedef struct amp_readback_run { /* a run whose scalars were, or will be, copied */
    bool step;                    /* a call of amp_step */
    int64_t micro;                /* which micro-batch of it */
    bool complete;                /* it ended the step */
} amp_readback_run;

typedef struct amp_measured { /* of runs whose scalars have arrived */
    double *sums;     /* by measure of the model: of the step, over its micro-batches; then of the last evaluation */
    int64_t count;    /* micro-batches in them */
    double *losses;   /* named ones of the last step or evaluation */
    float *averages;  /* by input of the model: what the program "metrics" reads */
    float used_scale; /* by the last call of amp_step that is known of */
} amp_measured;

typedef struct amp_session_readback {
    amp_measured measured;
    /* Zeros on the host's memory: */
    char *block; /* on the device */
    char *host;  /* the copy that was taken in last; then the header */
    size_t bytes, state_bytes;
    char *header; /* counters that the host writes, "micro" and "seed": they go with the inputs of a run */
    size_t header_bytes;
    amp_readback_run pending[AMP_READBACKS]; /* oldest first */
    int pending_count;
} amp_session_readback;

amp_status amp_session_make_readback(amp_session *session, amp_error *err);
void amp_session_free_readback(amp_session *session);

/* After a run; on the host's memory it is taken in at once. */
amp_status amp_session_start_readback(const amp_session *session, const amp_readback_run *run, amp_error *err);
/* Takes in what has arrived; |wait|: everything. */
amp_status amp_session_settle(const amp_session *session, bool wait, amp_error *err);
/* Counters or the scaler were changed on the host (settle before): the device gets them. */
amp_status amp_session_write_scalars(const amp_session *session, amp_error *err);

#endif
