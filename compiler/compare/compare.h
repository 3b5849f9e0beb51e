/* compare.h: what differs between two models, or two policies of one: dtypes of ops, with the reasons on both sides,
 * and casts.  A comparison is data; compare_text.c and compare_json.c write it down. */
#ifndef AMP_COMPILER_COMPARE_H
#define AMP_COMPILER_COMPARE_H

#include "compiler/explain/explain.h"

typedef struct OpPair { /* the same op: equal paths; of several with one path, the first with the first */
    const Decision *before, *after;
} OpPair;
typedef VEC(OpPair) OpPairs;
typedef VEC(const Decision *) Ops;
typedef VEC(const Cast *) CastList;

typedef struct ComparedSide {
    const ExplainSource *source;
    ExplainFacts facts;
    CastTotals totals; /* of the casts that are selected */
    Ops only;          /* ops that the other side has not */
    CastList casts;    /* that the other side has not: gone, or come */
} ComparedSide;

typedef struct Comparison {
    ComparedSide before, after;
    OpPairs changed;      /* the result or an operand, as it is read, has another dtype */
    OpPairs other_reason; /* the same dtypes, decided otherwise */
    int matched;          /* ops on both sides, the changed ones too */
    bool counts_casts;    /* false: a side's graph is lost, so nothing is known of its casts */
} Comparison;

/* Of the ops and casts that |which| selects.  |a|: where what it refers to is kept; the sources have to outlive it. */
Comparison compare_sources(Arena *a, const ExplainSource *before, const ExplainSource *after,
                           const ExplainSelection *which);
/* No op and no cast differs, and no op is on one side only; other_reason does not count. */
bool compare_is_same(const Comparison *c);

/* ---- ops of repeated layers (compare_groups.c) ------------------------------------------------------------------- */

typedef struct OpGroup { /* ops that differ in such numbers alone, and changed alike, by the same line */
    const char *name;    /* "h.*.mlp.fc"; of one op, its path */
    OpPairs pairs;
} OpGroup;
typedef VEC(OpGroup *) OpGroups;
/* In the order of their first ops.  Of what is on one side only, the other of a pair is NULL. */
OpGroups compare_group(Arena *a, const OpPairs *pairs);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

void compare_as_text(Text *t, const Comparison *c);
amp_status compare_as_json(Text *t, const Comparison *c, amp_error *err);

#endif
