/* min_cut.h: which nodes of a graph are f32 and which low, so that the sum of prices is least.
 *
 * Prices are of two kinds:
 *
 *   of a node      what it pays when it is low, and what when it is f32
 *   of a cast      what is paid, once, when at least one reader of a node differs from it: one price for a node that is
 *                  f32 and has a low reader, one for a node that is low and has an f32 reader
 *
 * A choice is a cut of a network, and the least one is found by maximum flow (Ford and Fulkerson 1956; a price that
 * several readers share is a node of the network: Kohli, Ladicky and Torr 2009).  The flow is Dinic's (1970).  It is
 * exact: no other choice costs less.  Of choices that cost the same, the answer is the one with the fewest f32 nodes,
 * which is unique.
 *
 * Memory is the arena's.  Prices are 64-bit integers from 0 on; their sum must stay below MIN_CUT_LIMIT.
 */
#ifndef AMP_PRECISION_MIN_CUT_H
#define AMP_PRECISION_MIN_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIN_CUT_LIMIT (INT64_MAX / 4)

typedef struct MinCut MinCut;

/* A graph of |nodes| nodes without prices. */
MinCut *min_cut_new(Arena *a, int nodes);

/* Adds to what a node pays. */
void min_cut_node(MinCut *c, int node, int64_t when_low, int64_t when_f32);

/* The node is f32, or low, whatever it costs. */
void min_cut_fix(MinCut *c, int node, bool is_f32);

/* |node| is f32 where |other| is. */
void min_cut_implies(MinCut *c, int other, int node);

/* The cast of |node| for |count| readers: |down| where the node is f32 and a reader low, |up| where it is low and a
 * reader f32.  |readers| is copied. */
void min_cut_cast(MinCut *c, int node, const int *readers, int count, int64_t down, int64_t up);

/* Writes each node's choice to |is_f32|. */
void min_cut_solve(MinCut *c, bool *is_f32);

/* After min_cut_solve: how much more all prices would be if |node| alone were the other.  0 and more where no
 * implication forbids it; a fixed node answers what it would be if it were free. */
int64_t min_cut_other(const MinCut *c, int node);

/* The sum of the prices of a choice. */
int64_t min_cut_total(const MinCut *c, const bool *is_f32);

#ifdef __cplusplus
}
#endif

#endif
