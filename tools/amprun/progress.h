/* progress.h: one line that moves, where the output is a terminal; one plain line per epoch elsewhere. */
#ifndef AMP_TOOLS_PROGRESS_H
#define AMP_TOOLS_PROGRESS_H

#include "tools/amprun/amprun.h"

typedef struct Progress {
    bool moving, quiet;
    double start, shown;    /* seconds */
    int64_t steps, samples; /* since start */
    int64_t skipped;        /* since start */
} Progress;

typedef struct ProgressNow {
    int64_t epoch, epochs, batch, batches, steps_left;
    double loss;
    const char *metric; /* "acc"; NULL: none */
    double metric_value;
    float scale; /* 0: trains unscaled */
} ProgressNow;

double seconds_now(void);
void progress_start(Progress *p, bool quiet);
/* After each step; draws at most ten times a second. */
void progress_step(Progress *p, const ProgressNow *now, int64_t n, bool skipped);
/* Removes the moving line, so that a plain one can be printed. */
void progress_clear(Progress *p);
double progress_rate(const Progress *p); /* samples per second */

#endif
