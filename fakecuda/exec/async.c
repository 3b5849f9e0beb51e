/* async.c: cp.async: copies from global to shared memory that are only there when their thread has waited for them.
 *
 * The bytes move at the issue or at the wait, whichever the seed says; between the two no thread may touch the
 * destination. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

typedef struct AsyncCopy {
    Address to, from;
    Operand amount; /* source size, or the predicate that says ignore; bytes 0: all */
    bool ignore;
    uint8_t size;
} AsyncCopy;

/* ---- copies under way ---- */

static void move_lane(Warp *w, const Copy *c, uint32_t l) {
    Block *b = w->block;
    uint8_t *to = b->shared + c->to[l];
    memcpy(to, b->memory->bytes + (c->from[l] - b->memory->base), c->bytes[l]);
    memset(to + c->bytes[l], 0, (size_t)(c->size - c->bytes[l]));
}

static void complete(Warp *w, Copy *c, uint32_t lanes) {
    FOR_LANES(l, lanes & c->lanes) {
        if (!c->moved) move_lane(w, c, l);
        race_end_copy(w, (int)l, c->to[l], c->size);
    }
    c->lanes &= ~lanes;
}

static void drop_completed(Warp *w) {
    int kept = 0;
    for (int k = 0; k < w->copy_count; k++) {
        if (!w->copies[k].lanes) continue;
        if (kept != k) w->copies[kept] = w->copies[k];
        kept++;
    }
    w->copy_count = kept;
}

void async_complete_before(Warp *w, uint32_t lanes, uint32_t number) {
    for (int k = 0; k < w->copy_count; k++)
        if (w->copies[k].number < number) complete(w, &w->copies[k], lanes);
    drop_completed(w);
}

static Copy *new_copy(Warp *w) {
    if (w->copy_count == w->copy_room) {
        int room = w->copy_room ? 2 * w->copy_room : 16;
        Copy *grown = realloc(w->copies, (size_t)room * sizeof *grown);
        if (!grown) abort(); /* the host has no memory left */
        w->copies = grown;
        w->copy_room = room;
    }
    Copy *c = &w->copies[w->copy_count++];
    *c = (Copy){.number = w->copies_made++};
    return c;
}

/* ---- cp.async ---- */

/* How many bytes lane l reads; < 0: a fault. */
static int source_bytes(Warp *w, const Inst *i, int l) {
    const AsyncCopy *a = i->more;
    if (!a->amount.bytes) return a->size;
    uint64_t v = lane_value(w, &a->amount, l);
    if (a->ignore) return v ? 0 : a->size;
    if ((uint32_t)v <= a->size) return (int)(uint32_t)v;
    fault(w, i, l, EXEC_LAUNCH_FAILED, "a source of %u bytes is larger than the copy of %d", (uint32_t)v, a->size);
    return -1;
}

/* Source bytes may be any number up to 16: checked in pieces that are powers of two. */
static bool check_source(Warp *w, const Inst *i, int l, uint64_t from, int bytes, int size) {
    if (from % (uint64_t)size) {
        fault(w, i, l, EXEC_MISALIGNED, "copies from 0x%llx, which is not aligned to %d bytes",
              (unsigned long long)from, size);
        return false;
    }
    for (int piece = 16; piece; piece /= 2)
        if (bytes & piece) {
            if (!access_global(w, i, l, from, (uint32_t)piece, ACCESS_READ, NULL)) return false;
            from += (uint64_t)piece;
        }
    return true;
}

static Step run_copy(Warp *w, const Inst *i) {
    const AsyncCopy *a = i->more;
    uint64_t to[LANES], from[LANES];
    uint32_t asking = 0;
    address_lanes(w, &a->to, to);
    address_lanes(w, &a->from, from);
    Copy *c = new_copy(w);
    c->size = a->size;
    c->moved = block_random(w->block) & 1;
    FOR_LANES(l, w->active) {
        int bytes = source_bytes(w, i, (int)l);
        if (bytes < 0 || !check_source(w, i, (int)l, from[l], bytes, a->size)) return STEP_FAULT;
        if (!access_shared(w, i, (int)l, to[l], a->size, ACCESS_WRITE | ACCESS_COPY, NULL)) return STEP_FAULT;
        c->from[l] = bytes ? from[l] : w->block->memory->base;
        c->to[l] = (uint32_t)to[l];
        c->bytes[l] = (uint8_t)bytes;
        c->group[l] = w->groups[l];
        c->lanes |= 1u << l;
        asking |= (uint32_t)(bytes > 0) << l;
        w->block->counters.async_bytes += (uint64_t)bytes;
        if (c->moved) move_lane(w, c, l);
    }
    if (asking) count_global(w->block, from, asking, a->size, false);
    count_shared(w->block, to, w->active, a->size);
    return STEP_NEXT;
}

