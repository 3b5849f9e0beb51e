/* suggesting.h: amprun suggest at work, for its files. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_SUGGESTING_H
#define AMP_TOOLS_AMPRUN_SUGGEST_SUGGESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "amp/base.h"
#include "amp/compile.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/data/data.h"
#include "tools/amprun/trace/tracer.h"

/* ---- trial.c: lines of a precision block that are proposed, with what speaks for each ---------------------------- */

enum { LINES_MOST = 64, LINE_TEXT = 256 };

typedef struct Line {
    char path[LINE_TEXT], why[LINE_TEXT];
    const char *word; /* "f32" or "low" */
} Line;

typedef struct Lines {
    Line line[LINES_MOST];
    int count;
} Lines;

bool lines_have(const Lines *l, const char *path);
/* false: there is no room. */
bool lines_add(Lines *l, const char *path, const char *word, const char *why);
/* |count| lines of |from|, from the one numbered |first| on, as far as there is room. */
void lines_append(Lines *to, const Lines *from, int first, int count);
/* As options of a compilation; |out| has room for LINES_MOST. */
void lines_overrides(const Lines *l, amp_override *out);

/* ---- recorded.c: a training as its log has it: how to take its steps again, and what they gave ------------------- */

typedef struct RecordedStep {
    double loss, scale;
    bool skipped;
} RecordedStep;

/* A tensor over all statistics of a log, with the iterations that say so. */
typedef struct RecordedTensor {
    char *name, dtype[8];
    double largest;            /* magnitude of the finite numbers */
    double flushed;            /* the largest part of its numbers that f16 would make zero */
    double tiny;               /* the largest part that f16 holds with fewer bits than it has */
    int64_t infinities, count; /* the most that were infinite, of so many; of f16 also what would be */
    int64_t largest_at, flushed_at, tiny_at, infinities_at;
} RecordedTensor;

typedef struct Recorded {
    const char *log;     /* the file */
    char *folder;        /* in which the training was started; "": not known */
    char *path, *sha256; /* of the model.so; "": not known */
    char *data, *resume; /* "": not known; not resumed */
    char *eval_data, *weights, *device, *isa;
    char *rule[4 * RULES_MOST]; /* owned; the lists of |rules| */
    int rule_count;
    WeightRules rules;
    int64_t batch, tokens, length, samples, threads;
    uint64_t seed;
    double eval_split;
    int32_t cuda_device;
    bool has_head;
    RecordedStep *step; /* of iteration 1 first */
    int64_t count, room;
    RecordedTensor *tensor;
    int tensor_count, next; /* next: where the next tensor of a line is looked for first */
    int64_t *stats;         /* iterations of which there are statistics */
    int stats_count;
    int64_t tensor_room, stats_room;
} Recorded;

/* Reports and returns 1 where the file is no log, has no statistics, or does not begin with the first step; in either
 * case recorded_close frees everything. */
int recorded_open(Recorded *r, const char *log);
void recorded_close(Recorded *r);

/* NULL: no statistics have it. */
const RecordedTensor *recorded_find(const Recorded *r, const char *name);
/* Whether the loss of a step was not finite, or the step was skipped; |iteration| from 1. */
bool recorded_is_bad(const Recorded *r, int64_t iteration);

/* Adds to |a| what it does not say itself: the model, the data and all that decides the numbers.  Checks that the files
 * are there, and the model the one that was trained.  Reports and returns 1 or, where options are missing, 2. */
int recorded_arguments(Recorded *r, Args *a);

/* ---- evidence.c: how large what each op reads and makes was in some steps, looked at or recorded ----------------- */

enum { EVIDENCE_MOST = 4096 };

typedef struct OpEvidence {
    char path[LINE_TEXT];
    int64_t count;                  /* numbers that were looked at, 0 where all that is known is recorded */
    double largest;                 /* magnitude */
    double flushed;                 /* the largest part of a tensor's numbers that f16 would make zero */
    int64_t largest_at, flushed_at; /* the iterations that say so */
    bool is_alone;                  /* it makes a single number */
    bool is_recorded;               /* its result is in the statistics */
    const RecordedTensor *overflow; /* what it makes, or reads as a cast makes it, with infinities; NULL: none */
    const RecordedTensor *tiny; /* what it makes, a large part of which f16 holds with few bits; NULL: it does not */
    const RecordedTensor *reads_tiny; /* what it reads of that kind */
} OpEvidence;

typedef struct Evidence {
    OpEvidence *op; /* by the order in which they were met; owned */
    int count;
} Evidence;

void evidence_free(Evidence *e);
/* NULL: nothing is known of the op. */
const OpEvidence *evidence_find(const Evidence *e, const char *path);
/* After a step of |twin|, the |iteration| of the training. */
amp_status evidence_add(Evidence *e, const Twin *twin, int64_t iteration, amp_error *err);
/* What the log says of the ops that |trace| has seen in a step of the same model. */
amp_status evidence_add_recorded(Evidence *e, const amp_trace *trace, const Recorded *r, amp_error *err);

