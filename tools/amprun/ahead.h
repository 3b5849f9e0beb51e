/* ahead.h: steps that a training has started and whose reports it has not asked for yet, so that the device computes
 * while their log lines are written. */
#ifndef AMP_TOOLS_AHEAD_H
#define AMP_TOOLS_AHEAD_H

#include "tools/amprun/amprun.h"

/* More would have more to catch up with where a signal ends the training; two uploads hold the host back at about as
 * many. */
enum { AHEAD_MOST = 4 };

typedef struct AheadCall { /* of amp_step */
    int64_t index, n;      /* the batch, counted from the training's start; its samples */
} AheadCall;

typedef struct Ahead {
    AheadCall call[AHEAD_MOST + 1]; /* without a report, oldest first */
    int count;
    int64_t accumulate;
    bool waits;            /* for each step, whatever the scale is */
    double floor, backoff; /* of a dynamic loss scale; backoff 0: there is none */
    double scale;          /* of the last step that was reported, or at the start */
} Ahead;

/* |waits|: something needs the numbers of each step before the next.  Reports and returns 1 on failure. */
int ahead_start(Ahead *a, const Run *run, bool waits);
/* After amp_step, without a report, of |call|. */
void ahead_push(Ahead *a, AheadCall call);
/* Once its report is there. */
void ahead_pop(Ahead *a, const amp_step_report *report);
/* Ends a step, as its last micro-batch. */
bool ahead_ends_step(const Ahead *a, int64_t index);
/* How many calls may stay without a report. */
int ahead_most(const Ahead *a);

#endif
