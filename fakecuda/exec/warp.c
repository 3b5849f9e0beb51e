/* warp.c: runs the instructions of a warp, strand by strand; how its lanes part and meet again. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

/* ---- strands ----------------------------------------------------------------------------------------------------- */

/* ---- frames ---- */

Frame *frame_new(Warp *w, const Function *f) {
    uint32_t param_bytes = (f->param_bytes + 63) / 64 * 64 * LANES, need = f->register_bytes + param_bytes;
    Frame **at = &w->free_frames, *frame;
    while (*at && (*at)->room < need) at = &(*at)->next;
    if ((frame = *at)) {
        *at = frame->next;
    } else {
        frame = calloc(1, sizeof *frame);
        uint32_t room = (need + 4095) / 4096 * 4096;
        uint8_t *bytes = aligned_alloc(64, room);
        if (!frame || !bytes) abort(); /* the host has no memory left */
        *frame = (Frame){.registers = bytes, .room = room, .all = w->all_frames};
        w->all_frames = frame;
    }
    *frame = (Frame){.registers = frame->registers, .room = frame->room, .function = f, .all = frame->all};
    frame->params = frame->registers + f->register_bytes;
    memset(frame->registers, 0, need);
    return frame;
}

void frame_free(Warp *w, Frame *f) {
    f->next = w->free_frames;
    w->free_frames = f;
}

/* ---- strands ---- */

int strand_add(Warp *w, const Strand *s) {
    w->strands[w->strand_count] = *s;
    return w->strand_count++;
}

void strand_remove(Warp *w, int index) {
    w->strands[index] = w->strands[--w->strand_count];
    if (w->current == index) w->current = -1;
    else if (w->current == w->strand_count) w->current = index;
}

/* ---- joins ---- */

static Join *join_new(Warp *w, Join value) {
    Join *j = w->free_joins;
    if (j) {
        w->free_joins = j->parent;
    } else {
        if (!(j = malloc(sizeof *j))) abort(); /* the host has no memory left */
        j->all = w->all_joins;
        w->all_joins = j;
    }
    value.all = j->all;
    *j = value;
    return j;
}

void strands_reset(Warp *w) {
    w->free_joins = NULL;
    w->free_frames = NULL;
    w->strand_count = 0;
    w->current = -1;
    for (Join *j = w->all_joins; j; j = j->all) j->parent = w->free_joins, w->free_joins = j;
    for (Frame *f = w->all_frames; f; f = f->all) frame_free(w, f);
}

void strands_free(Warp *w) {
    for (Join *j = w->all_joins, *next; j; j = next) {
        next = j->all;
        free(j);
    }
    for (Frame *f = w->all_frames, *next; f; f = next) {
        next = f->all;
        free(f->registers);
        free(f);
    }
}

Join *strand_join(Warp *w, int pc, uint32_t lanes, Frame *callee) {
    Strand *s = w->strand;
    return join_new(w, (Join){.parent = s->join, .expected = lanes, .pc = pc, .frame = s->frame, .callee = callee});
}

/* Everybody who will come is there: they go on as one strand. */
static void complete(Warp *w, Join *j) {
    if (j->arrived) {
        Strand s = {.pc = j->pc, .active = j->arrived, .join = j->parent, .frame = j->frame};
        strand_add(w, &s);
    }
    if (j->callee) frame_free(w, j->callee);
    j->parent = w->free_joins;
    w->free_joins = j;
}

