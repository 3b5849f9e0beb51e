/* atomic.c: atom and red. */
#define _POSIX_C_SOURCE 200809L
#include "fakecuda/exec/inner.h"

#include <math.h>
#include <pthread.h>

typedef uint64_t Change(uint64_t old, uint64_t b, uint64_t c); /* of values in the low bits */

/* ---- integers and bits ---- */

static uint64_t do_add(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a + b; }
static uint64_t do_and(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a & b; }
static uint64_t do_or(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a | b; }
static uint64_t do_xor(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a ^ b; }
static uint64_t do_exch(uint64_t a, uint64_t b, uint64_t c) { return (void)a, (void)c, b; }
static uint64_t do_cas(uint64_t a, uint64_t b, uint64_t c) { return a == b ? c : a; }
static uint64_t do_inc(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a >= b ? 0 : a + 1; }
static uint64_t do_dec(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a == 0 || a > b ? b : a - 1; }
static uint64_t do_min(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a < b ? a : b; }
static uint64_t do_max(uint64_t a, uint64_t b, uint64_t c) { return (void)c, a > b ? a : b; }
static uint64_t do_min_s32(uint64_t a, uint64_t b, uint64_t c) { return (void)c, (int32_t)a < (int32_t)b ? a : b; }
static uint64_t do_max_s32(uint64_t a, uint64_t b, uint64_t c) { return (void)c, (int32_t)a > (int32_t)b ? a : b; }
static uint64_t do_min_s64(uint64_t a, uint64_t b, uint64_t c) { return (void)c, (int64_t)a < (int64_t)b ? a : b; }
static uint64_t do_max_s64(uint64_t a, uint64_t b, uint64_t c) { return (void)c, (int64_t)a > (int64_t)b ? a : b; }

/* ---- floats: to nearest; f32 flushes subnormals in global memory only ---- */

static float as_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, 4);
    return f;
}

static uint64_t float_result(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return isnan(f) ? 0x7fffffff : bits;
}

static uint64_t do_add_f32(uint64_t a, uint64_t b, uint64_t c) {
    return (void)c, float_result(as_float(a) + as_float(b));
}

static uint64_t flush(uint64_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; }
static uint64_t do_add_f32_flushed(uint64_t a, uint64_t b, uint64_t c) {
    return flush(do_add_f32(flush(a), flush(b), c));
}

static uint64_t do_add_f64(uint64_t a, uint64_t b, uint64_t c) {
    double x, y;
    (void)c;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    x += y;
    memcpy(&a, &x, 8);
    return a;
}

/* An f32 sum of two f16 (11 bits) or bf16 (8 bits), rounded again, is the sum rounded once: 24 >= 2 * 11 + 2 (Figueroa
 * 1995). */
static uint64_t do_add_f16(uint64_t a, uint64_t b, uint64_t c) {
    return (void)c, alu_f32_to_f16(alu_f16_to_f32((uint16_t)a) + alu_f16_to_f32((uint16_t)b));
}
static uint64_t do_add_bf16(uint64_t a, uint64_t b, uint64_t c) {
    return (void)c, alu_f32_to_bf16(alu_bf16_to_f32((uint16_t)a) + alu_bf16_to_f32((uint16_t)b));
}
static uint64_t do_add_f16x2(uint64_t a, uint64_t b, uint64_t c) {
    return do_add_f16(a, b, c) | do_add_f16(a >> 16, b >> 16, c) << 16;
}
static uint64_t do_add_bf16x2(uint64_t a, uint64_t b, uint64_t c) {
    return do_add_bf16(a, b, c) | do_add_bf16(a >> 16, b >> 16, c) << 16;
}

/* ---- forms ---- */

