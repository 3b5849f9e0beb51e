/* evaluate.h: loss and metrics over all samples of a dataset, which evaluation was the best, and what a checkpoint
 * keeps of it. */
#ifndef AMP_TOOLS_EVALUATE_H
#define AMP_TOOLS_EVALUATE_H

#include "amp/train.h"
#include "tools/amprun/data/data.h"
#include "tools/amprun/train/ranks.h"

enum { EVALUATION_METRICS = 16 };

typedef struct Evaluation {
    int64_t samples;
    double loss, metrics[EVALUATION_METRICS], losses[EVALUATION_METRICS];
} Evaluation;

/* Those of one batch of all samples, in batches as |limits| say.  Reports and returns 1 on failure;
 * returns EVALUATION_STOPPED where |stop| (may be NULL) says so between two batches.  |ranks|: each takes its share of
 * the batches, and all get the figures; NULL: this process takes all. */
enum { EVALUATION_STOPPED = -1 };
int evaluate(const Run *run, const Dataset *data, const BatchLimits *limits, int (*stop)(void), const Ranks *ranks,
             Evaluation *out);

/* ---- position.c: where a training is beside what the session knows: the amp.extra of its checkpoint -------------- */

typedef struct Position {
    uint64_t seed;          /* of the order of samples */
    int64_t batch, samples; /* of a micro-batch; of the data set. 0: not known */
    int64_t tokens;         /* of a micro-batch, at most; 0: any number */
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

/* ---- best.c: which evaluation was the best so far, for --save-best and --patience -------------------------------- */

/* What is measured: the loss, a named loss, or a metric. */
typedef struct Best {
    const char *name;
    bool smaller; /* is better */
    enum { BEST_LOSS, BEST_NAMED_LOSS, BEST_METRIC } of;
    int index;
} Best;

/* |what|: "loss", the name of a loss or of a metric, after "min:" or "max:" where that is not what the name suggests:
 * small for losses, errors and perplexities, large for everything else.  NULL: the loss.  Reports and returns 2 where
 * the model has no such thing. */
int best_find(Best *b, const Run *run, const char *what);
double best_value(const Best *b, const Evaluation *e);
/* Notes an evaluation in |p|; true where it is the best so far.  NaN never is. */
bool best_update(const Best *b, const Evaluation *e, Position *p);

#endif
