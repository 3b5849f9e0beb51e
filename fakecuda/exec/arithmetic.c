/* arithmetic.c: instructions of alu/: operands as it wants them, results as the register takes them. */
#include "fakecuda/exec/inner.h"

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
