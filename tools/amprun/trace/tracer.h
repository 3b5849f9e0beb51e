/* tracer.h: --trace-nonfinite: keeps what is needed to take the last steps again, and says where a number that is not
 * finite came from. */
#ifndef AMP_TOOLS_AMPRUN_TRACE_TRACER_H
#define AMP_TOOLS_AMPRUN_TRACE_TRACER_H

#include "tools/amprun/trace/verdict.h"
#include "tools/temporary.h"

typedef struct Tracer {
    const Args *args;
    const Run *run;
    TwinSource source;
    char *bytes;                   /* of the model.so, where it was read */
    char folder[TEMPORARY_PATH];   /* for checkpoints; empty: none */
    Batches batches;               /* since the snapshot, which is the state before the first of them */
    Twin same;                     /* of the model as it is; session NULL: not made yet */
    char line[VERDICT_LINES][256]; /* paths of a verdict */
    int expected, alarms;          /* verdicts so far */
    amp_trace_fault last;          /* of the last one, and its op */
    char last_path[256];
    int streak;  /* skipped steps in a row */
    bool is_off; /* enough was said, or something failed that was reported */
} Tracer;

/* |source|: of the model of |run|; bytes NULL: the file that the arguments name is read.  Reports and returns 1 on
 * failure; in either case tracer_close frees everything. */
int tracer_open(Tracer *t, const TwinSource *source, const Run *run);
void tracer_close(Tracer *t);

/* Before amp_step of the next micro-batch. */
int tracer_before(Tracer *t, const void *const *inputs, int64_t n);
/* Steps were taken that it was not told of: it begins anew. */
void tracer_forget(Tracer *t);
/* After a whole step: true, and |out|, where there is something to tell.  A verdict that is_expected is for the log.
 * The strings of |out| live until the next call. */
bool tracer_after(Tracer *t, const amp_step_report *report, Verdict *out);

#endif
