/* stats.h: --stats: counts of every tensor of a step, as an observer of the session sees them. */
#ifndef AMP_TOOLS_AMPRUN_STATS_STATS_H
#define AMP_TOOLS_AMPRUN_STATS_STATS_H

#include <stdbool.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/stats/tensor_stats.h"

typedef struct NamedStats {
    char *name;
    bool is_seen; /* in this micro-batch, so that it is no second copy in another layout */
    amp_dtype dtype;
    amp_number_bins bins; /* of the step so far */
    TensorStats stats;    /* of the last step that was told of */
} NamedStats;

typedef struct Stats {
    const Run *run;
    int64_t every;         /* steps; 0: never */
    NamedStats **tensor;   /* each stays where it is: the session adds to its bins */
    int count, room, next; /* next: where the next tensor of a step is looked for first */
    int broken;            /* of stats_broken */
    bool is_on;
} Stats;

Stats stats_new(const Run *run, int64_t every);
void stats_free(Stats *s);

/* Before a micro-batch of step |iteration|, counted from 1; the counts of a step are those of all its micro-batches. */
amp_status stats_before(Stats *s, int64_t iteration, bool is_first, amp_error *err);
/* After the last of them.  |*is_told|: there is something to tell.  Reports and returns 1 on failure. */
int stats_after(Stats *s, bool *is_told);
/* Of the last step that was told of: how many tensors are not finite; |broken| is then the first of them. */
int stats_broken(Stats *s);
/* A line of JSON without its newline. */
void stats_json(FILE *to, const Stats *s, const amp_step_report *report);

#endif
