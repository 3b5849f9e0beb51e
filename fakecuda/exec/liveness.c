/* liveness.c: where the registers of a function live: the classic backward data flow over its basic blocks. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

typedef struct Live {
    const PtxFunction *f;
    CfgBlocks blocks;
    int words;
    /* Sets of registers by block, |words| each: those that it reads before it writes them, those that it writes, those
     * that live where it begins (also of the end of the text). */
    uint64_t *read, *written, *in;
    int *first, *last;
} Live;

static uint64_t *set_of(const Live *l, uint64_t *sets, int block) { return sets + (size_t)block * (size_t)l->words; }
static bool has(const uint64_t *set, int r) { return set[r / 64] >> (r % 64) & 1; }
static void put(uint64_t *set, int r) { set[r / 64] |= 1ull << (r % 64); }
static void drop(uint64_t *set, int r) { set[r / 64] &= ~(1ull << (r % 64)); }

/* ---- what an instruction does ---- */

typedef void Visit(void *user, int reg);

static void visit_all(const PtxOperand *o, Visit *visit, void *user) {
    if (o->kind == PTX_OP_REGISTER) visit(user, o->index);
    if (o->base) visit_all(o->base, visit, user);
    for (int k = 0; k < o->count; k++) visit_all(&o->items[k], visit, user);
}

static bool is_list(const PtxOperand *o) { return o->kind == PTX_OP_PAIR || o->kind == PTX_OP_VECTOR; }

static bool has_result(const PtxInstruction *i) {
    static const char *const none[] = {"st",       "red",      "bra",      "brx",       "call",    "ret",
                                       "exit",     "trap",     "bar",      "barrier",   "membar",  "fence",
                                       "cp",       "stmatrix", "prefetch", "prefetchu", "discard", "applypriority",
                                       "nanosleep"};
    if (!i->operand_count || !(i->operands[0].kind == PTX_OP_REGISTER || is_list(&i->operands[0]))) return false;
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        if (!strcmp(none[k], i->opcode)) return false;
    return true;
}

/* Registers that it writes for sure: a guarded one leaves some lanes what they had. */
static void visit_written(const PtxInstruction *i, Visit *visit, void *user) {
    if (has_result(i) && i->guard < 0) visit_all(&i->operands[0], visit, user);
}

static void visit_read(const PtxInstruction *i, Visit *visit, void *user) {
    for (int k = has_result(i) ? 1 : 0; k < i->operand_count; k++) visit_all(&i->operands[k], visit, user);
    if (i->guard >= 0) visit(user, i->guard);
}

/* ---- blocks ---- */

typedef struct Sets {
    uint64_t *read, *written;
} Sets;

static void sum_written(void *user, int r) {
    const Sets *s = user;
    drop(s->read, r);
    put(s->written, r);
}
static void sum_read(void *user, int r) { put(((const Sets *)user)->read, r); }

static void sum_up(const Live *l, int b) {
    Sets s = {set_of(l, l->read, b), set_of(l, l->written, b)};
    for (int k = l->blocks.first[b + 1]; k-- > l->blocks.first[b];) {
        visit_written(&l->f->code[k], sum_written, &s);
        visit_read(&l->f->code[k], sum_read, &s);
    }
}

/* What lives where block |b| ends. */
static void find_out(const Live *l, int b, uint64_t *out) {
    memset(out, 0, (size_t)l->words * sizeof *out);
    for (int e = l->blocks.edge_at[b]; e < l->blocks.edge_at[b + 1]; e++) {
        const uint64_t *in = set_of(l, l->in, l->blocks.edges[e]);
        for (int w = 0; w < l->words; w++) out[w] |= in[w];
    }
}

static void solve(const Live *l, uint64_t *out) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int b = l->blocks.count; b-- > 0;) {
            uint64_t *in = set_of(l, l->in, b), *read = set_of(l, l->read, b), *written = set_of(l, l->written, b);
            find_out(l, b, out);
            for (int w = 0; w < l->words; w++) {
                const uint64_t now = read[w] | (out[w] & ~written[w]);
                changed |= now != in[w];
                in[w] = now;
            }
        }
    }
}

/* ---- where registers need a place ---- */

static void stretch(const Live *l, int r, int at) {
    if (l->last[r] < 0 || at < l->first[r]) l->first[r] = at;
    if (at > l->last[r]) l->last[r] = at;
}

static void stretch_set(const Live *l, const uint64_t *set, int at) {
    for (int w = 0; w < l->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1) stretch(l, w * 64 + __builtin_ctzll(rest), at);
}

/* ---- how many live at once ---- */

typedef struct Count {
    const Live *live;
    uint64_t *set;
    int at, sum;
} Count;

static int weight(const Live *l, int r) {
    const PtxType type = l->f->registers[r].type;
    return type == PTX_PRED ? 0 : ptx_type_bytes(type) > 4 ? 2 : 1;
}

static void count_written(void *user, int r) {
    Count *c = user;
    stretch(c->live, r, c->at);
    if (has(c->set, r)) c->sum -= weight(c->live, r);
    drop(c->set, r);
}

static void count_read(void *user, int r) {
    Count *c = user;
    stretch(c->live, r, c->at);
    if (!has(c->set, r)) c->sum += weight(c->live, r);
    put(c->set, r);
}

static void mention(void *user, int r) {
    const Count *c = user;
    stretch(c->live, r, c->at);
}

/* The most live registers at once in block |b|; the registers of |set| are live at its end. */
static int count_block(const Live *l, int b, uint64_t *set) {
    Count c = {l, set, l->blocks.first[b + 1] - 1, 0};
    int most = 0;
    for (int r = 0; r < l->f->register_count; r++)
        if (has(set, r)) c.sum += weight(l, r);
    stretch_set(l, set, c.at);
    for (; c.at >= l->blocks.first[b]; c.at--) {
        const PtxInstruction *i = &l->f->code[c.at];
        if (has_result(i)) visit_all(&i->operands[0], mention, &c);
        visit_written(i, count_written, &c);
        visit_read(i, count_read, &c);
        if (c.sum > most) most = c.sum;
    }
    stretch_set(l, set, l->blocks.first[b]);
    return most;
}

int liveness(const PtxFunction *f, int *first, int *last) {
    Live l = {.f = f, .words = f->register_count / 64 + 1, .first = first, .last = last};
    for (int r = 0; r < f->register_count; r++) first[r] = 0, last[r] = -1;
    if (!f->count) return 0;
    l.blocks = cfg_blocks(f);
    const size_t room = (size_t)(l.blocks.count + 1) * (size_t)l.words;
    l.read = calloc(3 * room + (size_t)l.words, sizeof *l.read);
    if (!l.read) abort(); /* the host has no memory left */
    l.written = l.read + room;
    l.in = l.written + room;
    uint64_t *out = l.in + room;
    int most = 0;
    for (int b = 0; b < l.blocks.count; b++) sum_up(&l, b);
    solve(&l, out);
    for (int b = 0; b < l.blocks.count; b++) {
        find_out(&l, b, out);
        const int here = count_block(&l, b, out);
        if (here > most) most = here;
    }
    free(l.read);
    cfg_blocks_free(&l.blocks);
    return most;
}