Step strand_branch(Warp *w, uint32_t taken, int target, int join) {
    Strand *s = w->strand;
    uint32_t rest = s->active & ~taken;
    int next = s->pc + 1;
    if (!rest || target == next) {
        s->pc = target;
        return STEP_JUMPED;
    }
    Join *j = s->join;
    if (join >= 0 && !(j && !j->callee && j->frame == s->frame && j->pc == join))
        s->join = j = strand_join(w, join, s->active, NULL);
    if (join >= 0 && (target == join || next == join)) {
        j->arrived |= target == join ? taken : rest;
        s->active = target == join ? rest : taken;
        s->pc = target == join ? next : target;
        return STEP_JUMPED;
    }
    bool swap = block_random(w->block) & 1; /* which side runs first */
    Strand other = *s;
    other.active = swap ? taken : rest;
    other.pc = swap ? target : next;
    s->active = swap ? rest : taken;
    s->pc = swap ? next : target;
    strand_add(w, &other);
    return STEP_JUMPED;
}

/* Lanes that will come to no join below |end| any more. */
static void abandon_joins(Warp *w, Join *j, const Join *end, uint32_t lanes) {
    while (j && j != end) {
        Join *parent = j->parent;
        j->expected &= ~lanes;
        if (j->arrived == j->expected) complete(w, j);
        j = parent;
    }
}

static Step drop_lanes(Warp *w, uint32_t lanes) {
    Strand *s = w->strand;
    s->active &= ~lanes;
    s->pc++;
    if (!s->active) strand_remove(w, w->current);
    return STEP_JUMPED;
}

void strand_leave(Warp *w, uint32_t lanes) {
    w->alive &= ~lanes;
    Join *j = w->strand->join;
    drop_lanes(w, lanes);
    abandon_joins(w, j, NULL, lanes);
}

Step strand_return(Warp *w, uint32_t lanes) {
    Join *j = w->strand->join, *call = j;
    while (call && !call->callee) call = call->parent;
    if (!call) {
        strand_leave(w, lanes);
        return STEP_JUMPED;
    }
    drop_lanes(w, lanes);
    abandon_joins(w, j, call, lanes);
    call->arrived |= lanes;
    if (call->arrived == call->expected) complete(w, call);
    return STEP_JUMPED;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

#ifdef __SSE2__
#include <emmintrin.h>
#endif

uint32_t warp_mask(const uint32_t p[LANES]) {
#ifdef __SSE2__
    uint32_t mask = 0;
    for (int half = 0; half < 2; half++) {
        const __m128i *v = (const __m128i *)(const void *)(p + 16 * half);
        __m128i low = _mm_packs_epi32(_mm_loadu_si128(v), _mm_loadu_si128(v + 1));
        __m128i high = _mm_packs_epi32(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3));
        __m128i bytes = _mm_cmpgt_epi8(_mm_packs_epi16(low, high), _mm_setzero_si128());
        mask |= (uint32_t)_mm_movemask_epi8(bytes) << (16 * half);
    }
    return mask;
#else
    uint32_t mask = 0;
    for (int l = 0; l < LANES; l++) mask |= (p[l] & 1) << l;
    return mask;
#endif
}

static void run_alu(Warp *w, const Inst *i, uint32_t active) {
    void *dst[2] = {lanes_of(w, &i->dst[0]), i->dst[1].bytes ? lanes_of(w, &i->dst[1]) : NULL};
    const void *src[4] = {lanes_of(w, &i->src[0]), lanes_of(w, &i->src[1]), lanes_of(w, &i->src[2]),
                          lanes_of(w, &i->src[3])};
    i->alu->run(&w->block->module->context, i->alu, dst, src, active);
}

static void count(Warp *w, const Inst *i, uint32_t active) {
    Block *b = w->block;
    uint32_t lanes = (uint32_t)__builtin_popcount(active);
    b->counters.warp_instructions++;
    b->counters.thread_instructions += lanes;
    b->counters.by_kind[i->kind] += lanes;
    b->counters.other_flops += lanes * i->flops;
    b->instructions++;
    w->instructions++;
}

/* ---- instructions at which lanes meet ---- */

static const char *list_lanes(uint32_t lanes, char text[16]) {
    snprintf(text, 16, "0x%08x", lanes);
    return text;
}

