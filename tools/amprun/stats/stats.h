/* stats.h: --stats: counts of every tensor of a step, as an observer of the session sees them. */
#ifndef AMP_TOOLS_AMPRUN_STATS_STATS_H
#define AMP_TOOLS_AMPRUN_STATS_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "amp/observe.h"
#include "tools/amprun/amprun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensor_stats.c: how large the numbers of a tensor are, and what shorter types would make of them ------------ */

enum { EXPONENTS = 256, SHORT_TYPES = 4 };

/* A type that numbers could be rounded to, to nearest even.  Bounds are bits of f32, of magnitudes, and all between two
 * bins. */
typedef struct ShortType {
    const char *name;
    uint32_t kept_from;    /* below here a number becomes zero */
    uint32_t normal_from;  /* below here it loses bits, where it does not become zero */
    uint32_t too_large_at; /* from here on it becomes infinite, or NaN where the type has no infinity */
} ShortType;
extern const ShortType short_types[SHORT_TYPES]; /* f16, bf16, and OCP's e4m3 and e5m2 */

typedef struct ShortCounts {
    int64_t flushed, subnormal, overflow;
} ShortCounts;

typedef struct TensorStats {
    amp_dtype dtype;
    int64_t count, zeros, nans, infinities;
    /* Finite numbers but zero, by the exponent of f32, biased: [e] counts magnitudes from 2^(e - 127) on, [0] those
     * below 2^-126. */
    int64_t exponent[EXPONENTS];
    float largest; /* magnitude of the finite ones; 0: none */
    ShortCounts in[SHORT_TYPES];
} TensorStats;

TensorStats tensor_stats_of(amp_dtype dtype, const amp_number_bins *bins);
/* The members of a JSON object: "count": ... "e5m2": {...} */
void tensor_stats_json(FILE *to, const TensorStats *s);

/* ---- stats.c ----------------------------------------------------------------------------------------------------- */

typedef struct NamedStats {
    char *name;
    bool is_seen; /* in this micro-batch, so that it is no second copy in another layout */
    amp_dtype dtype;
    amp_number_bins bins; /* of the step so far */
    TensorStats stats;    /* of the last step that was told of */
} NamedStats;

typedef struct Stats {
    const Run *run;
    int64_t every;       /* steps; 0: never */
    NamedStats **tensor; /* each stays where it is: the session adds to its bins */
    int64_t room;
    int count, next; /* next: where the next tensor of a step is looked for first */
    int broken;      /* of stats_broken */
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

#ifdef __cplusplus
}
#endif
#endif