static const struct Form {
    const char *op;
    PtxType type;
    int arch;
    Change *change, *in_global; /* NULL: the same */
} forms[] = {
    {"add", PTX_U32, 0, do_add, NULL},
    {"add", PTX_S32, 0, do_add, NULL},
    {"add", PTX_U64, 0, do_add, NULL},
    {"add", PTX_F32, 0, do_add_f32, do_add_f32_flushed},
    {"add", PTX_F64, 0, do_add_f64, NULL},
    {"add", PTX_F16, 0, do_add_f16, NULL},
    {"add", PTX_F16X2, 0, do_add_f16x2, NULL},
    {"add", PTX_BF16, 90, do_add_bf16, NULL},
    {"add", PTX_BF16X2, 90, do_add_bf16x2, NULL},
    {"and", PTX_B32, 0, do_and, NULL},
    {"and", PTX_B64, 0, do_and, NULL},
    {"or", PTX_B32, 0, do_or, NULL},
    {"or", PTX_B64, 0, do_or, NULL},
    {"xor", PTX_B32, 0, do_xor, NULL},
    {"xor", PTX_B64, 0, do_xor, NULL},
    {"exch", PTX_B32, 0, do_exch, NULL},
    {"exch", PTX_B64, 0, do_exch, NULL},
    {"cas", PTX_B16, 0, do_cas, NULL},
    {"cas", PTX_B32, 0, do_cas, NULL},
    {"cas", PTX_B64, 0, do_cas, NULL},
    {"inc", PTX_U32, 0, do_inc, NULL},
    {"dec", PTX_U32, 0, do_dec, NULL},
    {"min", PTX_U32, 0, do_min, NULL},
    {"max", PTX_U32, 0, do_max, NULL},
    {"min", PTX_U64, 0, do_min, NULL},
    {"max", PTX_U64, 0, do_max, NULL},
    {"min", PTX_S32, 0, do_min_s32, NULL},
    {"max", PTX_S32, 0, do_max_s32, NULL},
    {"min", PTX_S64, 0, do_min_s64, NULL},
    {"max", PTX_S64, 0, do_max_s64, NULL},
};

typedef struct Atomic {
    const struct Form *form;
    PtxSpace space;
    Address address;
    Operand b, c;
    uint32_t size;
    bool result, orders;     /* orders: acquire, release, acq_rel */
    bool acquires, releases; /* between blocks */
    bool of_block;           /* .cta */
} Atomic;

/* ---- running ---- */

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of all atomics in global memory, where several host threads run blocks */

static bool change_bytes(Warp *w, const Inst *i, int lane, PtxSpace space, uint64_t address, uint64_t *old) {
    const Atomic *a = i->more;
    int how = ACCESS_READ | ACCESS_WRITE | ACCESS_STRONG | (a->of_block ? ACCESS_CTA : 0);
    uint8_t *bytes = access_bytes(w, i, lane, space, address, a->size, how, NULL);
    if (!bytes) return false;
    Change *change = space == PTX_GLOBAL && a->form->in_global ? a->form->in_global : a->form->change;
    uint64_t b = lane_value(w, &a->b, lane), c = a->c.bytes ? lane_value(w, &a->c, lane) : 0;
    if (a->size < 8) b &= (1ull << 8 * a->size) - 1, c &= (1ull << 8 * a->size) - 1;
    memcpy(old, bytes, a->size);
    uint64_t now = change(*old, b, c);
    bool between = space == PTX_GLOBAL && w->block->order && !a->of_block;
    if (between) order_read(w, lane, address);
    if (between && (a->form->change != do_cas || *old == b)) order_write(w, lane, address, true);
    memcpy(bytes, &now, a->size);
    if (now != *old) w->block->progress = w->block->instructions;
    if (now != *old && between) order_changed(w->block);
    return true;
}

static Step change_lane(Warp *w, const Inst *i, int lane, uint64_t address) {
    const Atomic *a = i->more;
    PtxSpace space = a->space;
    if (space == PTX_SPACE_NONE) space = access_resolve(w, &address);
    if (space != PTX_GLOBAL && space != PTX_SHARED)
        return fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "an atomic at 0x%llx, which is neither global nor shared memory",
                     (unsigned long long)address);
    bool locked = space == PTX_GLOBAL && w->block->many;
    if (locked) pthread_mutex_lock(&lock);
    uint64_t old = 0;
    bool done = change_bytes(w, i, lane, space, address, &old);
    if (locked) pthread_mutex_unlock(&lock);
    if (!done) return STEP_FAULT;
    if (a->result) set_lane(w, &i->dst[0], lane, old);
    return STEP_NEXT;
}

