/* training.h: a training in progress, for the files of amprun train. */
#ifndef AMP_TOOLS_TRAINING_H
#define AMP_TOOLS_TRAINING_H

#include <stdbool.h>

#include "amp/amp.h"
#include "amp/train.h"
#include "base/json.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/train/evaluate.h"
#include "tools/amprun/train/feed.h"
#include "tools/amprun/log/log.h"
#include "tools/amprun/profile/profile.h"
#include "tools/amprun/train/progress.h"
#include "tools/amprun/stats/stats.h"
#include "tools/amprun/tensorboard/tensorboard.h"
#include "tools/amprun/trace/tracer.h"

/* ---- ahead.c: steps whose reports are not asked for yet, so that the device computes while log lines are written - */

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

/* ---- the training ------------------------------------------------------------------------------------------------ */

typedef struct Training {
    const Args *args;
    Ranks *ranks;
    Run run;
    Run averages; /* --ema; its parameters are evaluated and kept in place of the run's */
    Dataset train, test;
    bool has_test;
    int64_t batch, tokens, epochs, total_steps;
    BatchList batches; /* of an epoch */
    int64_t per_step;  /* micro-batches of a step of all ranks */
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

/* What is evaluated and kept: the run or, as they are now, its averages.  NULL: reported.  All ranks call it. */
const Run *training_kept(Training *t);

/* train.c: writes --checkpoint where --checkpoint-every says so. */
int training_checkpoint_if_due(Training *t);
/* Where ranks have shares of it, and --checkpoint-every is a time: whether this one asks for it, and what they do. */
bool training_checkpoint_is_asked(const Training *t);
int training_checkpoint(Training *t);

/* log_head.c: the first line of a log, without its newline: what is trained, the bytes that it takes, and all that
 * decides its numbers, so that the same steps can be taken again (amprun suggest --stats). */
void log_head(FILE *to, const Training *t);

/* ---- stopping.c: signals that end training after the step -------------------------------------------------------- */

/* From here on SIGINT, SIGTERM and SIGHUP are only noted; one that was ignored stays ignored (nohup).  A second SIGINT
 * or SIGTERM ends the program at once, as without this.  SIGHUP never counts as the second: a terminal that closes
 * sends it twice; nor does one within a tenth of a second, which a wrapper may have passed on.
 * SIGPIPE and SIGXFSZ are ignored: writing fails instead, and what was trained is not lost. */
void stopping_watch(void);

/* The signal that asked for the end; 0: none. */
int stopping_signal(void);
const char *stopping_name(int signal); /* "SIGINT" */

/* ---- saving.c: what training leaves: parameters, checkpoints, the best so far ------------------------------------ */

/* Numbers of the parameters and buffers that cannot be trained any further: NaN, and infinite ones beyond the
 * |infinite| that were there at the start.  *infinite gets the count of infinite ones where it is negative. */
int64_t saving_damage(const Run *run, int64_t *infinite);

/* --save, as --save-like says; reports and returns 1 on failure. */
int saving_params(const Run *run, const Args *a, const char *option, const char *path);
/* What was derived of a table goes beside the parameters, as FILE.schema.  |schema|: NULL: nothing was. */
int saving_schema(const char *schema, const char *option, const char *path);
/* --checkpoint.  Micro-batches of a step that is not complete are dropped. */
int saving_checkpoint(const Run *run, const char *path, const Position *position);
/* Loads the checkpoint |path|, and says on standard error what goes on in another way.  Reports and returns 1 on
 * failure. */
int resume_from(const Run *r, const char *path);

/* ---- scale_watch.c: what is said of the loss scale of a training, and what a checkpoint keeps of it -------------- */

/* What is not ordinary, in a word; else "". */
const char *scale_watch_note(const amp_scale_monitor *m);
/* Warns on standard error where |m|, which has just changed, is out of the ordinary after step |iteration|. */
void scale_watch_warn(const amp_scale_monitor *m, int64_t iteration);

/* An object "scale_monitor" with what was counted. */
void scale_watch_put(amp_json_writer *w, const amp_scale_monitor *m);
/* What is there of it, of the object |from|; what is not stays. */
void scale_watch_take(const amp_json *from, amp_scale_monitor *m);
/* Goes on with what was counted, if anything was, by what |model| says of its scale. */
void scale_watch_go_on(amp_scale_monitor *m, const amp_model *model);

#endif
