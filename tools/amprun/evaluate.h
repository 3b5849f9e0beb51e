/* evaluate.h: loss and metrics over all samples of a dataset. */
#ifndef AMP_TOOLS_EVALUATE_H
#define AMP_TOOLS_EVALUATE_H

#include "tools/amprun/data.h"
#include "tools/amprun/ranks.h"

enum { EVALUATION_METRICS = 16 };

typedef struct Evaluation {
    int64_t samples;
    double loss, metrics[EVALUATION_METRICS], losses[EVALUATION_METRICS];
} Evaluation;

/* Those of one batch of all samples, in batches of |batch|, the last one smaller.  Reports and returns 1 on failure;
 * returns EVALUATION_STOPPED where |stop| (may be NULL) says so between two batches.  |ranks|: each takes its share of
 * the batches, and all get the figures; NULL: this process takes all. */
enum { EVALUATION_STOPPED = -1 };
int evaluate(const Run *run, const Dataset *data, int64_t batch, int (*stop)(void), const Ranks *ranks,
             Evaluation *out);

#endif
