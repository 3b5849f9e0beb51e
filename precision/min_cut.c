/* min_cut.c: see min_cut.h. */
#include "precision/min_cut.h"

enum { F32_END, LOW_END, FIRST_NODE }; /* nodes of the network: the source, the sink, then the graph's */

#define UNLIMITED (INT64_MAX / 2)

typedef struct Edge { /* of the network; its reverse is at the index with the last bit flipped */
    int to, next;     /* next: of the node's list; -1: none */
    int64_t room;     /* what may still flow */
} Edge;

typedef struct CastPrice {
    int node, first, count; /* readers: c->readers[first .. first + count) */
    int64_t down, up;
    int low, f32; /* after solve: how many readers are low, and f32 */
} CastPrice;

typedef struct Implication { /* |node| is f32 where |other| is */
    int other, node;
} Implication;

struct MinCut {
    Arena *arena;
    int nodes;
    int64_t (*price)[2]; /* by node: when low, when f32 */
    signed char *fixed;  /* by node: 0 low, 1 f32, -1 free */
    bool *is_f32;        /* by node, after solve */
    VEC(CastPrice) casts;
    VEC(int) readers;
    VEC(int) * casts_of; /* by node: casts that it is part of, as owner or reader; once for each time it reads */
    VEC(Implication) implications;

    /* ---- the network, while solve runs */
    VEC(Edge) edges;
    VEC(int) head;  /* by node of the network: its first edge; -1: none */
    int *level;     /* by node: its distance from the source; -1: not reached */
    int *next_edge; /* by node: the edge that the search tries next */
    int *queue;     /* of the search by breadth; the path of the search by depth, as edges */
};

/* ---- prices ------------------------------------------------------------------------------------------------------ */

MinCut *min_cut_new(Arena *a, int nodes) {
    MinCut *c = arena_new(a, MinCut);
    c->arena = a;
    c->nodes = nodes;
    c->price = arena_alloc(a, sizeof *c->price * (size_t)nodes);
    c->fixed = arena_array(a, signed char, nodes);
    memset(c->fixed, -1, (size_t)nodes);
    c->is_f32 = arena_array(a, bool, nodes);
    c->casts_of = arena_alloc(a, sizeof *c->casts_of * (size_t)nodes);
    return c;
}

void min_cut_node(MinCut *c, int node, int64_t when_low, int64_t when_f32) {
    c->price[node][0] += when_low;
    c->price[node][1] += when_f32;
}

void min_cut_fix(MinCut *c, int node, bool is_f32) { c->fixed[node] = is_f32; }

void min_cut_implies(MinCut *c, int other, int node) {
    Implication i = {other, node};
    vec_push(c->arena, &c->implications, i);
}

