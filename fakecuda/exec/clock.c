/* clock.c: what happened before what between the warps of a block: one vector clock per warp (Mattern; used for races
 * as in FastTrack, Flanagan and Freund 2009).
 *
 * w->clock grows with each synchronisation of warp w; an access is stamped with it.  w->known[v] is the last stamp of
 * warp v that is ordered before what w does now; known[w] itself is clock - 1, since lanes of one warp are ordered only
 * by meeting. */
#include "fakecuda/exec/inner.h"

enum { CLOCK_END = (1 << 20) - 2 };

static void tick(Warp *w) {
    w->known[w->index] = w->clock++;
    if (w->clock < CLOCK_END) return;
    /* The stamps are full: what was stamped so far is forgotten, and all clocks begin again. */
    Block *b = w->block;
    race_forget(b);
    for (int v = 0; v < b->warp_count; v++) {
        b->warps[v].clock = 1;
        memset(b->warps[v].known, 0, sizeof b->warps[v].known);
    }
    memset(b->fence_clock, 0, sizeof b->fence_clock);
    for (int k = 0; k < MAX_BARRIERS; k++) memset(b->barriers[k].clock, 0, sizeof b->barriers[k].clock);
    for (int k = 0; k < b->signal_count; k++) memset(b->signals[k].clock, 0, sizeof b->signals[k].clock);
}

void clock_warp(Warp *w) { tick(w); }

void clock_release(Warp *w, uint32_t to[MAX_WARPS]) {
    uint32_t now = w->clock;
    for (int v = 0; v < MAX_WARPS; v++)
        if (w->known[v] > to[v]) to[v] = w->known[v];
    if (now > to[w->index]) to[w->index] = now;
    tick(w);
}

void clock_acquire(Warp *w, const uint32_t from[MAX_WARPS]) {
    for (int v = 0; v < MAX_WARPS; v++)
        if (from[v] > w->known[v] && v != w->index) w->known[v] = from[v];
}

/* Two fences order what stands before the one that runs first against what stands behind the other, as if they always
 * met through a flag: no false alarms, and none where a flag is missing beside a fence. */
void clock_fence(Warp *w) {
    clock_release(w, w->block->fence_clock);
    clock_acquire(w, w->block->fence_clock);
}