/* Proposes `low` for every op that |model| leaves in f32 though f16 would hold all that it read and made with room to
 * spare, but for losses and metrics, and for those that |kept| names.  |dated|: with the iterations. */
void evidence_propose(const Evidence *e, const amp_model *model, const Lines *kept, bool dated, Lines *out);
/* Proposes `f32` for every op that |model| lowers and of which the statistics have infinities, though the loss may be
 * finite; and |tiny| for those that lose what is small. */
void evidence_propose_f32(const Evidence *e, const amp_model *model, const Lines *kept, Lines *overflow, Lines *tiny);

bool evidence_has_tiny(const Evidence *e);
/* "11 of 2048 numbers are infinite at iteration 2 (mul in the log)", of an op with |overflow|. */
void evidence_say_overflow(const OpEvidence *e, char *out, size_t size);

/* ---- trial.c: a training with some lines added to the precision block, to see what becomes of it ----------------- */

typedef struct TrialPlan {
    const Args *args;
    const Dataset *data;
    int64_t batch, length, steps; /* samples of a batch at most, T at most */
    BatchList batches;            /* of an epoch */
    const char *policy;           /* NULL: the model's */
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
    int (*before)(void *user, const Run *run, const void *const *inputs, amp_sizes sizes);
    int (*after)(void *user, const amp_step_report *report);
} TrialVisitor;

/* A model that is compiled from the one of |plan| with |lines|.  |bytes| (may be NULL): a copy of it, which the caller
 * frees.  Reports and returns 1 on failure; in either case run_close frees everything else. */
int trial_open(Run *run, const TrialPlan *plan, const Lines *lines, uint64_t seed, char **bytes, size_t *size);
/* From the first step, with the batches that amprun train takes with |seed|. */
int trial_run(const Run *run, const TrialPlan *plan, uint64_t seed, const TrialVisitor *visitor, TrialResult *out);

/* ---- retake.c: the steps of a log, taken again: what they give, and which op made which recorded tensor ---------- */

typedef struct Retake {
    const Recorded *recorded;
    Evidence *evidence; /* which the statistics are added to */
    amp_session *session;
    amp_trace *trace;   /* of the first step, which has the names that the statistics have */
    int64_t count;      /* of steps taken */
    int64_t differs_at; /* the first iteration that gave something else; 0: none */
    double loss, scale; /* what that gave */
} Retake;

/* Before and after each step; they report and return 1 on failure.  retake_end: however it ended. */
int retake_before(Retake *r, const Args *a, const Run *run);
int retake_after(Retake *r, const amp_step_report *report);
void retake_end(Retake *r);

/* ---- suggest.c and others: amprun suggest at work ---------------------------------------------------------------- */

typedef struct Suggesting {
    Args args; /* those of the command, and what a log says */
    TrialPlan plan;
    Dataset data, held; /* what is trained on, and what was held out of it */
    amp_model *model;   /* as it is */
    uint64_t seed;
    Lines f32, low;
    TrialResult before, first, other, last; /* as the model is; with f32 lines, and by another seed; with all lines */
    bool has_fp32;
    TrialResult fp32; /* the same steps */
    Evidence evidence;
    bool has_noise;
    double noise; /* of the loss, between seeds */
    int trials;
    char unmended[LINE_TEXT]; /* why a step is not finite that no line mends; empty: there is none */
    bool is_recorded;         /* --stats */
    Recorded recorded;
    Retake retake;
} Suggesting;

/* They report and return 1 on failure. */

/* Trains with |lines|. */
int suggesting_train(Suggesting *s, const Lines *lines, uint64_t seed, TrialResult *out);
/* Trains by another seed, where that is not known yet: how far losses differ that mean the same. */
int suggesting_find_noise(Suggesting *s);

/* differ.c: the same steps in fp32; whether |r| ended far above them; lines by what differs first, while it does. */
int suggesting_train_fp32(Suggesting *s);
bool suggesting_is_far(const Suggesting *s, const TrialResult *r);
int suggesting_find_difference(Suggesting *s);
/* overflow.c: lines that leave in f32 what makes a step not finite. */
int suggesting_find_overflow(Suggesting *s);
/* look.c: adds to |e| what ops read and make in some steps of a training with |lines|, and proposes for |proposed| (may
 * be NULL) what is safe in the lower type. */
int suggesting_look(Suggesting *s, const Lines *lines, Evidence *e, Lines *proposed);
/* recorded_lines.c: lines that leave in f32 what is infinite or too small in the statistics of the log, though the
 * steps are finite. */
int suggesting_find_recorded(Suggesting *s);
/* told.c */
void suggesting_print(const Suggesting *s);
void suggesting_json(const Suggesting *s);

#endif
