/* ranks.h: the processes of a training: which this one is, what it does of the whole, and what they tell each other. */
#ifndef AMP_TOOLS_RANKS_H
#define AMP_TOOLS_RANKS_H

#include "amp/comm.h"
#include "tools/amprun/amprun.h"

typedef struct Ranks {
    amp_comm *comm; /* NULL: this process trains alone */
    int32_t rank, count;
    int64_t next_meeting; /* the step before which ranks meet next */
    double met;           /* when they met last, by the clock, before step |met_before| */
    int64_t met_before;
} Ranks;

/* As --dist says; alone without it.  Reports and returns 1 or 2, as commands do; ranks_close in either case. */
int ranks_open(Ranks *r, const Args *a);
/* At the end: all ranks leave together, so that nobody takes for done what rank 0 has not written, and that the
 * launcher ends nobody who still works.  Where they do not, it reports who was missing, and ends the process. */
void ranks_close(Ranks *r);
/* Tells the others that this rank ends, and what it has reported last; not where it is another one's failure. */
void ranks_give_up(const Ranks *r);
/* Gives up, and ends the process: whatever the others do, nothing waits. */
void ranks_end(const Ranks *r, int status);

/* This rank has options that were reported as wrong, before ranks_open: where it can, it joins the others, as --dist
 * says, and tells them, who would wait for it.  |status|, where the process does not end here. */
int ranks_refuse(const Args *a, int status);

/* What it is at, for ranks that wait for it, until the session says something else. */
void ranks_does(const Ranks *r, amp_rank_does what);
/* What all ranks have to have the same, by what a user calls it, before the first step. */
typedef struct RankOption {
    const char *name; /* "--batch" */
    int64_t value;
} RankOption;
int ranks_agree(const Ranks *r, const RankOption *options, int count);

/* What a rank is asked to do: rank 0 alone prints and writes. */
Args ranks_args(const Ranks *r, const Args *a);

/* Before |step|, counted from 0: |*signal| gets the one that asked some rank to end, 0 where none was asked; |*saves|
 * what it is on rank 0.  Ranks meet a few times a second at most, all before the same steps; between, both are none. */
int ranks_meet(Ranks *r, int64_t step, int *signal, bool *saves);
/* Sums over ranks, added in their order. */
int ranks_sum(const Ranks *r, double *values, int count);

#endif
