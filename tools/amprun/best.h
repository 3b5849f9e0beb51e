/* best.h: which evaluation was the best so far, for --save-best and --patience. */
#ifndef AMP_TOOLS_BEST_H
#define AMP_TOOLS_BEST_H

#include "tools/amprun/evaluate.h"
#include "tools/amprun/position.h"

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
