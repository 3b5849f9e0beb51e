/* mbarrier.c: barriers that are objects in shared memory: 8 bytes with the phase, what has still to arrive, and bytes
 * that are announced.
 *
 * bits 0..19 pending arrivals, 20..39 expected ones, 40..61 announced bytes (two's complement), 62 whether it is one,
 * 63 the phase's parity. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

enum { COUNT_BITS = 20, TX_BITS = 22, MOST_ARRIVALS = (1 << COUNT_BITS) - 1 };

typedef struct Object {
    uint32_t pending, expected;
    int32_t tx;
    bool valid, parity;
} Object;

static Object unpack(const uint8_t *bytes) {
    uint64_t v;
    memcpy(&v, bytes, 8);
    return (Object){.pending = v & MOST_ARRIVALS,
                    .expected = v >> COUNT_BITS & MOST_ARRIVALS,
                    .tx = (int32_t)((int64_t)(v << 2) >> (2 + 2 * COUNT_BITS)),
                    .valid = v >> 62 & 1,
                    .parity = v >> 63};
}

static uint64_t pack(const Object *o) {
    return (uint64_t)o->pending | (uint64_t)o->expected << COUNT_BITS |
           ((uint64_t)(uint32_t)o->tx & ((1u << TX_BITS) - 1)) << 2 * COUNT_BITS | (uint64_t)o->valid << 62 |
           (uint64_t)o->parity << 63;
}

/* ---- order that arrivals and waits give ---- */

static Signal *signal_at(Block *b, uint32_t offset) {
    for (int k = 0; k < b->signal_count; k++)
        if (b->signals[k].offset == offset) return &b->signals[k];
    if (b->signal_count == b->signal_room) {
        b->signal_room = b->signal_room ? 2 * b->signal_room : 16;
        b->signals = realloc(b->signals, (size_t)b->signal_room * sizeof *b->signals);
        if (!b->signals) abort(); /* the host has no memory left */
    }
    Signal *s = &b->signals[b->signal_count++];
    *s = (Signal){.offset = offset};
    return s;
}

/* ---- the object ---- */

static uint8_t *object_bytes(Warp *w, const Inst *i, int lane, PtxSpace space, uint64_t *address, int how) {
    if (space == PTX_SPACE_NONE) space = access_resolve(w, address);
    if (space != PTX_SHARED)
        return fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "an mbarrier at 0x%llx, outside shared memory",
                     (unsigned long long)*address),
               NULL;
    return access_shared(w, i, lane, *address, 8, how, NULL);
}

static bool load(Warp *w, const Inst *i, int lane, PtxSpace space, uint64_t *address, uint8_t **bytes, Object *o) {
    *bytes = object_bytes(w, i, lane, space, address, ACCESS_READ | ACCESS_STRONG);
    if (!*bytes) return false;
    *o = unpack(*bytes);
    if (!o->valid)
        fault(w, i, lane, EXEC_LAUNCH_FAILED, "there is no initialised mbarrier at 0x%llx",
              (unsigned long long)*address);
    return o->valid;
}

static bool store(Warp *w, const Inst *i, int lane, uint64_t address, Object *o) {
    if (o->pending == 0 && o->tx == 0) {
        o->parity = !o->parity;
        o->pending = o->expected;
    }
    uint64_t v = pack(o);
    uint8_t *bytes = access_shared(w, i, lane, address, 8, ACCESS_WRITE | ACCESS_STRONG, NULL);
    if (!bytes) return false;
    memcpy(bytes, &v, 8);
    return true;
}

static Step arrive(Warp *w, const Inst *i, int lane, uint64_t address, Object *o, uint32_t count, bool drop) {
    if (count > o->pending)
        return fault(w, i, lane, EXEC_LAUNCH_FAILED, "%u arrivals at an mbarrier that waits for %u more in this phase",
                     count, o->pending);
    o->pending -= count;
    if (drop) o->expected -= count;
    clock_release(w, &signal_at(w->block, (uint32_t)address)->clocks);
    return store(w, i, lane, address, o) ? STEP_NEXT : STEP_FAULT;
}

/* ---- arrivals of copies ---- */