void min_cut_cast(MinCut *c, int node, const int *readers, int count, int64_t down, int64_t up) {
    if (!count || (!down && !up)) return;
    const int cast = c->casts.len;
    CastPrice p = {.node = node, .first = c->readers.len, .count = count, .down = down, .up = up};
    vec_push(c->arena, &c->casts, p);
    vec_push(c->arena, &c->casts_of[node], cast);
    for (int i = 0; i < count; i++) {
        vec_push(c->arena, &c->readers, readers[i]);
        vec_push(c->arena, &c->casts_of[readers[i]], cast);
    }
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static int add_network_node(MinCut *c) {
    vec_push(c->arena, &c->head, -1);
    return c->head.len - 1;
}

static void add_edge(MinCut *c, int from, int to, int64_t room) {
    if (!room) return;
    Edge there = {to, c->head.data[from], room}, back = {from, c->head.data[to], 0};
    c->head.data[from] = c->edges.len;
    vec_push(c->arena, &c->edges, there);
    c->head.data[to] = c->edges.len;
    vec_push(c->arena, &c->edges, back);
}

/* Paid where the node is f32 and some reader low: through a node of the network that is low exactly then. */
static void add_down(MinCut *c, const CastPrice *p) {
    const int *readers = &c->readers.data[p->first];
    if (p->count == 1) {
        add_edge(c, FIRST_NODE + p->node, FIRST_NODE + readers[0], p->down);
        return;
    }
    const int some = add_network_node(c);
    add_edge(c, FIRST_NODE + p->node, some, p->down);
    for (int i = 0; i < p->count; i++) add_edge(c, some, FIRST_NODE + readers[i], UNLIMITED);
}

static void add_up(MinCut *c, const CastPrice *p) {
    const int *readers = &c->readers.data[p->first];
    if (p->count == 1) {
        add_edge(c, FIRST_NODE + readers[0], FIRST_NODE + p->node, p->up);
        return;
    }
    const int some = add_network_node(c);
    add_edge(c, some, FIRST_NODE + p->node, p->up);
    for (int i = 0; i < p->count; i++) add_edge(c, FIRST_NODE + readers[i], some, UNLIMITED);
}

static void build_network(MinCut *c) {
    for (int i = 0; i < FIRST_NODE + c->nodes; i++) add_network_node(c);
    for (int i = 0; i < c->nodes; i++) {
        const int64_t low = c->price[i][0], f32 = c->price[i][1], both = low < f32 ? low : f32;
        if (c->fixed[i] >= 0) {
            if (c->fixed[i]) add_edge(c, F32_END, FIRST_NODE + i, UNLIMITED);
            else add_edge(c, FIRST_NODE + i, LOW_END, UNLIMITED);
            continue;
        }
        add_edge(c, F32_END, FIRST_NODE + i, low - both);
        add_edge(c, FIRST_NODE + i, LOW_END, f32 - both);
    }
    for (int i = 0; i < c->casts.len; i++) {
        const CastPrice *p = &c->casts.data[i];
        if (p->down) add_down(c, p);
        if (p->up) add_up(c, p);
    }
    for (int i = 0; i < c->implications.len; i++)
        add_edge(c, FIRST_NODE + c->implications.data[i].other, FIRST_NODE + c->implications.data[i].node, UNLIMITED);
}

/* ---- the flow ---------------------------------------------------------------------------------------------------- */

/* Distances from the source along edges with room, up to the sink's; returns whether the sink is reached. */
static bool find_levels(MinCut *c) {
    int read = 0, written = 0;
    for (int i = 0; i < c->head.len; i++) c->level[i] = -1;
    c->level[F32_END] = 0;
    c->queue[written++] = F32_END;
    while (read < written && c->level[LOW_END] < 0) {
        const int node = c->queue[read++];
        for (int e = c->head.data[node]; e >= 0; e = c->edges.data[e].next) {
            const Edge *edge = &c->edges.data[e];
            if (!edge->room || c->level[edge->to] >= 0) continue;
            c->level[edge->to] = c->level[node] + 1;
            c->queue[written++] = edge->to;
        }
    }
    return c->level[LOW_END] >= 0;
}

/* The next edge of the node that leads one level on; -1: there is none left. */
static int edge_onwards(MinCut *c, int node) {
    for (int *e = &c->next_edge[node]; *e >= 0; *e = c->edges.data[*e].next) {
        const Edge *edge = &c->edges.data[*e];
        if (edge->room && c->level[edge->to] == c->level[node] + 1) return *e;
    }
    return -1;
}

/* Sends what the path of |length| edges has room for; the length up to its first full edge. */
static int send_along(MinCut *c, const int *path, int length) {
    int64_t room = UNLIMITED;
    int first_full = length;
    for (int i = 0; i < length; i++)
        if (c->edges.data[path[i]].room < room) room = c->edges.data[path[i]].room;
    for (int i = length - 1; i >= 0; i--) {
        Edge *edge = &c->edges.data[path[i]], *back = &c->edges.data[path[i] ^ 1];
        edge->room -= room;
        back->room += room;
        if (!edge->room) first_full = i;
    }
    return first_full;
}

/* As much as the levels allow, path by path. */
static void fill_levels(MinCut *c) {
    int *path = c->queue, length = 0;
    memcpy(c->next_edge, c->head.data, sizeof(int) * (size_t)c->head.len);
    for (;;) {
        const int node = length ? c->edges.data[path[length - 1]].to : F32_END;
        if (node == LOW_END) {
            length = send_along(c, path, length);
            continue;
        }
        const int e = edge_onwards(c, node);
        if (e >= 0) {
            path[length++] = e;
        } else if (!length) {
            return;
        } else {
            c->level[node] = -1; /* leads nowhere */
            length--;
        }
    }
}

void min_cut_solve(MinCut *c, bool *is_f32) {
    Arena *arena = c->arena, *child = arena_child(arena);
    c->arena = child;
    c->edges.data = NULL, c->edges.len = c->edges.cap = 0;
    c->head.data = NULL, c->head.len = c->head.cap = 0;
    build_network(c);
    c->level = arena_array(child, int, c->head.len);
    c->next_edge = arena_array(child, int, c->head.len);
    c->queue = arena_array(child, int, c->head.len);
    while (find_levels(c)) fill_levels(c);
    for (int i = 0; i < c->nodes; i++) c->is_f32[i] = is_f32[i] = c->level[FIRST_NODE + i] >= 0;
    for (int i = 0; i < c->casts.len; i++) {
        CastPrice *p = &c->casts.data[i];
        p->low = p->f32 = 0;
        for (int k = 0; k < p->count; k++) (is_f32[c->readers.data[p->first + k]] ? p->f32++ : p->low++);
    }
    arena_free(child);
    c->arena = arena;
}

/* ---- what a choice costs ----------------------------------------------------------------------------------------- */

static int64_t cast_price(const CastPrice *p, bool node_is_f32, int low, int f32) {
    return node_is_f32 ? (low ? p->down : 0) : (f32 ? p->up : 0);
}

int64_t min_cut_other(const MinCut *c, int node) {
    const bool now = c->is_f32[node];
    int64_t more = c->price[node][!now] - c->price[node][now];
    for (int i = 0; i < c->casts_of[node].len; i++) {
        const int cast = c->casts_of[node].data[i];
        if (i && c->casts_of[node].data[i - 1] == cast) continue; /* reads it more than once: counted below */
        const CastPrice *p = &c->casts.data[cast];
        int reads = p->node == node ? -1 : 0;
        for (int k = i; k < c->casts_of[node].len && c->casts_of[node].data[k] == cast; k++) reads++;
        const int low = p->low + (now ? reads : -reads), f32 = p->f32 + (now ? -reads : reads);
        const bool owner = c->is_f32[p->node];
        more += cast_price(p, p->node == node ? !owner : owner, low, f32) - cast_price(p, owner, p->low, p->f32);
    }
    return more;
}

int64_t min_cut_total(const MinCut *c, const bool *is_f32) {
    int64_t total = 0;
    for (int i = 0; i < c->nodes; i++) total += c->price[i][is_f32[i]];
    for (int i = 0; i < c->casts.len; i++) {
        const CastPrice *p = &c->casts.data[i];
        int low = 0;
        for (int k = 0; k < p->count; k++) low += !is_f32[c->readers.data[p->first + k]];
        total += cast_price(p, is_f32[p->node], low, p->count - low);
    }
    return total;
}
