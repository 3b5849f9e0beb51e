/* paint.c: the passes of painting, one function each; every one is a few walks over the edges, breadth first, so that
 * what a walk remembers is a shortest path. */
#include "precision/paint.h"

/* The edges of each vertex v on one side: ends[first[v]] to ends[first[v + 1] - 1]. */
typedef struct Neighbours {
    int *first, *ends;
} Neighbours;

/* What a walk reached: of each vertex the one that it came from, itself where the walk began there. */
typedef int *Reached;

typedef struct Painter {
    const PaintVertex *vertices;
    int count;
    Neighbours in, out; /* what a vertex reads, and what reads it */
    PaintMark *marks;
    int *queue, queued; /* of the walk that goes on */
    Reached leading;    /* over clear ops to a deny or infer op, where they are no such op themselves */
    Reached below;      /* from an op of the list allow, over ops that may become allow */
} Painter;

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static int end_of(PaintEdge e, bool at_target) { return at_target ? e.to : e.from; }

/* Sorted by counting, so that edges keep their order. */
static Neighbours neighbours_of(Arena *a, const PaintGraph *g, bool incoming) {
    Neighbours n = {arena_array(a, int, g->vertex_count + 2), arena_array(a, int, g->edge_count)};
    int *next = n.first + 1; /* while they are filled in: where the next edge of a vertex goes */
    for (int i = 0; i < g->edge_count; i++) next[end_of(g->edges[i], incoming) + 1]++;
    for (int v = 0; v < g->vertex_count; v++) next[v + 1] += next[v];
    for (int i = 0; i < g->edge_count; i++)
        n.ends[next[end_of(g->edges[i], incoming)]++] = end_of(g->edges[i], !incoming);
    return n;
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

enum { NOT_REACHED = -1 };

static Reached begin_walk(Painter *p, Arena *scratch) {
    Reached reached = arena_array(scratch, int, p->count);
    for (int v = 0; v < p->count; v++) reached[v] = NOT_REACHED;
    p->queued = 0;
    return reached;
}

static void visit(Painter *p, Reached reached, int v, int from) {
    reached[v] = from;
    p->queue[p->queued++] = v;
}

typedef bool (*MayEnter)(const Painter *p, int v);

static void visit_neighbours(Painter *p, const Neighbours *side, int v, Reached reached, MayEnter may_enter) {
    for (int i = side->first[v]; i < side->first[v + 1]; i++) {
        int other = side->ends[i];
        if (reached[other] == NOT_REACHED && may_enter(p, other)) visit(p, reached, other, v);
    }
}

/* From the vertices that were visited on.  |other_side| may be NULL. */
static void walk(Painter *p, const Neighbours *side, const Neighbours *other_side, Reached reached,
                 MayEnter may_enter) {
    for (int i = 0; i < p->queued; i++) {
        visit_neighbours(p, side, p->queue[i], reached, may_enter);
        if (other_side) visit_neighbours(p, other_side, p->queue[i], reached, may_enter);
    }
}

static int before_on_path(Reached reached, int v) { return reached[v] == v ? PAINT_NOWHERE : reached[v]; }

/* ---- colours ----------------------------------------------------------------------------------------------------- */

static void mark(Painter *p, int v, PaintColour colour, PaintPass pass, int before, int after) {
    p->marks[v] = (PaintMark){colour, pass, before, after};
}

static bool is_allow(const Painter *p, int v) { return p->marks[v].colour == PAINT_ALLOW; }
static bool is_deny(const Painter *p, int v) { return p->marks[v].colour == PAINT_DENY; }
static bool is_listed(const Painter *p, int v, PaintList list) { return p->vertices[v].list == list; }

/* An op of the list allow that is allow whatever its neighbours are. */
static bool is_source(const Painter *p, int v) {
    return p->vertices[v].may_change && is_listed(p, v, PAINT_LIST_ALLOW);
}

static bool can_become_low(const Painter *p, int v) {
    const PaintVertex *x = &p->vertices[v];
    return x->may_change && x->is_f32 && x->has_low_kernel && !is_deny(p, v);
}

/* ---- pass 1: the list allow -------------------------------------------------------------------------------------- */

static bool paint_sources(Painter *p) {
    bool any = false;
    for (int v = 0; v < p->count; v++) {
        mark(p, v, PAINT_NONE, PAINT_UNTOUCHED, PAINT_NOWHERE, PAINT_NOWHERE);
        if (!is_source(p, v)) continue;
        mark(p, v, PAINT_ALLOW, PAINT_BY_LIST, PAINT_NOWHERE, PAINT_NOWHERE);
        any = true;
    }
    return any;
}

/* ---- pass 2: deny ----------------------------------------------------------------------------------------------- */

static bool is_clear(const Painter *p, int v) { return is_listed(p, v, PAINT_LIST_CLEAR); }

static bool is_leading(const Painter *p, int v) { return p->leading[v] != NOT_REACHED; }

static void find_leading(Painter *p, Arena *scratch) {
    p->leading = begin_walk(p, scratch);
    for (int v = 0; v < p->count; v++)
        if (is_listed(p, v, PAINT_LIST_DENY) || is_listed(p, v, PAINT_LIST_INFER)) visit(p, p->leading, v, v);
    walk(p, &p->in, NULL, p->leading, is_clear);
}

static void paint_deny(Painter *p, Arena *scratch) {
    find_leading(p, scratch);
    Reached denied = begin_walk(p, scratch);
    for (int v = 0; v < p->count; v++)
        if (is_listed(p, v, PAINT_LIST_DENY)) visit(p, denied, v, v);
    walk(p, &p->out, NULL, denied, is_leading);
    for (int v = 0; v < p->count; v++)
        if (denied[v] != NOT_REACHED)
            mark(p, v, PAINT_DENY, PAINT_BY_DENY, before_on_path(denied, v), before_on_path(p->leading, v));
}

/* ---- pass 3: between two ----------------------------------------------------------------------------------------- */

static bool can_be_between(const Painter *p, int v) {
    return (is_listed(p, v, PAINT_LIST_CLEAR) || is_listed(p, v, PAINT_LIST_INFER)) && can_become_low(p, v);
}

static bool is_below(const Painter *p, int v) { return p->below[v] != NOT_REACHED; }

static void visit_sources(Painter *p, Reached reached) {
    for (int v = 0; v < p->count; v++)
        if (is_source(p, v)) visit(p, reached, v, v);
}

static void paint_between(Painter *p, Arena *scratch) {
    p->below = begin_walk(p, scratch);
    visit_sources(p, p->below);
    walk(p, &p->out, NULL, p->below, can_be_between);
    Reached above = begin_walk(p, scratch);
    visit_sources(p, above);
    walk(p, &p->in, NULL, above, is_below);
    for (int v = 0; v < p->count; v++)
        if (above[v] != NOT_REACHED && !is_allow(p, v)) mark(p, v, PAINT_ALLOW, PAINT_BETWEEN, p->below[v], above[v]);
}

/* ---- pass 4: infer ops after one --------------------------------------------------------------------------------- */

/* The first operand that is allow, or PAINT_NOWHERE. */
static int allow_operand(const Painter *p, int v) {
    for (int i = p->in.first[v]; i < p->in.first[v + 1]; i++)
        if (is_allow(p, p->in.ends[i])) return p->in.ends[i];
    return PAINT_NOWHERE;
}

/* What is painted here counts for the vertices that follow.  As in TensorFlow no kernel is asked for.  No operand is
 * deny: pass 2 made deny what reads one. */
static void paint_after(Painter *p) {
    for (int v = 0; v < p->count; v++) {
        const PaintVertex *x = &p->vertices[v];
        if (p->marks[v].colour != PAINT_NONE || x->list != PAINT_LIST_INFER) continue;
        if (!x->may_change || !x->is_f32 || !x->admits_low) continue;
        int operand = allow_operand(p, v);
        if (operand != PAINT_NOWHERE) mark(p, v, PAINT_ALLOW, PAINT_AFTER, operand, PAINT_NOWHERE);
    }
}

/* ---- pass 5: clear ops beside ------------------------------------------------------------------------------------ */

static bool can_be_beside(const Painter *p, int v) {
    return is_clear(p, v) && can_become_low(p, v) && !p->vertices[v].reads_variable;
}

static bool reads(const Painter *p, int v, int operand) {
    for (int i = p->in.first[v]; i < p->in.first[v + 1]; i++)
        if (p->in.ends[i] == operand) return true;
    return false;
}

static void paint_beside(Painter *p, Arena *scratch) {
    Reached beside = begin_walk(p, scratch);
    for (int v = 0; v < p->count; v++)
        if (is_allow(p, v)) visit(p, beside, v, v);
    walk(p, &p->in, &p->out, beside, can_be_beside);
    for (int v = 0; v < p->count; v++) {
        if (beside[v] == NOT_REACHED || beside[v] == v) continue;
        if (reads(p, v, beside[v])) mark(p, v, PAINT_ALLOW, PAINT_BESIDE, beside[v], PAINT_NOWHERE);
        else mark(p, v, PAINT_ALLOW, PAINT_BESIDE, PAINT_NOWHERE, beside[v]);
    }
}

/* ---- pass 6: types that cannot be low ---------------------------------------------------------------------------- */

static void remove_types(Painter *p) {
    for (int v = 0; v < p->count; v++)
        if (is_allow(p, v) && is_listed(p, v, PAINT_LIST_ALLOW) && !p->vertices[v].admits_low)
            mark(p, v, PAINT_NONE, PAINT_TYPE, PAINT_NOWHERE, PAINT_NOWHERE);
}

/* ---- passes 7 and 8: loops and casts ----------------------------------------------------------------------------- */

/* The first reader that is not allow, or PAINT_NOWHERE. */
static int other_reader(const Painter *p, int v) {
    for (int i = p->out.first[v]; i < p->out.first[v + 1]; i++)
        if (!is_allow(p, p->out.ends[i])) return p->out.ends[i];
    return PAINT_NOWHERE;
}

static int first_reader(const Painter *p, int v) {
    return p->out.first[v] < p->out.first[v + 1] ? p->out.ends[p->out.first[v]] : PAINT_NOWHERE;
}

static void remove_as(Painter *p, int v, int reader) {
    if (is_allow(p, v)) mark(p, v, PAINT_NONE, PAINT_LOOP, PAINT_NOWHERE, reader);
}

/* All readers of the end of an iteration, and the end itself, have one colour. */
static void match_loop(Painter *p, int v) {
    int other = other_reader(p, v);
    if (other == PAINT_NOWHERE) {
        if (!is_allow(p, v)) mark(p, v, PAINT_ALLOW, PAINT_LOOP, PAINT_NOWHERE, first_reader(p, v));
        return;
    }
    for (int i = p->out.first[v]; i < p->out.first[v + 1]; i++) remove_as(p, p->out.ends[i], other);
    remove_as(p, v, other);
}

static void match_loops(Painter *p) {
    for (int v = 0; v < p->count; v++)
        if (p->vertices[v].ends_iteration) match_loop(p, v);
}

static void match_casts(Painter *p) {
    for (int v = 0; v < p->count; v++) {
        int reader = first_reader(p, v);
        if (!p->vertices[v].casts_to_f32 || reader == PAINT_NOWHERE || is_allow(p, v)) continue;
        if (other_reader(p, v) == PAINT_NOWHERE) mark(p, v, PAINT_ALLOW, PAINT_CAST, PAINT_NOWHERE, reader);
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

const PaintMark *paint_graph(Arena *a, const PaintGraph *g) {
    Painter p = {.vertices = g->vertices, .count = g->vertex_count};
    p.marks = arena_array(a, PaintMark, p.count);
    if (!paint_sources(&p)) return p.marks;

    Arena *scratch = arena_child(a);
    p.in = neighbours_of(scratch, g, true);
    p.out = neighbours_of(scratch, g, false);
    p.queue = arena_array(scratch, int, p.count);
    paint_deny(&p, scratch);
    paint_between(&p, scratch);
    paint_after(&p);
    paint_beside(&p, scratch);
    remove_types(&p);
    match_loops(&p);
    match_casts(&p);
    arena_free(scratch);
    return p.marks;
}
