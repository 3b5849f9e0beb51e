/* exchange.c: what the lanes of a warp tell each other: shfl, vote, match, redux, elect, activemask. */
#include "fakecuda/exec/inner.h"

/* ---- shfl.sync ---- */

typedef enum ShuffleMode { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX } ShuffleMode;

typedef struct Shuffle {
    ShuffleMode mode;
    Operand value, lane, clamp;
} Shuffle;

static Step run_shfl(Warp *w, const Inst *i) {
    const Shuffle *s = i->more;
    uint32_t in[LANES];
    const uint32_t *b = lanes_of(w, &s->lane), *c = lanes_of(w, &s->clamp);
    memcpy(in, lanes_of(w, &s->value), sizeof in);
    uint32_t valid[LANES] = {0}, out[LANES] = {0};
    FOR_LANES(l, w->active) {
        int lane = (int)l, by = (int)(b[l] & 31), segment = (int)(c[l] >> 8 & 31), clamp = (int)(c[l] & 31);
        int least = lane & segment, most = least | (clamp & ~segment & 31), j;
        bool p;
        switch (s->mode) {
        case SHFL_UP: j = lane - by, p = j >= most; break;
        case SHFL_DOWN: j = lane + by, p = j <= most; break;
        case SHFL_BFLY: j = lane ^ by, p = j <= most; break;
        default: j = least | (by & ~segment & 31), p = j <= most;
        }
        if (!p) j = lane;
        if (!(w->active >> j & 1))
            return fault(w, i, lane, EXEC_LAUNCH_FAILED, "reads lane %d, which is inactive or outside the mask 0x%08x",
                         j, ((const uint32_t *)lanes_of(w, &i->mask))[l]);
        out[l] = in[j];
        valid[l] = p;
    }
    FOR_LANES(l, w->active) {
        set_lane(w, &i->dst[0], (int)l, out[l]);
        if (i->dst[1].bytes) set_lane(w, &i->dst[1], (int)l, valid[l]);
    }
    return STEP_NEXT;
}

/* d or d|p */
static bool decode_pair(Decoder *d, Inst *i, int bytes) {
    const PtxOperand *o = &d->ptx->operands[0];
    if (o->kind != PTX_OP_PAIR) return decode_result(d, o, bytes, &i->dst[0]);
    return decode_result(d, &o->items[0], bytes, &i->dst[0]) && decode_result(d, &o->items[1], 4, &i->dst[1]);
}

bool decode_shfl(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "up", "down", "bfly", "idx", NULL}, *const modes[] = {"up", "down",
                                                                                                      "bfly", "idx",
                                                                                                      NULL};
    const char *mode = one_modifier(d, modes);
    if (!only_modifiers(d, known)) return false;
    if (!mode || !ptx_has(d->ptx, "sync") || d->ptx->operand_count != 5)
        return refuse(d, "only shfl.sync with five operands is known");
    Shuffle *s = module_new(d->function->module, sizeof *s);
    s->mode = !strcmp(mode, "up")     ? SHFL_UP
              : !strcmp(mode, "down") ? SHFL_DOWN
              : !strcmp(mode, "bfly") ? SHFL_BFLY
                                      : SHFL_IDX;
    i->run = run_shfl;
    i->sync = SYNC_MASK;
    i->more = s;
    const PtxOperand *o = d->ptx->operands;
    return decode_pair(d, i, 4) && decode_source(d, &o[1], 4, &s->value) && decode_source(d, &o[2], 4, &s->lane) &&
           decode_source(d, &o[3], 4, &s->clamp) && decode_source(d, &o[4], 4, &i->mask);
}

/* ---- vote.sync, activemask, elect.sync ---- */

typedef enum VoteMode { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT } VoteMode;

typedef struct Vote {
    VoteMode mode;
    bool negated;
    Operand predicate;
} Vote;

static Step run_vote(Warp *w, const Inst *i) {
    const Vote *v = i->more;
    uint32_t mask = warp_mask(lanes_of(w, &v->predicate)), yes = (v->negated ? ~mask : mask) & w->active, result;
    switch (v->mode) {
    case VOTE_ALL: result = yes == w->active; break;
    case VOTE_ANY: result = yes != 0; break;
    case VOTE_UNI: result = yes == 0 || yes == w->active; break;
    default: result = yes;
    }
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, result);
    return STEP_NEXT;
}

bool decode_vote(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "all", "any", "uni", "ballot", NULL}, *const modes[] = {"all", "any",
                                                                                                        "uni", "ballot",
                                                                                                        NULL};
    const char *mode = one_modifier(d, modes);
    if (!only_modifiers(d, known)) return false;
    if (!mode || !ptx_has(d->ptx, "sync") || d->ptx->operand_count != 3)
        return refuse(d, "only vote.sync with three operands is known");
    Vote *v = module_new(d->function->module, sizeof *v);
    v->mode = !strcmp(mode, "all")   ? VOTE_ALL
              : !strcmp(mode, "any") ? VOTE_ANY
              : !strcmp(mode, "uni") ? VOTE_UNI
                                     : VOTE_BALLOT;
    const PtxOperand *o = d->ptx->operands, *p = &o[1];
    if (p->kind == PTX_OP_NOT) v->negated = true, p = p->items;
    if (p->kind == PTX_OP_INTEGER) return refuse(d, "a vote on a constant: not supported");
    i->run = run_vote;
    i->sync = SYNC_MASK;
    i->more = v;
    return decode_result(d, &o[0], 4, &i->dst[0]) && decode_source(d, p, 4, &v->predicate) &&
           decode_source(d, &o[2], 4, &i->mask);
}

