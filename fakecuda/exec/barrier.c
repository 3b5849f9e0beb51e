/* barrier.c: bar, barrier: the 16 barriers of a block; fences. */
#include "fakecuda/exec/inner.h"

typedef enum BarrierAction { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR } BarrierAction;

typedef struct BarrierOp {
    BarrierAction action;
    bool aligned, has_count;
    Operand barrier, count, predicate;
    bool predicate_negated;
} BarrierOp;

/* ---- running ---- */

static void write_result(Warp *w, Strand *s, const Inst *i, const Barrier *r) {
    const BarrierOp *op = i->more;
    uint32_t value = op->action == BAR_POPC  ? r->red_count
                     : op->action == BAR_AND ? r->red_count == r->red_threads
                                             : r->red_count > 0;
    uint32_t *to = (uint32_t *)(void *)((i->dst[0].base == BASE_WARP ? w->bases[BASE_WARP] : s->frame->registers) +
                                        i->dst[0].offset);
    FOR_LANES(l, s->active) to[l] = value;
}

/* Everybody is there: those that wait go on. */
static void release(Block *b, int id) {
    Barrier *r = &b->barriers[id];
    for (int v = 0; v < b->warp_count; v++) {
        Warp *w = &b->warps[v];
        for (int k = 0; k < w->strand_count; k++) {
            Strand *s = &w->strands[k];
            if (s->state != STRAND_AT_BARRIER || s->barrier != id) continue;
            const Inst *i = &s->frame->function->code[s->pc];
            if (((const BarrierOp *)i->more)->action >= BAR_POPC) write_result(w, s, i, r);
            clock_acquire(w, &r->clocks);
            s->state = STRAND_RUNS;
            s->pc++;
            w->outcome = WARP_READY;
        }
    }
    *r = (Barrier){0};
    b->progress = b->instructions;
}

static Step run_barrier(Warp *w, const Inst *i) {
    Block *b = w->block;
    const BarrierOp *op = i->more;
    int lane = __builtin_ctz(w->active);
    uint64_t id = lane_value(w, &op->barrier, lane);
    uint32_t expected = op->has_count ? (uint32_t)lane_value(w, &op->count, lane) : b->threads;
    uint32_t here = op->has_count && op->aligned ? LANES : (uint32_t)__builtin_popcount(w->active);
    if (id >= MAX_BARRIERS)
        return fault(w, i, lane, EXEC_ILLEGAL_INSTRUCTION, "barrier %llu: there are 16", (unsigned long long)id);
    if (op->has_count && (!expected || expected % LANES))
        return fault(w, i, lane, EXEC_ILLEGAL_INSTRUCTION,
                     "a barrier of %u threads: the number must be a multiple of 32", expected);
    Barrier *r = &b->barriers[id];
    if (!r->arrived) {
        r->first = i;
        r->expected = expected;
    } else if (r->expected != expected ||
               (((const BarrierOp *)r->first->more)->action >= BAR_POPC) != (op->action >= BAR_POPC)) {
        return fault(w, i, lane, EXEC_LAUNCH_FAILED,
                     "barrier %d is waited for by %u threads here and by %u at line %d (%s)", (int)id, expected,
                     r->expected, r->first->ptx->line, r->first->ptx->text);
    }
    b->counters.barriers++;
    if (op->action >= BAR_POPC) {
        uint32_t mask = warp_mask(lanes_of(w, &op->predicate));
        r->red_count += (uint32_t)__builtin_popcount((op->predicate_negated ? ~mask : mask) & w->active);
        r->red_threads += (uint32_t)__builtin_popcount(w->active);
    }
    clock_release(w, &r->clocks);
    r->arrived += here;
    if (r->arrived > r->expected)
        return fault(w, i, lane, EXEC_LAUNCH_FAILED, "%u threads come to barrier %d, which is for %u", r->arrived,
                     (int)id, r->expected);
    if (op->action != BAR_ARRIVE) {
        w->strand->state = STRAND_AT_BARRIER;
        w->strand->barrier = (uint8_t)id;
    }
    bool last = r->arrived == r->expected;
    if (last) release(b, (int)id);
    return op->action == BAR_ARRIVE ? STEP_NEXT : last ? STEP_JUMPED : STEP_WAIT;
}

static Step run_warp_barrier(Warp *w, const Inst *i) {
    (void)i;
    w->block->counters.barriers++;
    return STEP_NEXT;
}

static Step run_fence(Warp *w, const Inst *i) {
    (void)i;
    clock_fence(w);
    return STEP_NEXT;
}

static Step run_fence_of_device(Warp *w, const Inst *i) {
    order_acquire(w, false);
    order_release(w, false);
    return run_fence(w, i);
}

static Step run_fence_sc_of_device(Warp *w, const Inst *i) {
    order_acquire(w, true);
    order_release(w, true);
    return run_fence(w, i);
}

