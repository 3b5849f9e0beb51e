/* recorded.h: a training as its log has it (--log, --stats): how to take its steps again, what they gave, and how large
 * the numbers were. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_RECORDED_H
#define AMP_TOOLS_AMPRUN_SUGGEST_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "amp/base.h"
#include "tools/amprun/amprun.h"

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
    int64_t batch, samples, threads;
    uint64_t seed;
    double eval_split;
    int32_t cuda_device;
    bool has_head;
    RecordedStep *step; /* of iteration 1 first */
    int64_t count, room;
    RecordedTensor *tensor;
    int tensor_count, tensor_room, next; /* next: where the next tensor of a line is looked for first */
    int64_t *stats;                      /* iterations of which there are statistics */
    int stats_count, stats_room;
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

#endif
