/* trial.h: a training of a model with some lines added to its precision block, to see what becomes of it. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_TRIAL_H
#define AMP_TOOLS_AMPRUN_SUGGEST_TRIAL_H

#include "tools/amprun/data.h"
#include "tools/amprun/suggest/lines.h"

typedef struct TrialPlan {
    const Args *args;
    const Dataset *data;
    int64_t batch, batches, steps;
    const char *policy; /* NULL: the model's */
    bool as_is; /* without lines the model is not compiled again, so that its steps are those of a training with it */
} TrialPlan;

typedef struct TrialResult {
    bool is_finite;  /* every loss is */
    double begin;    /* the loss of the first step */
    double loss;     /* the mean over the last quarter of the steps */
    int64_t skipped; /* steps */
} TrialResult;

/* What a trial does besides; NULL: nothing. */
typedef struct TrialVisitor {
    void *user;
    /* A step's model is there, its last batch and its report.  Reports and returns 1 to end the trial. */
    int (*before)(void *user, const Run *run, const void *const *inputs, int64_t n);
    int (*after)(void *user, const amp_step_report *report);
} TrialVisitor;

/* A model that is compiled from the one of |plan| with |lines|.  |bytes| (may be NULL): a copy of it, which the caller
 * frees.  Reports and returns 1 on failure; in either case run_close frees everything else. */
int trial_open(Run *run, const TrialPlan *plan, const Lines *lines, uint64_t seed, char **bytes, size_t *size);
/* From the first step, with the batches that amprun train takes with |seed|. */
int trial_run(const Run *run, const TrialPlan *plan, uint64_t seed, const TrialVisitor *visitor, TrialResult *out);

#endif
