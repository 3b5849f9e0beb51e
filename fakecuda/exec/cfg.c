/* cfg.c: the flow of control through a function: its basic blocks, and where lanes that parted meet again. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

/* Immediate post-dominators of a function's instructions: where lanes that parted at a branch meet again.
 *
 * Basic blocks, then the iterative algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm") on
 * the reversed graph.  Lanes that leave early meet no others, so that paths to an early end do not count:
 * post-dominators are taken over the paths to the last end; then, for blocks that cannot reach it, over the paths to
 * the last of the other ends; and so on. */

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

CfgBlocks cfg_blocks(const PtxFunction *f) {
    FlowGraph g = {.f = f};
    find_blocks(&g);
    find_edges(&g);
    free(g.block);
    free(g.back);
    free(g.back_at);
    return (CfgBlocks){g.count, g.first, g.edges, g.edge_at};
}

void cfg_blocks_free(CfgBlocks *b) {
    free(b->first);
    free(b->edges);
    free(b->edge_at);
}

/* ---- post-dominators --------------------------------------------------------------------------------------------- */

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