/* ---- a block in which no warp can continue ---- */

void block_stuck(Block *b) {
    uint32_t left = 0, elsewhere = 0;
    Warp *at = NULL;
    Strand *strand = NULL;
    for (int v = 0; v < b->warp_count; v++) {
        Warp *w = &b->warps[v];
        left += (uint32_t)__builtin_popcount(w->exists & ~w->alive);
        for (int k = 0; k < w->strand_count; k++)
            if (!strand && w->strands[k].state == STRAND_AT_BARRIER) at = w, strand = &w->strands[k];
    }
    if (!at) return;
    Barrier *r = &b->barriers[strand->barrier];
    for (int v = 0; v < b->warp_count; v++)
        for (int k = 0; k < b->warps[v].strand_count; k++) {
            const Strand *s = &b->warps[v].strands[k];
            if (s->state != STRAND_AT_BARRIER || s->barrier != strand->barrier)
                elsewhere += (uint32_t)__builtin_popcount(s->active);
        }
    at->strand = strand;
    fault(at, &strand->frame->function->code[strand->pc], __builtin_ctz(strand->active), EXEC_LAUNCH_FAILED,
          "deadlock: barrier %d has %u of %u threads; not all threads of the block reach it: %u have left the kernel, "
          "%u wait elsewhere",
          strand->barrier, r->arrived, r->expected, left, elsewhere);
}

/* ---- decoding ---- */

static bool decode_warp_barrier(Decoder *d, Inst *i) {
    static const char *const known[] = {"warp", "sync", NULL};
    if (!only_modifiers(d, known) || !ptx_has(d->ptx, "sync") || d->ptx->operand_count != 1)
        return refuse(d, "no form of bar.warp");
    i->run = run_warp_barrier;
    i->sync = SYNC_MASK;
    i->kind = KIND_WARP;
    return decode_source(d, &d->ptx->operands[0], 4, &i->mask);
}

bool decode_bar(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "arrive", "red", "popc", "and", "or", "aligned", "cta", NULL};
    if (ptx_has(d->ptx, "warp")) return decode_warp_barrier(d, i);
    if (ptx_has(d->ptx, "cluster")) return refuse(d, "clusters are not supported");
    if (!only_modifiers(d, known)) return false;
    BarrierOp *op = module_new(d->function->module, sizeof *op);
    bool red = ptx_has(d->ptx, "red");
    op->aligned = !strcmp(d->ptx->opcode, "bar") || ptx_has(d->ptx, "aligned");
    op->action = !red                      ? ptx_has(d->ptx, "arrive") ? BAR_ARRIVE : BAR_SYNC
                 : ptx_has(d->ptx, "popc") ? BAR_POPC
                 : ptx_has(d->ptx, "and")  ? BAR_AND
                                           : BAR_OR;
    const PtxOperand *o = d->ptx->operands;
    int n = d->ptx->operand_count;
    if (red) {
        if (n < 3 || !decode_result(d, o, 4, &i->dst[0])) return n < 3 ? refuse(d, "too few operands") : false;
        const PtxOperand *p = &o[n - 1];
        if (p->kind == PTX_OP_NOT) op->predicate_negated = true, p = p->items;
        if (!decode_source(d, p, 4, &op->predicate)) return false;
        o++, n -= 2;
    }
    if (n < 1 || n > 2 || (op->action == BAR_ARRIVE && n != 2)) return refuse(d, "a wrong number of operands");
    op->has_count = n == 2;
    i->sync = op->aligned ? SYNC_WARP : SYNC_NONE;
    i->run = run_barrier;
    i->more = op;
    return decode_source(d, &o[0], 4, &op->barrier) && (n < 2 || decode_source(d, &o[1], 4, &op->count));
}

bool decode_fence(Decoder *d, Inst *i) {
    static const char *const known[] = {"sc",
                                        "acq_rel",
                                        "acquire",
                                        "release",
                                        "cta",
                                        "cluster",
                                        "gpu",
                                        "sys",
                                        "gl",
                                        "proxy",
                                        "async",
                                        "alias",
                                        "async.global",
                                        "global",
                                        "async::generic",
                                        "shared::cta",
                                        "shared::cluster",
                                        "mbarrier_init",
                                        "sync_restrict::shared::cta",
                                        NULL};
    if (!only_modifiers(d, known)) return false;
    /* A proxy fence orders what one thread does in two ways, not threads. */
    bool device =
        !ptx_has(d->ptx, "proxy") && (ptx_has(d->ptx, "gpu") || ptx_has(d->ptx, "sys") || ptx_has(d->ptx, "gl"));
    bool sc = ptx_has(d->ptx, "sc") || !strcmp(d->ptx->opcode, "membar");
    i->run = !device ? run_fence : sc ? run_fence_sc_of_device : run_fence_of_device;
    d->function->orders |= device;
    return true;
}