/* Lanes come one after another, in an order that starts anywhere. */
static Step run_atomic(Warp *w, const Inst *i) {
    const Atomic *a = i->more;
    uint64_t address[LANES];
    address_lanes(w, &a->address, address);
    uint32_t active = w->active, start = block_random(w->block) % LANES;
    uint64_t changes = w->block->order ? order_changes(w->block) : 0, polled = (uint64_t)(uintptr_t)i;
    if (a->releases) order_release(w, false);
    if (a->orders) clock_fence(w);
    for (uint32_t k = 0; k < LANES; k++) {
        uint32_t l = (start + k) % LANES;
        if (active >> l & 1 && change_lane(w, i, (int)l, address[l]) == STEP_FAULT) return STEP_FAULT;
    }
    if (w->block->order && changes == order_changes(w->block)) {
        FOR_LANES(l, active) polled = poll_mix(polled, address[l], a->result ? lane_value(w, &i->dst[0], (int)l) : 0);
        order_poll(w, polled);
    }
    w->block->counters.atomics += (uint64_t)__builtin_popcount(active);
    if (a->acquires) order_acquire(w, false);
    if (a->space == PTX_SHARED) count_shared(w->block, address, active, a->size);
    return STEP_NEXT;
}

/* ---- decoding ---- */

static const char *const known[] = {"relaxed",
                                    "acquire",
                                    "release",
                                    "acq_rel",
                                    "cta",
                                    "cluster",
                                    "gpu",
                                    "sys",
                                    "global",
                                    "shared",
                                    "shared::cta",
                                    "noftz",
                                    "L2::cache_hint",
                                    "add",
                                    "and",
                                    "or",
                                    "xor",
                                    "exch",
                                    "cas",
                                    "inc",
                                    "dec",
                                    "min",
                                    "max",
                                    NULL};

bool decode_atom(Decoder *d, Inst *i) {
    static const char *const orders[] = {"acquire", "release", "acq_rel", NULL};
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->type_count != 1) return refuse(d, "not supported");
    Atomic *a = module_new(d->function->module, sizeof *a);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].type == d->ptx->types[0] && ptx_has(d->ptx, forms[k].op)) a->form = &forms[k];
    if (!a->form) return refuse(d, "not supported");
    if (a->form->arch > d->function->module->context.arch) return refuse(d, "needs sm_%d or higher", a->form->arch);
    a->result = !strcmp(d->ptx->opcode, "atom");
    a->space = modifier_space(d);
    a->size = (uint32_t)ptx_type_bytes(d->ptx->types[0]);
    a->orders = one_modifier(d, orders) != NULL;
    a->of_block = ptx_has(d->ptx, "cta") || ptx_has(d->ptx, "cluster");
    bool between = a->space != PTX_SHARED && !a->of_block;
    a->acquires = between && (ptx_has(d->ptx, "acquire") || ptx_has(d->ptx, "acq_rel"));
    a->releases = between && (ptx_has(d->ptx, "release") || ptx_has(d->ptx, "acq_rel"));
    d->function->orders |= between && (a->orders || a->result);
    bool cas = !strcmp(a->form->op, "cas");
    const PtxOperand *o = d->ptx->operands + a->result;
    int needed = 2 + a->result + cas;
    if (d->ptx->operand_count != needed && !(ptx_has(d->ptx, "L2::cache_hint") && d->ptx->operand_count == needed + 1))
        return refuse(d, "it takes %d operands", needed);
    int bytes = a->size == 8 ? 8 : 4;
    i->run = run_atomic;
    i->more = a;
    if (a->result && !decode_result(d, &d->ptx->operands[0], bytes, &i->dst[0])) return false;
    return decode_address(d, &o[0], &a->address) && decode_source(d, &o[1], bytes, &a->b) &&
           (!cas || decode_source(d, &o[2], bytes, &a->c));
}