Step mbarrier_arrive_later(Warp *w, const Inst *i, const uint64_t address[LANES], PtxSpace space, bool counted) {
    Block *b = w->block;
    FOR_LANES(l, w->active) {
        uint64_t at = address[l];
        uint8_t *bytes;
        Object o;
        if (!load(w, i, (int)l, space, &at, &bytes, &o)) return STEP_FAULT;
        if (!counted) {
            o.pending++;
            if (!store(w, i, (int)l, at, &o)) return STEP_FAULT;
        }
        if (b->deferred_count == b->deferred_room) {
            b->deferred_room = b->deferred_room ? 2 * b->deferred_room : 64;
            b->deferred = realloc(b->deferred, (size_t)b->deferred_room * sizeof *b->deferred);
            if (!b->deferred) abort(); /* the host has no memory left */
        }
        b->deferred[b->deferred_count++] =
            (Deferred){.offset = (uint32_t)at, .lanes = 1u << l, .before = w->copies_made, .warp = w};
    }
    return STEP_NEXT;
}

/* The copies that these arrivals wait for are done now. */
static Step fire_deferred(Warp *w, const Inst *i, uint32_t offset) {
    Block *b = w->block;
    int kept = 0;
    Step step = STEP_NEXT;
    for (int k = 0; k < b->deferred_count; k++) {
        Deferred d = b->deferred[k];
        if (d.offset != offset || step == STEP_FAULT) {
            b->deferred[kept++] = d;
            continue;
        }
        async_complete_before(d.warp, d.lanes, d.before);
        Object o = unpack(b->shared + offset);
        step = arrive(d.warp, i, __builtin_ctz(d.lanes), offset, &o, 1, false);
    }
    b->deferred_count = kept;
    return step;
}

/* ---- instructions ---- */

typedef enum Action { INIT, INVAL, ARRIVE, ARRIVE_DROP, EXPECT_TX, COMPLETE_TX, WAIT, ACTIONS } Action;

typedef struct MbarrierOp {
    PtxSpace space;
    Address address;
    Operand argument, expect;
    Action action;
    bool parity, result, announces;
} MbarrierOp;

static Step run_init(Warp *w, const Inst *i, int lane, uint64_t address) {
    const MbarrierOp *op = i->more;
    uint32_t count = (uint32_t)lane_value(w, &op->argument, lane);
    if (count < 1 || count > MOST_ARRIVALS)
        return fault(w, i, lane, EXEC_LAUNCH_FAILED, "an mbarrier for %u arrivals", count);
    uint64_t at = address, value = pack(&(Object){.pending = count, .expected = count, .valid = true});
    uint8_t *bytes = object_bytes(w, i, lane, op->space, &at, ACCESS_WRITE);
    if (!bytes) return STEP_FAULT;
    memcpy(bytes, &value, 8);
    signal_at(w->block, (uint32_t)at)->clocks = (Clocks){0};
    return STEP_NEXT;
}

static Step run_inval(Warp *w, const Inst *i, int lane, uint64_t address) {
    const MbarrierOp *op = i->more;
    uint8_t *bytes;
    Object o;
    if (!load(w, i, lane, op->space, &address, &bytes, &o) ||
        !access_shared(w, i, lane, address, 8, ACCESS_WRITE, NULL))
        return STEP_FAULT;
    memset(bytes, 0, 8);
    memset(w->block->shared_written + address, 0, 8);
    return STEP_NEXT;
}

static Step run_arrive(Warp *w, const Inst *i, int lane, uint64_t address) {
    const MbarrierOp *op = i->more;
    uint8_t *bytes;
    Object o;
    if (!load(w, i, lane, op->space, &address, &bytes, &o)) return STEP_FAULT;
    uint64_t before = pack(&o);
    uint32_t count = op->argument.bytes && !op->announces ? (uint32_t)lane_value(w, &op->argument, lane) : 1;
    if (op->announces) o.tx += (int32_t)lane_value(w, &op->argument, lane);
    if (op->result) set_lane(w, &i->dst[0], lane, before);
    return arrive(w, i, lane, address, &o, count, op->action == ARRIVE_DROP);
}

static Step run_tx(Warp *w, const Inst *i, int lane, uint64_t address) {
    const MbarrierOp *op = i->more;
    uint8_t *bytes;
    Object o;
    if (!load(w, i, lane, op->space, &address, &bytes, &o)) return STEP_FAULT;
    int32_t count = (int32_t)lane_value(w, &op->argument, lane);
    o.tx += op->action == EXPECT_TX ? count : -count;
    return store(w, i, lane, address, &o) ? STEP_NEXT : STEP_FAULT;
}

