/* batches.h: copies of the batches of the last steps. */
#ifndef AMP_TOOLS_AMPRUN_TRACE_BATCHES_H
#define AMP_TOOLS_AMPRUN_TRACE_BATCHES_H

#include "amp/amp.h"

typedef struct MicroBatch {
    void **arrays; /* by input of the model */
    int64_t n;
} MicroBatch;

typedef struct StepBatch { /* of one step */
    int count;
    MicroBatch *micro;
} StepBatch;

typedef struct Batches {
    const amp_model *model;
    int inputs, micro_batches; /* of a step */
    int count, room;
    StepBatch *step; /* oldest first */
    size_t bytes;    /* of all copies */
} Batches;

Batches batches_new(const amp_model *model);
/* The next micro-batch; the first of a step begins one. */
amp_status batches_add(Batches *b, const void *const *inputs, int64_t n, amp_error *err);
/* None is kept any more. */
void batches_clear(Batches *b);
void batches_free(Batches *b);

/* Runs the step on |session|.  As amp_step, but a scale at its floor is no error here. */
amp_status batches_run(const StepBatch *batch, amp_session *session, amp_step_report *report, amp_error *err);

#endif
