/* run_log.h: what a log of amprun train has said so far (--log). */
#ifndef AMP_TOOLS_AMPRUN_WATCH_RUN_LOG_H
#define AMP_TOOLS_AMPRUN_WATCH_RUN_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/amprun/log/log.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LoggedTensor { /* of the last line of --stats */
    char name[96], dtype[8];
    int64_t count, flushed, overflow; /* in f16 */
    int64_t broken;                   /* infinities and NaNs that it holds */
    double largest;
} LoggedTensor;

enum { TENSORS_SHOWN = 8, HEALTH_TEXT = 32 };

typedef struct RunLog {
    LogLines lines;
    char model[96], policy[64];
    double *loss, *scale; /* by step */
    int count;
    int64_t loss_room, scale_room;
    int64_t iteration, step, skipped;
    char health[HEALTH_TEXT];           /* of the loss scale */
    double test_loss;                   /* of the last evaluation; NaN: none yet */
    int64_t epoch, stats_at, traced_at; /* 0: none yet */
    char traced[256];                   /* of the last line of --trace-nonfinite that is no expected one */
    LoggedTensor tensor[TENSORS_SHOWN]; /* those of which f16 would lose the largest part */
    int tensor_count;
} RunLog;

/* Report and return 1 on failure; in any case run_log_close frees everything. */
int run_log_open(RunLog *l, const char *path);
/* Takes in the lines that are whole. */
int run_log_read(RunLog *l);
void run_log_close(RunLog *l);

/* ---- plot.c: a curve in characters: in braille two by four points each, else one by two in ASCII ----------------- */

typedef struct PlotSize {
    int columns, rows; /* of characters, without the axis */
    bool braille;
} PlotSize;

/* |count| values from left to right, as many as points or more: the mean of those that fall on one point.  Values that
 * are not finite leave gaps.  Rows of text, each with a newline; the largest and smallest value stand beside the first
 * and last.  Nothing where no value is finite. */
void plot_curve(FILE *to, const double *values, int count, PlotSize size);

#ifdef __cplusplus
}
#endif
#endif
