/* cfg.c: the flow of control through a function: where lanes that parted meet again; registers that live at once. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

/* ---- post-dominators --------------------------------------------------------------------------------------------- */

/* Immediate post-dominators of a function's instructions: where lanes that parted at a branch meet again.
 *
 * Basic blocks, then the iterative algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm") on
 * the reversed graph.  Lanes that leave early meet nobody, so that ways to an early end do not count: post-dominators
 * are those of the ways to the last end; then, for blocks that cannot come there, of the ways to the last of the other
 * ends; and so on. */

typedef struct FlowGraph {
    const PtxFunction *f;
    int count;            /* of blocks; block |count| is the end of the text */
    int *first, *block;   /* first instruction of a block; block of an instruction */
    int *edges, *edge_at; /* successors */
    int *back, *back_at;  /* predecessors */
    int *pass;            /* in which pass a block was reached; 0: not yet */
    int *order, *rank;    /* post-order of the present pass, against the edges */
    int *idom;
} FlowGraph;

static bool is(const PtxInstruction *i, const char *opcode) { return !strcmp(i->opcode, opcode); }

static const PtxOperand *label_list(const PtxInstruction *i) {
    const PtxOperand *last = &i->operands[i->operand_count - 1];
    return i->operand_count && last->kind == PTX_OP_LIST ? last : NULL;
}

/* Where a branch goes, the next instruction aside; their number. */
static int targets(const PtxInstruction *i, const PtxOperand **first) {
    if (is(i, "bra") && i->operand_count && i->operands[0].kind == PTX_OP_LABEL) return *first = &i->operands[0], 1;
    const PtxOperand *list = is(i, "brx") ? label_list(i) : NULL;
    return list ? (*first = list->items, list->count) : 0;
}

static bool leaves(const PtxInstruction *i) { return is(i, "ret") || is(i, "exit") || is(i, "trap"); }
static bool ends_block(const PtxInstruction *i) { return is(i, "bra") || is(i, "brx") || leaves(i); }
/* Whether the next instruction may follow. */
static bool falls(const PtxInstruction *i) { return i->guard >= 0 || !ends_block(i); }

static int *integers(int count) { return calloc((size_t)count + 1, sizeof(int)); }

static void find_blocks(FlowGraph *g) {
    int n = g->f->count;
    g->block = integers(n + 1);
    for (int k = 0; k < n; k++) { /* marks of leaders */
        const PtxInstruction *i = &g->f->code[k];
        const PtxOperand *to = NULL;
        for (int t = 0, c = targets(i, &to); t < c; t++) g->block[to[t].index < n ? to[t].index : n] = 1;
        if (ends_block(i)) g->block[k + 1] = 1;
    }
    g->block[0] = 1;
    g->first = integers(n + 1);
    for (int k = 0; k < n; k++) {
        if (g->block[k]) g->first[g->count++] = k;
        g->block[k] = g->count - 1;
    }
    g->block[n] = g->count;
    g->first[g->count] = n;
}

static int add_edge(FlowGraph *g, int count, int to) {
    g->edges[count] = g->block[to];
    return count + 1;
}

static void find_edges(FlowGraph *g) {
    int most = 0;
    const PtxOperand *to = NULL;
    for (int b = 0; b < g->count; b++) most += 2 + targets(&g->f->code[g->first[b + 1] - 1], &to);
    g->edges = integers(most);
    g->edge_at = integers(g->count + 1);
    int e = 0;
    for (int b = 0; b < g->count; b++) {
        int last = g->first[b + 1] - 1;
        const PtxInstruction *i = &g->f->code[last];
        g->edge_at[b] = e;
        int n = targets(i, &to);
        for (int t = 0; t < n; t++) e = add_edge(g, e, to[t].index);
        if (falls(i)) e = add_edge(g, e, last + 1);
        if (e == g->edge_at[b] && !leaves(i)) e = add_edge(g, e, g->f->count); /* a branch that is not understood */
    }
    g->edge_at[g->count] = g->edge_at[g->count + 1] = e;
    g->back = integers(e);
    g->back_at = integers(g->count + 2);
    for (int k = 0; k < e; k++) g->back_at[g->edges[k] + 1]++;
    for (int b = 0; b <= g->count; b++) g->back_at[b + 1] += g->back_at[b];
    int *fill = integers(g->count + 1);
    for (int b = 0; b < g->count; b++)
        for (int k = g->edge_at[b]; k < g->edge_at[b + 1]; k++)
            g->back[g->back_at[g->edges[k]] + fill[g->edges[k]]++] = b;
    free(fill);
}

/* Numbers the blocks from which |root| can be reached and that no earlier pass has reached. */
static int number_blocks(FlowGraph *g, int root, int pass) {
    int n = g->count + 1, top = 0, ranked = 0;
    int *stack = integers(n), *at = integers(n);
    stack[top++] = root;
    g->pass[root] = pass;
    while (top) {
        int b = stack[top - 1];
        if (g->back_at[b] + at[b] < g->back_at[b + 1]) {
            int p = g->back[g->back_at[b] + at[b]++];
            if (!g->pass[p]) g->pass[p] = pass, stack[top++] = p;
        } else {
            g->rank[b] = ranked;
            g->order[ranked++] = b;
            top--;
        }
    }
    free(stack);
    free(at);
    return ranked;
}

static int meet(const FlowGraph *g, int a, int b) {
    while (a != b) {
        while (g->rank[a] < g->rank[b]) a = g->idom[a];
        while (g->rank[b] < g->rank[a]) b = g->idom[b];
    }
    return a;
}

