/* recording.h: when each kernel of some steps ran. */
#ifndef AMP_TOOLS_AMPRUN_RECORDING_H
#define AMP_TOOLS_AMPRUN_RECORDING_H

#include "tools/amprun/amprun.h"
#include "tools/amprun/profile/kernel_work.h"

/* Times are those of amp_nanoseconds. */
typedef struct RecordedKernel {
    const amp_program *program;
    int32_t index, call; /* of the call that ran it */
    int64_t begin, end;
    KernelWork work;
} RecordedKernel;

typedef struct RecordedCall { /* of amp_step: a step, or one of its micro-batches */
    int64_t iteration;        /* of its step, counted from 1 */
    int32_t micro;            /* from 0 */
    bool skipped;             /* its step was: its updates did not run */
    int64_t samples, begin, end;
} RecordedCall;

typedef struct Recording {
    const amp_model *model; /* as the device runs it (amp_model_for) */
    bool watched;           /* the session keeps values */
    RecordedKernel *kernel;
    RecordedCall *call;
    int32_t kernels, calls;
    int32_t kernel_room, call_room;
    int32_t steps, step_kernels, step_calls; /* that are complete, with all they have */
    int64_t last_end;                        /* of the kernel before, or of the observer after it */
    bool failed;                             /* memory ran out */
} Recording;

/* The observer of a session whose kernels are recorded; its |user| is the recording. */
amp_status recording_see_kernel(void *recording, const amp_observed_kernel *kernel, amp_error *err);

/* Around a call of amp_step. */
void recording_begin_call(Recording *r, int32_t micro, int64_t samples);
void recording_end_call(Recording *r, const amp_step_report *report);

/* Drops what there is of a step that did not end. */
void recording_keep_steps(Recording *r);

void recording_free(Recording *r);

#endif
