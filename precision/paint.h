/* paint.h: painting: which parts of a graph compute in the low type, found in the whole graph, forward and backward.
 *
 * This is the algorithm of TensorFlow 2.21's graph rewrite auto_mixed_precision, written anew from its description,
 * over an abstract graph, so that it runs over a graph of ours and over one of TensorFlow's.  What the language has no
 * use for is not here: lists of tensors, and the levels that force or forbid whole lists.
 *
 * A vertex is one type of an op: what one type attribute of it says.  Most ops have one; an op whose operands have
 * types of their own (the data and the statistics of a batch norm) has one for each, and operands of a fixed type are a
 * vertex too, because paint passes through them.  An edge leads from the vertex that a value is written by to the one
 * that reads it.
 *
 *     1  an op of the list allow is painted allow
 *     2  an op of the list deny is painted deny; so is an infer op that reads what is deny, and a clear op that does
 *        and leads, over clear ops alone, to an infer or deny op
 *     3  infer and clear ops between two that are painted allow become allow
 *     4  in the order of the vertices, once: an infer op that reads what is allow, and nothing that is deny
 *     5  clear ops that touch what is allow, on either side, and clear ops that touch those
 *     6  what cannot have the low type is no longer allow
 *     7  the end of an iteration of a loop is as what its next one begins with
 *     8  a cast to f32 is allow where all its readers are
 *
 * A value is cast where it is f32 and one of its two ends is allow: once for all its readers of the other colour.
 */
#ifndef AMP_PRECISION_PAINT_H
#define AMP_PRECISION_PAINT_H

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an op reacts to low precision. */
typedef enum PaintList {
    PAINT_LIST_NONE,  /* unknown: stays f32, and stops paint */
    PAINT_LIST_ALLOW, /* gains by it */
    PAINT_LIST_INFER, /* bears it, where its neighbours have it */
    PAINT_LIST_DENY,  /* suffers from it */
    PAINT_LIST_CLEAR  /* moves or compares numbers: has no part in it */
} PaintList;

typedef struct PaintVertex {
    PaintList list;
    bool may_change;     /* false: the op stays as it is, as one that the caller reads or writes by name */
    bool is_f32;         /* the type is f32 now */
    bool admits_low;     /* the op may have the low type here */
    bool has_low_kernel; /* and can compute in it */
    bool reads_variable; /* hands on the variable itself: pass 5 leaves it alone */
    bool ends_iteration; /* TensorFlow's NextIteration: what reads it begins the next iteration */
    bool casts_to_f32;   /* the result of a cast to f32 that was there before */
} PaintVertex;

typedef struct PaintEdge {
    int from, to; /* vertices */
} PaintEdge;

typedef struct PaintGraph {
    const PaintVertex *vertices; /* in the order of pass 4 */
    const PaintEdge *edges;      /* in any order; cycles, and the same edge twice, are fine */
    int vertex_count, edge_count;
} PaintGraph;

typedef enum PaintColour { PAINT_NONE, PAINT_ALLOW, PAINT_DENY } PaintColour;

/* As numbered above. */
typedef enum PaintPass {
    PAINT_UNTOUCHED,
    PAINT_BY_LIST,
    PAINT_BY_DENY,
    PAINT_BETWEEN,
    PAINT_AFTER,
    PAINT_BESIDE,
    PAINT_TYPE,
    PAINT_LOOP,
    PAINT_CAST
} PaintPass;

enum { PAINT_NOWHERE = -1 };

/* What a vertex became, and why.  |before| and |after| are neighbours: the next vertex on a shortest path to what paint
 * came from, against the edges and along them, or PAINT_NOWHERE.
 *
 *     pass      colour  before                                 after
 *     by list   allow   -                                      -
 *     by deny   deny    towards the op of the list deny        towards the infer or deny op that a clear op leads to
 *     between   allow   towards an op of the list allow        towards another
 *     after     allow   the operand that is allow              -
 *     beside    allow   the neighbour that was allow first, on one of the two sides
 *     type      none    -                                      -
 *     loop      allow, none   -                                the reader of the iteration's end that it is as
 *     cast      allow   -                                      the first reader
 *
 * Which of several paths of one length it is depends on the order of vertices and edges.  A type that was allow and is
 * not any more has no colour, and the pass that took it away (type, loop). */
typedef struct PaintMark {
    PaintColour colour;
    PaintPass pass; /* that decided last */
    int before, after;
} PaintMark;

/* The mark of each vertex, in |a|.  Without a vertex that pass 1 paints nothing is painted at all, not even deny.  Time
 * and memory are linear in vertices and edges, and the depth of the stack does not depend on the graph.  |g| is read
 * only during the call; every edge must name vertices of it. */
const PaintMark *paint_graph(Arena *a, const PaintGraph *g);

#ifdef __cplusplus
}
#endif

#endif
