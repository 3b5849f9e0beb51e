/* retake.h: the steps of a log, taken again by the model as it is: whether they give what they gave, and which op made
 * which recorded tensor. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_RETAKE_H
#define AMP_TOOLS_AMPRUN_SUGGEST_RETAKE_H

#include "tools/amprun/suggest/evidence.h"
#include "tools/amprun/suggest/recorded.h"

typedef struct Retake {
    const Recorded *recorded;
    Evidence *evidence; /* which the statistics are added to */
    amp_session *session;
    amp_trace *trace;   /* of the first step, which has the names that the statistics have */
    int64_t count;      /* of steps taken */
    int64_t differs_at; /* the first iteration that gave something else; 0: none */
    double loss, scale; /* what that gave */
} Retake;

/* Before and after each step; they report and return 1 on failure.  retake_end: however it ended. */
int retake_before(Retake *r, const Args *a, const Run *run);
int retake_after(Retake *r, const amp_step_report *report);
void retake_end(Retake *r);

#endif
