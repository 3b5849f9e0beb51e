/* training.h: a training in progress, for the files of amprun train. */
#ifndef AMP_TOOLS_TRAINING_H
#define AMP_TOOLS_TRAINING_H

#include "tools/amprun/ahead.h"
#include "tools/amprun/best.h"
#include "tools/amprun/feed.h"
#include "tools/amprun/log.h"
#include "tools/amprun/position.h"
#include "tools/amprun/profile/profile.h"
#include "tools/amprun/progress.h"
#include "tools/amprun/ranks.h"
#include "tools/amprun/stats/stats.h"
#include "tools/amprun/tensorboard/events.h"
#include "tools/amprun/trace/tracer.h"

typedef struct Training {
    const Args *args;
    Ranks *ranks;
    Run run;
    Dataset train, test;
    bool has_test;
    int64_t batch, batches, epochs, total_steps;
    int64_t per_step; /* micro-batches of a step of all ranks */
    Feed feed;
    Log log;
    EventFile events; /* of --tensorboard */
    Progress progress;
    Best best;
    Position position; /* at the end of the last step */
    bool known;        /* it was in the checkpoint of --resume, for this batch and data */
    int64_t infinite;  /* numbers of the parameters at the start */
    double saved;      /* when the last checkpoint was written */
    int64_t unsaved;   /* steps since then */
    bool said_too_few; /* samples in a batch, for some statistics */
    int stopped_by;    /* the signal that asked for the end; 0: none */
    Tracer tracer;     /* with --trace-nonfinite */
    Stats stats;       /* with --stats */
    int warned_of;     /* tensors that are not finite, in the last warning of --stats */
    Profile profile;   /* with --profile */
    Ahead ahead;
    amp_step_report last; /* that was taken */
    double metrics[EVALUATION_METRICS], losses[EVALUATION_METRICS];
    double step_loss;  /* of the micro-batches so far, each times its samples */
    double epoch_loss; /* sum of loss * n over the epoch */
    int64_t epoch_samples, epoch_skipped;
} Training;

/* training.c.  They report; 0, 1 or 2 as commands do. */
int training_open(Training *t);
void training_close(Training *t);
/* Steps after |iteration|, until they are done, a signal asks for the end, or something fails. */
int training_run(Training *t, int64_t iteration);
/* Waits for the reports of all steps that were started, and takes them: before anything that is to be of the same step
 * as the session. */
int training_catch_up(Training *t);

/* train.c: writes --checkpoint where --checkpoint-every says so. */
int training_checkpoint_if_due(Training *t);
/* Where ranks have shares of it, and --checkpoint-every is a time: whether this one asks for it, and what they do. */
bool training_checkpoint_is_asked(const Training *t);
int training_checkpoint(Training *t);

#endif