/* .aligned: all lanes of the warp are here together, or the behaviour is undefined. */
static Step run_aligned(Warp *w, const Inst *i, uint32_t active) {
    char missing[16];
    int lane = active ? __builtin_ctz(active) : -1;
    if (active != w->alive)
        return fault(w, i, lane, EXEC_LAUNCH_FAILED, "in a divergent branch: lanes %s of the warp are not here",
                     list_lanes(w->alive & ~active, missing));
    if (i->sync == SYNC_FULL && active != UINT32_MAX)
        return fault(w, i, lane, EXEC_LAUNCH_FAILED,
                     "needs all 32 threads of a warp: lanes %s do not exist or have left",
                     list_lanes(~active, missing));
    return i->run(w, i);
}

/* Runs the lanes of |active| of strand |s| in groups of equal masks.  Where a group waits for lanes of other strands,
 * the strand waits. */
static Step run_masked(Warp *w, const Inst *i, uint32_t active) {
    Strand *s = w->strand;
    const uint32_t *masks = lanes_of(w, &i->mask);
    char text[16];
    for (uint32_t todo = active; todo;) {
        int lane = __builtin_ctz(todo);
        uint32_t mask = masks[lane], group = 0, missing;
        FOR_LANES(l, todo) group |= (uint32_t)(masks[l] == mask) << l;
        todo &= ~group;
        if (!(mask >> lane & 1))
            return fault(w, i, lane, EXEC_LAUNCH_FAILED, "the lane is not in the mask %s itself",
                         list_lanes(mask, text));
        if (group & ~mask)
            return fault(w, i, __builtin_ctz(group & ~mask), EXEC_LAUNCH_FAILED,
                         "the lane is not in the mask %s itself", list_lanes(mask, text));
        missing = mask & w->alive & ~group;
        if (missing & s->active)
            return fault(
                w, i, lane, EXEC_LAUNCH_FAILED,
                "the mask names lanes %s, which are here but do not take part (a false predicate or another mask)",
                list_lanes(missing & s->active, text));
        if (missing && group != active)
            return fault(w, i, lane, EXEC_LAUNCH_FAILED, "the mask names lanes %s, which are elsewhere",
                         list_lanes(missing, text));
        if (missing) {
            s->state = STRAND_AT_SYNC;
            s->sync_mask = mask;
            s->after_wait = true;
            return STEP_WAIT;
        }
        w->active = group;
        Step step = i->run(w, i);
        if (step != STEP_NEXT) return step;
    }
    clock_warp(w);
    return STEP_NEXT;
}

/* Strands that wait at one instruction for one another go on when all lanes of their mask are there. */
static bool resolve_sync(Warp *w) {
    for (int a = 0; a < w->strand_count; a++) {
        Strand *s = &w->strands[a];
        if (s->state != STRAND_AT_SYNC) continue;
        uint32_t here = 0;
        for (int k = 0; k < w->strand_count; k++) {
            const Strand *t = &w->strands[k];
            if (t->state == STRAND_AT_SYNC && t->pc == s->pc && t->frame == s->frame && t->sync_mask == s->sync_mask)
                here |= t->active;
        }
        if (s->sync_mask & w->alive & ~here) continue;
        const Inst *i = &s->frame->function->code[s->pc];
        int pc = s->pc;
        uint32_t mask = s->sync_mask;
        Frame *frame = s->frame;
        w->strand = s;
        w->current = a;
        w->bases[BASE_REGISTERS] = frame->registers;
        w->bases[BASE_CONSTANTS] = frame->function->constants;
        w->active = here;
        if (i->run(w, i) == STEP_FAULT) return false;
        clock_warp(w);
        for (int k = 0; k < w->strand_count; k++) {
            Strand *t = &w->strands[k];
            if (t->state != STRAND_AT_SYNC || t->pc != pc || t->frame != frame || t->sync_mask != mask) continue;
            t->state = STRAND_RUNS;
            t->after_wait = false;
            t->pc++;
        }
        return true;
    }
    return false;
}