static void find_dominators(FlowGraph *g, int root, int pass) {
    int ranked = number_blocks(g, root, pass);
    g->idom[root] = root;
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = ranked - 2; r >= 0; r--) {
            int b = g->order[r], found = -1;
            for (int k = g->edge_at[b]; k < g->edge_at[b + 1]; k++) {
                int s = g->edges[k];
                if (g->pass[s] == pass && g->idom[s] >= 0) found = found < 0 ? s : meet(g, s, found);
            }
            if (found != g->idom[b]) g->idom[b] = found, changed = true;
        }
    }
}

/* The last block that ends threads and was not reached yet; those that end only some (a guard) come after all others.
 * -1: none. */
static int last_end(const FlowGraph *g) {
    int guarded = -1;
    if (!g->pass[g->count]) return g->count;
    for (int b = g->count; b-- > 0;) {
        const PtxInstruction *last = &g->f->code[g->first[b + 1] - 1];
        if (g->pass[b] || !leaves(last)) continue;
        if (last->guard < 0) return b;
        if (guarded < 0) guarded = b;
    }
    return guarded;
}

void cfg_post_dominators(const PtxFunction *f, int *joins) {
    if (!f->count) return;
    FlowGraph g = {.f = f};
    find_blocks(&g);
    find_edges(&g);
    g.order = integers(g.count + 1);
    g.rank = integers(g.count + 1);
    g.idom = integers(g.count + 1);
    g.pass = integers(g.count + 1);
    for (int b = 0; b <= g.count; b++) g.idom[b] = -1;
    for (int pass = 1, end; (end = last_end(&g)) >= 0; pass++) find_dominators(&g, end, pass);
    for (int k = 0; k < f->count; k++) {
        int b = g.block[k], meets = g.idom[b];
        joins[k] = meets < 0 || meets == b ? -1 : g.first[meets];
    }
    int *all[] = {g.first, g.block, g.order, g.rank, g.idom, g.pass, g.edges, g.edge_at, g.back, g.back_at};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
}

/* ---- registers that live at once --------------------------------------------------------------------------------- */

/* How many 32-bit registers a function needs: an estimate of what ptxas would use, from below in that it knows no
 * alignment or scheduling, from above in that it rematerialises nothing. */

typedef struct Live {
    const PtxFunction *f;
    int words;
    uint64_t
        *in; /* [count + 1][words]: registers that are read before they are written, at the start of an instruction */
    bool changed;
} Live;

static void use(uint64_t *set, const PtxOperand *o) {
    if (o->kind == PTX_OP_REGISTER) set[o->index / 64] |= 1ull << (o->index % 64);
    if (o->base) use(set, o->base);
    for (int k = 0; k < o->count; k++) use(set, &o->items[k]);
}

static void define(uint64_t *set, const PtxOperand *o) {
    if (o->kind == PTX_OP_REGISTER) set[o->index / 64] &= ~(1ull << (o->index % 64));
    if (o->kind == PTX_OP_PAIR || o->kind == PTX_OP_VECTOR)
        for (int k = 0; k < o->count; k++) define(set, &o->items[k]);
}

static bool has_result(const PtxInstruction *i) {
    static const char *const none[] = {"st",  "red",     "bra",    "brx",   "call", "ret",      "exit",    "trap",
                                       "bar", "barrier", "membar", "fence", "cp",   "stmatrix", "prefetch"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        if (!strcmp(none[k], i->opcode)) return false;
    return true;
}

static void flow(Live *l, int k) {
    const PtxInstruction *i = &l->f->code[k];
    uint64_t *in = l->in + (size_t)k * l->words, *next = in + l->words;
    uint64_t set[l->words];
    bool branch = !strcmp(i->opcode, "bra") && i->operand_count && i->operands[0].kind == PTX_OP_LABEL;
    const uint64_t *target =
        branch && i->operands[0].index <= l->f->count ? l->in + (size_t)i->operands[0].index * l->words : NULL;
    for (int w = 0; w < l->words; w++) set[w] = (branch && i->guard < 0 ? 0 : next[w]) | (target ? target[w] : 0);
    bool result = i->operand_count && has_result(i);
    if (result && i->guard < 0) define(set, &i->operands[0]);
    for (int j = result ? 1 : 0; j < i->operand_count; j++) use(set, &i->operands[j]);
    if (i->guard >= 0) set[i->guard / 64] |= 1ull << (i->guard % 64);
    for (int w = 0; w < l->words; w++) {
        if (in[w] == set[w]) continue;
        in[w] = set[w];
        l->changed = true;
    }
}

int liveness_registers(const PtxFunction *f) {
    Live l = {.f = f, .words = f->register_count / 64 + 1};
    l.in = calloc((size_t)(f->count + 1) * (size_t)l.words, sizeof *l.in);
    if (!l.in) return 0;
    do {
        l.changed = false;
        for (int k = f->count; k-- > 0;) flow(&l, k);
    } while (l.changed);
    int most = 0;
    for (int k = 0; k < f->count; k++) {
        int sum = 0;
        for (int r = 0; r < f->register_count; r++)
            if (l.in[(size_t)k * l.words + r / 64] >> (r % 64) & 1)
                sum += f->registers[r].type == PTX_PRED ? 0 : ptx_type_bytes(f->registers[r].type) > 4 ? 2 : 1;
        if (sum > most) most = sum;
    }
    free(l.in);
    return most;
}
