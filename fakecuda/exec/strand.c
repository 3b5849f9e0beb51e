/* strand.c: how the lanes of a warp part and meet again. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

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
