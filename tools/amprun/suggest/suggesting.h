/* suggesting.h: amprun suggest at work, for its files. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_SUGGESTING_H
#define AMP_TOOLS_AMPRUN_SUGGEST_SUGGESTING_H

#include "tools/amprun/suggest/evidence.h"
#include "tools/amprun/suggest/retake.h"
#include "tools/amprun/suggest/trial.h"

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
