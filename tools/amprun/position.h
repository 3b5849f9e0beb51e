/* position.h: where a training is beside what the session knows: kept in a checkpoint as its amp.extra. */
#ifndef AMP_TOOLS_POSITION_H
#define AMP_TOOLS_POSITION_H

#include "tools/amprun/amprun.h"

typedef struct Position {
    uint64_t seed;          /* of the order of samples */
    int64_t batch, samples; /* of a micro-batch; of the data set. 0: not known */
    int64_t ranks;          /* that trained together; 0: not known, from before there were any */
    int64_t evaluated;      /* epochs after which the model was evaluated */
    double epoch_loss;      /* of the epoch so far: sum of loss * n, samples, skipped steps */
    int64_t epoch_samples, epoch_skipped;
    char metric[128]; /* what "best" is measured by; "": nothing is */
    double best;      /* NaN: nothing was measured yet */
    int64_t stale;    /* evaluations since it was best */
    amp_scale_monitor scale;
    char *schema; /* of a table: what was derived of it (csv_schema.h); malloc'd, NULL: the data are none */
} Position;

/* As JSON; the caller frees it.  NULL (reported): no memory. */
char *position_write(const Position *p);
/* Of the checkpoint |path|.  One that a program wrote has none: |p| stays as it is.  Reports and returns 1 on failure.
 */
int position_read(const char *path, Position *p);

#endif
