/* profile.h: --profile: a few steps of a training, recorded kernel by kernel, as a table and as a trace. */
#ifndef AMP_TOOLS_AMPRUN_PROFILE_H
#define AMP_TOOLS_AMPRUN_PROFILE_H

#include "tools/amprun/profile/peaks.h"
#include "tools/amprun/profile/recording.h"

typedef struct Profile {
    const Run *run;
    const char *path;      /* of the trace; NULL: nothing is profiled */
    int64_t first, last;   /* steps of this run, from 1, that are recorded */
    int64_t step;          /* that runs */
    int32_t micro;         /* its micro-batch */
    double plain_seconds;  /* of the quickest step before */
    double began, elapsed; /* of the step that runs */
    Peaks peaks;
    Recording recording;
    bool is_on, is_done, failed;
} Profile;

/* |steps|: of this run.  |watched|: the session keeps values.  Measures the machine.  Reports and returns 1 on
 * failure; in any case profile_close frees everything. */
int profile_open(Profile *p, const Args *a, const Run *run, int64_t steps, bool watched);
void profile_close(Profile *p);

/* Before each call of amp_step, of |samples|; and after it, with its report. */
amp_status profile_before(Profile *p, int64_t samples, amp_error *err);
amp_status profile_after(Profile *p, const amp_step_report *report, amp_error *err);

/* Once the last step is recorded, or |ends|, training: writes the trace and returns the table, which the caller frees;
 * NULL: not yet, or not any more.  A trace that cannot be written is reported; |failed| says it. */
char *profile_finish(Profile *p, bool ends);

#endif
