/* register_ops.c: instructions on registers alone: calls of alu/, and mov of vectors, addresses and clocks; cvta;
 * isspacep.
 */
#include "fakecuda/exec/inner.h"

/* ---- instructions of alu/ ---------------------------------------------------------------------------------------- */

/* Operands as it wants them, results as the register takes them. */

static Kind kind_named(const char *name) {
    for (int k = 0; k < KIND_LOAD; k++)
        if (!strcmp(exec_kind_names[k], name)) return (Kind)k;
    return KIND_INT;
}

/* Where operands are not what the operation takes: copies before and after it. */
static Step run_fixed(Warp *w, const Inst *i) {
    const AluOp *op = i->more;
    const void *src[4];
    for (int k = 0; k < 4; k++) {
        uint64_t *temp = w->lanes->temp[k];
        src[k] = lanes_of(w, &i->src[k]);
        if (i->fix_narrow >> k & 1) {
            for (int l = 0; l < LANES; l++) ((uint32_t *)temp)[l] = (uint32_t)((const uint64_t *)src[k])[l];
            src[k] = temp;
        } else if (i->fix_not >> k & 1) {
            for (int l = 0; l < LANES; l++) ((uint32_t *)temp)[l] = !((const uint32_t *)src[k])[l];
            src[k] = temp;
        }
    }
    void *dst[2] = {i->fix_result ? w->lanes->temp[4] : lanes_of(w, &i->dst[0]),
                    i->dst[1].bytes ? lanes_of(w, &i->dst[1]) : NULL};
    op->run(&w->block->module->context, op, dst, src, w->active);
    if (!i->fix_result) return STEP_NEXT;
    int shift = 64 - op->dst_bits;
    FOR_LANES(l, w->active) {
        uint64_t v = op->dst_bytes[0] == 8 ? ((const uint64_t *)dst[0])[l] : ((const uint32_t *)dst[0])[l];
        v = op->dst_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
        set_lane(w, &i->dst[0], (int)l, v);
    }
    return STEP_NEXT;
}

static bool decode_results(Decoder *d, Inst *i, const AluOp *op) {
    const PtxOperand *o = &d->ptx->operands[0];
    if (o->kind == PTX_OP_PAIR) {
        if (!op->dst_bytes[1] || op->carry_out) return refuse(d, "it has one result");
        if (!decode_result(d, &o->items[1], op->dst_bytes[1], &i->dst[1])) return false;
        o = &o->items[0];
    }
    if (op->carry_out) i->dst[1] = d->function->carry;
    if (o->kind == PTX_OP_SINK) return decode_result(d, o, 8, &i->dst[0]);
    if (!decode_result(d, o, 0, &i->dst[0])) return false;
    if (i->dst[0].width < op->dst_bits)
        return refuse(d, "the register has %d bits, the result %d", i->dst[0].width, op->dst_bits);
    i->fix_result = i->dst[0].bytes != op->dst_bytes[0] || (i->dst[0].width > op->dst_bits && op->dst_signed);
    return true;
}

static bool decode_alu_source(Decoder *d, Inst *i, const AluOp *op, int k) {
    const PtxOperand *o = &d->ptx->operands[1 + k];
    if (o->kind == PTX_OP_NOT) {
        i->fix_not |= (uint8_t)(1 << k);
        o = o->items;
    }
    bool wide = o->kind == PTX_OP_REGISTER && d->function->registers[o->index].bytes == 8 && op->source_bytes[k] == 4;
    if (wide) i->fix_narrow |= (uint8_t)(1 << k);
    return decode_source(d, o, wide ? 8 : op->source_bytes[k], &i->src[k]);
}

bool decode_alu(Decoder *d, Inst *i) {
    AluOp *op = module_new(d->function->module, sizeof *op);
    const char *why = NULL;
    int found = alu_find(&d->function->module->context, d->ptx->full, op, &why);
    if (found) return refuse(d, "%s", found == -1 || !why ? "not supported" : why);
    if (d->ptx->operand_count != op->sources + 1) return refuse(d, "it takes %d operands", op->sources + 1);
    if (!decode_results(d, i, op)) return false;
    for (int k = 0; k < op->sources; k++)
        if (!decode_alu_source(d, i, op, k)) return false;
    if (op->carry_in) i->src[3] = d->function->carry;
    i->kind = (uint8_t)kind_named(op->kind);
    i->flops = op->flops;
    i->more = op;
    if (i->fix_not || i->fix_narrow || i->fix_result) i->run = run_fixed;
    else i->alu = op;
    return true;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

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