/* ---- the loop ---- */

static void select_strand(Warp *w, int index) {
    w->current = index;
    w->strand = &w->strands[index];
    w->bases[BASE_REGISTERS] = w->strand->frame->registers;
    w->bases[BASE_CONSTANTS] = w->strand->frame->function->constants;
}

/* A strand that can run becomes the present one. */
static bool choose_strand(Warp *w) {
    int start = w->strand_count > 1 ? (int)(block_random(w->block) % (uint32_t)w->strand_count) : 0;
    for (int k = 0; k < w->strand_count; k++) {
        int at = start + k < w->strand_count ? start + k : start + k - w->strand_count;
        if (w->strands[at].state != STRAND_RUNS) continue;
        select_strand(w, at);
        return true;
    }
    return false;
}

static bool waits_at_barrier(const Warp *w) {
    for (int k = 0; k < w->strand_count; k++)
        if (w->strands[k].state == STRAND_AT_BARRIER) return true;
    return false;
}

/* Lanes wait for lanes that will never come. */
static void report_stuck(Warp *w) {
    char text[16];
    Strand *s = &w->strands[0];
    select_strand(w, 0);
    uint32_t missing = s->sync_mask & w->alive & ~s->active;
    fault(w, &s->frame->function->code[s->pc], __builtin_ctz(s->active), EXEC_LAUNCH_FAILED,
          "waits for lanes %s of its mask, which never come here (inactive lanes)", list_lanes(missing, text));
}

/* The strand has come to where others wait for it; true: it is no more, or another. */
static bool arrive(Warp *w) {
    Strand *s = w->strand;
    Join *j = s->join;
    j->arrived |= s->active;
    if (j->arrived == j->expected) {
        s->active = j->arrived;
        s->join = j->parent;
        j->parent = w->free_joins;
        w->free_joins = j;
        return false;
    }
    strand_remove(w, w->current);
    return true;
}

static inline bool at_join(const Strand *s) { return s->join && s->pc == s->join->pc && s->frame == s->join->frame; }

static Outcome out_of_strands(Warp *w) {
    if (!w->strand_count) return WARP_DONE;
    if (resolve_sync(w)) return WARP_READY;
    if (w->block->fault) return WARP_FAILED;
    if (waits_at_barrier(w)) return WARP_WAITS;
    report_stuck(w);
    return WARP_FAILED;
}

Outcome warp_run(Warp *w, int quantum) {
    if (!choose_strand(w)) return out_of_strands(w);
    while (quantum-- > 0) {
        Strand *s = w->strand;
        while (at_join(s))
            if (arrive(w)) return WARP_READY;
        const Inst *i = &s->frame->function->code[s->pc];
        uint32_t active = s->active;
        if (i->guarded) {
            uint32_t mask = warp_mask(lanes_of(w, &i->guard));
            active &= i->guard_negated ? ~mask : mask;
        }
        if (!s->after_wait) count(w, i, active);
        if (!active) {
            s->pc++;
            continue;
        }
        if (i->alu) {
            run_alu(w, i, active);
            s->pc++;
            continue;
        }
        w->active = active;
        Step step = i->sync == SYNC_NONE   ? i->run(w, i)
                    : i->sync == SYNC_MASK ? run_masked(w, i, active)
                                           : run_aligned(w, i, active);
        if (step == STEP_NEXT || step == STEP_PAUSE) {
            s->pc++;
            s->after_wait = false;
            if (step == STEP_PAUSE) return WARP_READY;
        } else if (step == STEP_JUMPED) {
            if (w->current < 0 || w->strand_count == 0) return w->strand_count ? WARP_READY : WARP_DONE;
            select_strand(w, w->current);
        } else {
            return step == STEP_FAULT ? WARP_FAILED : WARP_READY;
        }
    }
    return WARP_READY;
}
