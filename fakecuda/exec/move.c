/* move.c: mov of vectors, addresses and clocks; cvta; isspacep. */
#include "fakecuda/exec/inner.h"

enum { MOST_PARTS = 8 };

typedef struct Pack {
    Operand whole, parts[MOST_PARTS];
    int count, bits; /* of a part */
    bool used[MOST_PARTS];
} Pack;

/* ---- mov.b32 {lo, hi}, r;  mov.b32 r, {lo, hi}; ---- */

static Step run_unpack(Warp *w, const Inst *i) {
    const Pack *p = i->more;
    FOR_LANES(l, w->active) {
        uint64_t v = lane_value(w, &p->whole, (int)l);
        for (int k = 0; k < p->count; k++)
            if (p->used[k])
                set_lane(w, &p->parts[k], (int)l, p->bits == 64 ? v : v >> (k * p->bits) & ((1ull << p->bits) - 1));
    }
    return STEP_NEXT;
}

static Step run_pack(Warp *w, const Inst *i) {
    const Pack *p = i->more;
    FOR_LANES(l, w->active) {
        uint64_t v = 0;
        for (int k = 0; k < p->count; k++)
            v |= (lane_value(w, &p->parts[k], (int)l) & ((1ull << p->bits) - 1)) << (k * p->bits);
        set_lane(w, &p->whole, (int)l, v);
    }
    return STEP_NEXT;
}

static bool decode_pack(Decoder *d, Inst *i, const PtxOperand *vector, const PtxOperand *whole, bool unpack) {
    Pack *p = module_new(d->function->module, sizeof *p);
    int bits = d->ptx->type_count ? 8 * ptx_type_bytes(d->ptx->types[0]) : 0;
    if (bits != 16 && bits != 32 && bits != 64) return refuse(d, "not supported");
    p->count = vector->count;
    if (p->count != 2 && p->count != 4) return refuse(d, "a vector of %d parts", p->count);
    p->bits = bits / p->count;
    int bytes = bits == 64 ? 8 : 4;
    if (!(unpack ? decode_source : decode_result)(d, whole, bytes, &p->whole)) return false;
    for (int k = 0; k < p->count; k++) {
        const PtxOperand *part = &vector->items[k];
        p->used[k] = part->kind != PTX_OP_SINK;
        if (!p->used[k] && unpack) continue;
        if (!(unpack ? decode_result : decode_source)(d, part, 4, &p->parts[k])) return false;
    }
    i->run = unpack ? run_unpack : run_pack;
    i->more = p;
    return true;
}

/* ---- values that are known only while running ---- */

typedef struct LocalAddress {
    uint64_t offset;
} LocalAddress;

static Step run_local_address(Warp *w, const Inst *i) {
    const LocalAddress *a = i->more;
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, w->strand->frame->local_base + a->offset);
    return STEP_NEXT;
}

static bool decode_local_address(Decoder *d, Inst *i, const PtxOperand *o) {
    LocalAddress *a = module_new(d->function->module, sizeof *a);
    if (!decode_variable(d, o->variable, &a->offset)) return false;
    a->offset += (uint64_t)o->offset;
    i->run = run_local_address;
    i->more = a;
    return decode_result(d, &d->ptx->operands[0], 0, &i->dst[0]);
}

/* A clock that ticks once per instruction of the block. */
static Step run_clock(Warp *w, const Inst *i) {
    uint64_t now = w->block->instructions;
    int which = (int)(intptr_t)i->more;
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, which == PTX_CLOCK_HI ? now >> 32 : now);
    return STEP_NEXT;
}

bool decode_mov(Decoder *d, Inst *i) {
    if (d->ptx->operand_count != 2) return refuse(d, "it takes 2 operands");
    const PtxOperand *to = &d->ptx->operands[0], *from = &d->ptx->operands[1];
    if (to->kind == PTX_OP_VECTOR && from->kind == PTX_OP_VECTOR) return refuse(d, "a vector from a vector");
    if (to->kind == PTX_OP_VECTOR) return decode_pack(d, i, to, from, true);
    if (from->kind == PTX_OP_VECTOR) return decode_pack(d, i, from, to, false);
    if (from->kind == PTX_OP_VARIABLE && from->variable && from->variable->space == PTX_LOCAL)
        return decode_local_address(d, i, from);
    if (from->kind == PTX_OP_SPECIAL) {
        bool clock = from->index == PTX_CLOCK || from->index == PTX_CLOCK64 || from->index == PTX_CLOCK_HI ||
                     from->index == PTX_GLOBALTIMER;
        i->more = (const void *)(intptr_t)from->index;
        if (clock) return i->run = run_clock, decode_result(d, to, 0, &i->dst[0]);
    }
    return decode_alu(d, i);
}

/* ---- generic addresses ---- */

static uint64_t window_of(PtxSpace space) {
    return space == PTX_SHARED  ? WINDOW_SHARED
           : space == PTX_LOCAL ? WINDOW_LOCAL
           : space == PTX_PARAM ? WINDOW_PARAM
                                : 0;
}

typedef struct Convert {
    Operand from;
    uint64_t add;
    PtxSpace space;
} Convert;

static Step run_cvta(Warp *w, const Inst *i) {
    const Convert *c = i->more;
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, lane_value(w, &c->from, (int)l) + c->add);
    return STEP_NEXT;
}

bool decode_cvta(Decoder *d, Inst *i) {
    static const char *const known[] = {"to",    "global", "shared",       "shared::cta", "local",
                                        "const", "param",  "param::entry", NULL};
    Convert *c = module_new(d->function->module, sizeof *c);
    PtxSpace space = modifier_space(d);
    if (!only_modifiers(d, known) || space == PTX_SPACE_NONE || d->ptx->operand_count != 2)
        return refuse(d, "no form of cvta that is known");
    if (d->ptx->types[0] != PTX_U64) return refuse(d, "addresses have 64 bits");
    uint64_t window = window_of(space), base = window ? d->function->module->memory->base + window : 0;
    c->add = ptx_has(d->ptx, "to") ? 0 - base : base;
    i->run = run_cvta;
    i->more = c;
    const PtxOperand *from = &d->ptx->operands[1];
    if (from->kind == PTX_OP_VARIABLE && from->variable && from->variable->space == PTX_LOCAL)
        return refuse(d, "not supported: cvta of a local variable");
    return decode_result(d, &d->ptx->operands[0], 8, &i->dst[0]) && decode_source(d, from, 8, &c->from);
}

static Step run_isspacep(Warp *w, const Inst *i) {
    const Convert *c = i->more;
    FOR_LANES(l, w->active) {
        uint64_t address = lane_value(w, &c->from, (int)l);
        set_lane(w, &i->dst[0], (int)l, access_resolve(w, &address) == c->space);
    }
    return STEP_NEXT;
}

bool decode_isspacep(Decoder *d, Inst *i) {
    Convert *c = module_new(d->function->module, sizeof *c);
    c->space = modifier_space(d);
    if (c->space == PTX_SPACE_NONE || c->space == PTX_CONST || d->ptx->operand_count != 2)
        return refuse(d, "not supported");
    i->run = run_isspacep;
    i->more = c;
    return decode_result(d, &d->ptx->operands[0], 4, &i->dst[0]) && decode_source(d, &d->ptx->operands[1], 8, &c->from);
}