static Step run_activemask(Warp *w, const Inst *i) {
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, w->active);
    return STEP_NEXT;
}

bool decode_activemask(Decoder *d, Inst *i) {
    i->run = run_activemask;
    return d->ptx->operand_count == 1 && decode_result(d, &d->ptx->operands[0], 4, &i->dst[0]);
}

static Step run_elect(Warp *w, const Inst *i) {
    uint32_t leader = (uint32_t)__builtin_ctz(w->active);
    FOR_LANES(l, w->active) {
        set_lane(w, &i->dst[0], (int)l, leader);
        if (i->dst[1].bytes) set_lane(w, &i->dst[1], (int)l, l == leader);
    }
    return STEP_NEXT;
}

bool decode_elect(Decoder *d, Inst *i) {
    if (d->function->module->context.arch < 90) return refuse(d, "needs sm_90 or higher");
    if (d->ptx->operand_count != 2) return refuse(d, "it takes two operands");
    i->run = run_elect;
    i->sync = SYNC_MASK;
    return decode_pair(d, i, 4) && decode_source(d, &d->ptx->operands[1], 4, &i->mask);
}

/* ---- match.sync ---- */

typedef struct Match {
    bool all;
    Operand value;
} Match;

static Step run_match(Warp *w, const Inst *i) {
    const Match *m = i->more;
    uint32_t equal[LANES];
    bool same = true;
    FOR_LANES(l, w->active) {
        uint64_t mine = lane_value(w, &m->value, (int)l);
        equal[l] = 0;
        FOR_LANES(k, w->active) equal[l] |= (uint32_t)(lane_value(w, &m->value, (int)k) == mine) << k;
        same = same && equal[l] == w->active;
    }
    FOR_LANES(l, w->active) {
        set_lane(w, &i->dst[0], (int)l, !m->all ? equal[l] : same ? w->active : 0);
        if (i->dst[1].bytes) set_lane(w, &i->dst[1], (int)l, same);
    }
    return STEP_NEXT;
}

bool decode_match(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "all", "any", NULL};
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->operand_count != 3 || d->ptx->type_count != 1) return refuse(d, "it takes three operands");
    Match *m = module_new(d->function->module, sizeof *m);
    m->all = ptx_has(d->ptx, "all");
    i->run = run_match;
    i->sync = SYNC_MASK;
    i->more = m;
    return decode_pair(d, i, 4) &&
           decode_source(d, &d->ptx->operands[1], ptx_type_bytes(d->ptx->types[0]), &m->value) &&
           decode_source(d, &d->ptx->operands[2], 4, &i->mask);
}

/* ---- redux.sync ---- */

typedef uint32_t Fold(uint32_t a, uint32_t b);
static uint32_t fold_add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t fold_and(uint32_t a, uint32_t b) { return a & b; }
static uint32_t fold_or(uint32_t a, uint32_t b) { return a | b; }
static uint32_t fold_xor(uint32_t a, uint32_t b) { return a ^ b; }
static uint32_t fold_min(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t fold_max(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t fold_min_signed(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
static uint32_t fold_max_signed(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }

static const struct FoldForm {
    const char *op;
    PtxType type;
    Fold *fold;
} folds[] = {{"add", PTX_U32, fold_add}, {"add", PTX_S32, fold_add},        {"min", PTX_U32, fold_min},
             {"max", PTX_U32, fold_max}, {"min", PTX_S32, fold_min_signed}, {"and", PTX_B32, fold_and},
             {"or", PTX_B32, fold_or},   {"max", PTX_S32, fold_max_signed}, {"xor", PTX_B32, fold_xor}};

typedef struct Redux {
    Fold *fold;
    Operand value;
} Redux;

static Step run_redux(Warp *w, const Inst *i) {
    const Redux *r = i->more;
    const uint32_t *in = lanes_of(w, &r->value);
    uint32_t first = (uint32_t)__builtin_ctz(w->active), sum = in[first];
    FOR_LANES(l, w->active & (w->active - 1)) sum = r->fold(sum, in[l]);
    FOR_LANES(l, w->active) set_lane(w, &i->dst[0], (int)l, sum);
    return STEP_NEXT;
}

bool decode_redux(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "add", "min", "max", "and", "or", "xor", NULL};
    if (d->function->module->context.arch < 80) return refuse(d, "needs sm_80 or higher");
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->operand_count != 3) return refuse(d, "it takes three operands");
    Redux *r = module_new(d->function->module, sizeof *r);
    for (size_t k = 0; k < sizeof folds / sizeof *folds; k++)
        if (ptx_has(d->ptx, folds[k].op) && d->ptx->types[0] == folds[k].type) r->fold = folds[k].fold;
    if (!r->fold) return refuse(d, "not supported");
    i->run = run_redux;
    i->sync = SYNC_MASK;
    i->more = r;
    return decode_result(d, &d->ptx->operands[0], 4, &i->dst[0]) &&
           decode_source(d, &d->ptx->operands[1], 4, &r->value) && decode_source(d, &d->ptx->operands[2], 4, &i->mask);
}
