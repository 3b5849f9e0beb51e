/* governor.h: whether a program runs on one thread or on all, by what either took.
 *
 * More threads are slower than one where a program is small, or where other processes keep the processors busy.  No
 * rule knows that beforehand and it changes while a program trains, so both are timed: mostly the one that was
 * better, now and then the other.  A trial that cost time is not repeated before TRIAL_SHARE times that time has
 * passed, so that trials cost a few percent at most.  The bits of results do not depend on it.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_GOVERNOR_H
#define AMP_RUNTIME_DEVICE_CPU_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "amp/amp.h"

typedef struct amp_timed_way { /* one thread, or all */
    int64_t calls, ns;         /* since the last mean */
    int64_t least;             /* ns of the fastest of these calls */
    int64_t mean;              /* ns; 0: not known */
} amp_timed_way;

typedef struct amp_governor {
    const void *program; /* what it is about */
    amp_sizes sizes;
    uint64_t selection; /* amp_run's */
    amp_timed_way one, all;
    int cold;         /* calls at the start that say nothing */
    bool prefers_one; /* which was better */
    bool on_trial;    /* the other way is being timed */
    int64_t rest;     /* ns until the next trial */
    int64_t period;   /* between trials, as long as they change nothing */
    int64_t alone;    /* ns of the last call on one thread, or what it took at most; 0: not known */
} amp_governor;

/* Calls with a T have many sizes; all whose n * t goes up to the same power of two have one governor, and their times
 * count as if they had that many. */
amp_sizes amp_governor_sizes(amp_sizes sizes);
int64_t amp_governor_time(amp_sizes sizes, int64_t ns);
/* For a program that has not run: all zeros but what it is about. */
amp_governor amp_governor_make(const void *program, amp_sizes sizes);
/* What the next call does. */
bool amp_governor_runs_alone(const amp_governor *governor);
/* A call on one thread took so long (0: not known) that it is worth waking |threads - 1| sleeping workers for it. */
bool amp_governor_is_worth_waking(const amp_governor *governor);
/* A call took |ns|; |alone|: on one thread. */
void amp_governor_record(amp_governor *governor, bool alone, int64_t ns, int32_t threads);
/* A call ran on one thread only because the workers were asleep. */
void amp_governor_record_let_sleep(amp_governor *governor, int64_t ns);

#endif
