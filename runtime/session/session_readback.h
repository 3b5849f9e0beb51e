/* session_readback.h: the numbers that the host reads after a run: losses, metrics, flags, counters, the loss scaler.
 *
 * On the host's memory they are read where they lie.  In device memory they lie together in one block, each on
 * AMP_DEVICE_MEMORY_ALIGN bytes: counters and scaler first, then each program's flags and scalar results.  A run that
 * somebody may ask about is followed by one copy of the block (amp_session_start_readback); what has arrived is taken in when
 * it is asked for (amp_session_settle), oldest first, so that a step need not wait. */
#ifndef AMP_RUNTIME_SESSION_SESSION_READBACK_H
#define AMP_RUNTIME_SESSION_SESSION_READBACK_H

#include <stdbool.h>

#include "runtime/device/device.h"

struct amp_session;

typedef struct amp_readback_run { /* a run whose scalars were, or will be, copied */
    bool step;                    /* a call of amp_step */
    int64_t micro;                /* which micro-batch of it */
    bool complete;                /* it ended the step */
} amp_readback_run;

typedef struct amp_scalars { /* zeros on the host's memory */
    char *block;             /* on the device */
    char *host;              /* the copy that was taken in last; then the header */
    size_t bytes, state_bytes;
    char *header; /* counters that the host writes, "micro" and "seed": they go with the inputs of a run */
    size_t header_bytes;
    amp_readback_run pending[AMP_READBACKS]; /* oldest first */
    int pending_count;
} amp_scalars;

/* After a run; on the host's memory it is taken in at once. */
amp_status amp_session_start_readback(struct amp_session *session, const amp_readback_run *collection, amp_error *err);
/* Takes in what has arrived; |wait|: everything. */
amp_status amp_session_settle(struct amp_session *session, bool wait, amp_error *err);
/* The same for what callers see as const: that numbers have arrived is not part of what they see. */
amp_status amp_session_await(const struct amp_session *session, amp_error *err);
/* Counters or the scaler were changed on the host (settle before): the device gets them. */
amp_status amp_session_write_scalars(struct amp_session *session, amp_error *err);

#endif
