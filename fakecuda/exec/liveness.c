/* liveness.c: how many 32-bit registers a function needs at once: an estimate of what ptxas would use, from below in
 * that it knows no alignment or scheduling, from above in that it rematerialises nothing. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

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