static Step run_wait(Warp *w, const Inst *i, int lane, uint64_t address) {
    const MbarrierOp *op = i->more;
    uint8_t *bytes;
    Object o;
    uint64_t at = address;
    if (!load(w, i, lane, op->space, &at, &bytes, &o)) return STEP_FAULT;
    if (block_random(w->block) & 1 && fire_deferred(w, i, (uint32_t)at) == STEP_FAULT) return STEP_FAULT;
    o = unpack(bytes);
    uint64_t argument = lane_value(w, &op->argument, lane);
    bool waited = op->parity ? argument & 1 : argument >> 63, done = o.parity != waited;
    if (done) clock_acquire(w, &signal_at(w->block, (uint32_t)at)->clocks);
    set_lane(w, &i->dst[0], lane, done);
    return STEP_NEXT;
}

static Step run_mbarrier(Warp *w, const Inst *i) {
    typedef Step LaneFn(Warp *, const Inst *, int, uint64_t);
    static LaneFn *const actions[ACTIONS] = {run_init, run_inval, run_arrive, run_arrive, run_tx, run_tx, run_wait};
    const MbarrierOp *op = i->more;
    uint64_t address[LANES];
    address_lanes(w, &op->address, address);
    FOR_LANES(l, w->active)
    if (actions[op->action](w, i, (int)l, address[l]) == STEP_FAULT) return STEP_FAULT;
    return STEP_NEXT;
}

/* ---- decoding ---- */

static bool find_action(Decoder *d, MbarrierOp *op) {
    static const struct {
        const char *name;
        Action action;
        int arch;
    } names[] = {{"init", INIT, 80},           {"inval", INVAL, 80},
                 {"arrive", ARRIVE, 80},       {"arrive_drop", ARRIVE_DROP, 80},
                 {"expect_tx", EXPECT_TX, 90}, {"complete_tx", COMPLETE_TX, 90},
                 {"test_wait", WAIT, 80},      {"try_wait", WAIT, 90}};
    const char *first = d->ptx->modifier_count ? d->ptx->modifiers[0] : "";
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(first, names[k].name)) continue;
        op->action = names[k].action;
        op->announces = op->action == ARRIVE && ptx_has(d->ptx, "expect_tx");
        int arch = op->announces ? 90 : names[k].arch;
        return d->function->module->context.arch >= arch || refuse(d, "needs sm_%d or higher", arch);
    }
    return refuse(d, "not supported");
}

bool decode_mbarrier(Decoder *d, Inst *i) {
    static const char *const known[] = {"init",      "inval",    "arrive", "arrive_drop", "expect_tx",   "complete_tx",
                                        "test_wait", "try_wait", "parity", "shared",      "shared::cta", "release",
                                        "acquire",   "relaxed",  "cta",    "cluster",     NULL};
    MbarrierOp *op = module_new(d->function->module, sizeof *op);
    if (!find_action(d, op) || !only_modifiers(d, known)) return false;
    op->space = modifier_space(d);
    op->parity = ptx_has(d->ptx, "parity");
    i->run = run_mbarrier;
    i->more = op;
    const PtxOperand *o = d->ptx->operands, *end = o + d->ptx->operand_count;
    bool has_result = op->action == ARRIVE || op->action == ARRIVE_DROP || op->action == WAIT;
    if (has_result && o < end && o->kind != PTX_OP_ADDRESS) {
        op->result = true;
        if (!decode_result(d, o++, op->action == WAIT ? 4 : 8, &i->dst[0])) return false;
    }
    if (op->action == WAIT && !op->result) return refuse(d, "it gives a predicate");
    if (o == end || !decode_address(d, o++, &op->address)) return o == end ? refuse(d, "an address is needed") : false;
    int bytes = op->action == WAIT && !op->parity ? 8 : 4;
    if (o < end && !decode_source(d, o++, bytes, &op->argument)) return false;
    bool optional = op->action == INVAL || ((op->action == ARRIVE || op->action == ARRIVE_DROP) && !op->announces);
    if (!op->argument.bytes && !optional) return refuse(d, "too few operands");
    return true;
}