static Step run_commit(Warp *w, const Inst *i) {
    (void)i;
    FOR_LANES(l, w->active) w->groups[l]++;
    return STEP_NEXT;
}

static Step run_wait_group(Warp *w, const Inst *i) {
    uint32_t pending = (uint32_t)(uintptr_t)i->more;
    for (int k = 0; k < w->copy_count; k++) {
        Copy *c = &w->copies[k];
        uint32_t done = 0;
        FOR_LANES(l, w->active & c->lanes) done |= (uint32_t)((uint64_t)c->group[l] + pending < w->groups[l]) << l;
        complete(w, c, done);
    }
    drop_completed(w);
    return STEP_NEXT;
}

static Step run_wait_all(Warp *w, const Inst *i) {
    run_commit(w, i);
    async_complete_before(w, w->active, UINT32_MAX);
    return STEP_NEXT;
}

/* ---- cp.async.mbarrier.arrive ---- */

typedef struct Notice {
    PtxSpace space;
    Address address;
    bool counted;
} Notice;

static Step run_notice(Warp *w, const Inst *i) {
    const Notice *n = i->more;
    uint64_t address[LANES];
    address_lanes(w, &n->address, address);
    return mbarrier_arrive_later(w, i, address, n->space, n->counted);
}

/* ---- decoding ---- */

static bool decode_notice(Decoder *d, Inst *i) {
    static const char *const known[] = {"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", NULL};
    if (!only_modifiers(d, known) || d->ptx->operand_count != 1) return refuse(d, "no form that is known");
    Notice *n = module_new(d->function->module, sizeof *n);
    n->space = modifier_space(d);
    n->counted = ptx_has(d->ptx, "noinc");
    i->run = run_notice;
    i->more = n;
    return decode_address(d, &d->ptx->operands[0], &n->address);
}

static bool decode_copy(Decoder *d, Inst *i) {
    static const char *const known[] = {"async",          "ca",      "cg",       "shared",   "shared::cta", "global",
                                        "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", NULL};
    if (!only_modifiers(d, known)) return false;
    const PtxOperand *o = d->ptx->operands;
    int n = d->ptx->operand_count - (ptx_has(d->ptx, "L2::cache_hint") ? 1 : 0);
    if (n < 3 || n > 4 || o[2].kind != PTX_OP_INTEGER) return refuse(d, "it takes [to], [from], bytes");
    uint64_t size = o[2].bits;
    bool cg = ptx_has(d->ptx, "cg");
    if (size != 16 && (cg || (size != 4 && size != 8)))
        return refuse(d, "it copies %s bytes", cg ? "16" : "4, 8 or 16");
    AsyncCopy *a = module_new(d->function->module, sizeof *a);
    a->size = (uint8_t)size;
    i->run = run_copy;
    i->more = a;
    if (n == 4) {
        const PtxOperand *amount = &o[3];
        a->ignore = amount->kind == PTX_OP_REGISTER && d->function->ptx->registers[amount->index].type == PTX_PRED;
        if (!decode_source(d, amount, 4, &a->amount)) return false;
    }
    return decode_address(d, &o[0], &a->to) && decode_address(d, &o[1], &a->from);
}

bool decode_cp(Decoder *d, Inst *i) {
    if (!d->ptx->modifier_count || strcmp(d->ptx->modifiers[0], "async") || ptx_has(d->ptx, "bulk"))
        return refuse(d, "not supported");
    if (d->function->module->context.arch < 80) return refuse(d, "needs sm_80 or higher");
    if (ptx_has(d->ptx, "mbarrier")) return decode_notice(d, i);
    if (ptx_has(d->ptx, "commit_group")) return i->run = run_commit, true;
    if (ptx_has(d->ptx, "wait_all")) return i->run = run_wait_all, true;
    if (!ptx_has(d->ptx, "wait_group")) return decode_copy(d, i);
    if (d->ptx->operand_count != 1 || d->ptx->operands[0].kind != PTX_OP_INTEGER) return refuse(d, "it takes a number");
    i->run = run_wait_group;
    i->more = (const void *)(uintptr_t)d->ptx->operands[0].bits;
    return true;
}
