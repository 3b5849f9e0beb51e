/* tracer.h: --trace-nonfinite: keeps what is needed to take the last steps again, and says where a number that is not
 * finite came from. */
#ifndef AMP_TOOLS_AMPRUN_TRACE_TRACER_H
#define AMP_TOOLS_AMPRUN_TRACE_TRACER_H

#include <stdio.h>

#include "amp/amp.h"
#include "amp/trace.h"
#include "amp/train.h"
#include "tools/amprun/amprun.h"
#include "tools/outputs.h"

/* ---- batches.c: copies of the batches of the last steps ---------------------------------------------------------- */

typedef struct MicroBatch {
    void **arrays; /* by input of the model */
    amp_sizes sizes;
} MicroBatch;

typedef struct StepBatch { /* of one step */
    int count;
    MicroBatch *micro;
} StepBatch;

typedef struct Batches {
    const amp_model *model;
    int inputs, micro_batches; /* of a step */
    int count, room;
    StepBatch *step; /* oldest first */
    size_t bytes;    /* of all copies */
} Batches;

Batches batches_new(const amp_model *model);
/* The next micro-batch; the first of a step begins one. */
amp_status batches_add(Batches *b, const void *const *inputs, amp_sizes sizes, amp_error *err);
/* None is kept any more. */
void batches_clear(Batches *b);
void batches_free(Batches *b);

/* Runs the step on |session|.  As amp_step, but a scale at its floor is no error here. */
amp_status batches_run(const StepBatch *batch, amp_session *session, amp_step_report *report, amp_error *err);

/* ---- twin.c: the model of a training, compiled again so that every value of a step can be looked at -------------- */

typedef struct TwinSource { /* of what, and where it runs */
    const Args *args;
    const char *bytes; /* of the model.so */
    size_t size;
    int64_t capacity;
    uint64_t seed;
} TwinSource;

typedef struct TwinForm {
    const char *policy; /* NULL: the model's */
    const amp_override *overrides;
    size_t override_count;
} TwinForm;

typedef struct Twin {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_trace *trace;
} Twin;

/* In either case twin_close frees everything. */
amp_status twin_open(Twin *twin, const TwinSource *source, const TwinForm *form, amp_error *err);
void twin_close(Twin *twin);

/* What a step left. */
typedef struct TwinStep {
    amp_trace_finding finding;
    amp_step_report report;
    int micro; /* the micro-batch in which it was found */
} TwinStep;

/* Where a step begins. */
typedef struct TwinState {
    const char *checkpoint; /* a file: everything, for a twin whose states are the model's */
    const char *params;  /* a file: parameters and buffers, for a twin of another policy, whose scaler may be another;
                               the moments come after the gradients and are left out */
    amp_scaler_state at; /* steps and iterations so far, for those */
    double scale;        /* of the loss; 0: that of the checkpoint */
} TwinState;

amp_status twin_step(Twin *twin, const TwinState *state, const StepBatch *batch, TwinStep *out, amp_error *err);

/* ---- verdict.c: what is known of a step that was not finite, and how it is told ---------------------------------- */

enum { VERDICT_LINES = 12 };

typedef enum Answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES } Answer;

typedef struct Verdict {
    int64_t iteration;
    double loss; /* of the step */
    float scale;
    amp_trace_finding finding;
    bool is_state;    /* a state kept its value, as the new one was not finite */
    bool is_expected; /* gradients overflowed at this loss scale alone: the step is skipped, and the scale goes down */
    bool is_repeated; /* the fault and the op are those of the verdict before: no more was asked */
    bool is_last;     /* no more is told of after it */
    int64_t sample;   /* DATA: the first sample of the batch that is not finite; -1: not known */
    int64_t updates;  /* of the parameters, before the step */
    int micro;        /* the micro-batch of the step in which it was found */
    char place[64];   /* of that sample in the data: "sample 77"; empty: not known */
    Answer fp32;      /* whether the step is finite in f32 */
    double fp32_loss;
    int line_count;                  /* lines of the precision block with which the step is finite; 0: none was found */
    const char *line[VERDICT_LINES]; /* paths of ops that they leave in f32 */
} Verdict;

/* For people, on several lines. */
void verdict_print(FILE *to, const Verdict *v);
/* What the user can do if no line of the precision block helps. */
const char *verdict_advice(const Verdict *v);
/* A line of JSON without its newline. */
void verdict_json(FILE *to, const Verdict *v);

/* ---- tracer.c ---------------------------------------------------------------------------------------------------- */

typedef struct Tracer {
    const Args *args;
    const Run *run;
    TwinSource source;
    char *bytes;                   /* of the model.so, where it was read */
    char folder[TEMPORARY_PATH];   /* for checkpoints; empty: none */
    Batches batches;               /* since the snapshot, which is the state before the first of them */
    Twin same;                     /* of the model as it is; session NULL: not made yet */
    char line[VERDICT_LINES][256]; /* paths of a verdict */
    int expected, alarms;          /* verdicts so far */
    amp_trace_fault last;          /* of the last one, and its op */
    char last_path[256];
    int streak;  /* skipped steps in a row */
    bool is_off; /* enough was said, or something failed that was reported */
} Tracer;

/* |source|: of the model of |run|; bytes NULL: the file that the arguments name is read.  Reports and returns 1 on
 * failure; in either case tracer_close frees everything. */
int tracer_open(Tracer *t, const TwinSource *source, const Run *run);
void tracer_close(Tracer *t);

/* Before amp_step of the next micro-batch. */
int tracer_before(Tracer *t, const void *const *inputs, amp_sizes sizes);
/* Steps were taken that it was not told of: it begins anew. */
void tracer_forget(Tracer *t);
/* After a whole step: true, and |out|, where there is something to tell.  A verdict that is_expected is for the log.
 * The strings of |out| live until the next call. */
bool tracer_after(Tracer *t, const amp_step_report *report, Verdict *out);

#endif
