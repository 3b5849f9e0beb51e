/* race.c: what happened before what between the warps of a block, and so races in shared memory. */
#include "fakecuda/exec/inner.h"

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

/* What happened before what between the warps of a block: one vector clock per warp (Mattern; used for races as in
 * FastTrack, Flanagan and Freund 2009).
 *
 * w->clock grows with each synchronisation of warp w; an access is stamped with it.  known[v] is the last stamp of warp
 * v that is ordered before what w does now; known[w] itself is clock - 1, since lanes of one warp are ordered only by
 * meeting.  fenced[v] is for order.c. */

enum { CLOCK_END = (1 << 20) - 2 };

static void tick(Warp *w) {
    w->clocks.known[w->index] = w->clock++;
    if (w->clock < CLOCK_END) return;
    /* The stamps are full: what was stamped so far is forgotten, and all clocks begin again. */
    Block *b = w->block;
    race_forget(b);
    for (int v = 0; v < b->warp_count; v++) {
        b->warps[v].clock = 1;
        memset(b->warps[v].clocks.known, 0, sizeof b->warps[v].clocks.known);
    }
    memset(b->fence_clock, 0, sizeof b->fence_clock);
    for (int k = 0; k < MAX_BARRIERS; k++) memset(b->barriers[k].clocks.known, 0, sizeof b->barriers[k].clocks.known);
    for (int k = 0; k < b->signal_count; k++) memset(b->signals[k].clocks.known, 0, sizeof b->signals[k].clocks.known);
    order_restart_clocks(b, CLOCK_END);
}

static void join(uint32_t to[MAX_WARPS], const uint32_t from[MAX_WARPS]) {
    for (int v = 0; v < MAX_WARPS; v++)
        if (from[v] > to[v]) to[v] = from[v];
}

static void release(Warp *w, uint32_t to[MAX_WARPS]) {
    uint32_t now = w->clock;
    join(to, w->clocks.known);
    if (now > to[w->index]) to[w->index] = now;
    tick(w);
}

static void acquire(Warp *w, const uint32_t from[MAX_WARPS]) {
    for (int v = 0; v < MAX_WARPS; v++)
        if (from[v] > w->clocks.known[v] && v != w->index) w->clocks.known[v] = from[v];
}

void clock_warp(Warp *w) { tick(w); }

void clock_release(Warp *w, Clocks *to) {
    if (w->block->order) join(to->fenced, w->clocks.fenced);
    release(w, to->known);
}

void clock_acquire(Warp *w, const Clocks *from) {
    if (w->block->order) join(w->clocks.fenced, from->fenced);
    acquire(w, from->known);
}

/* Two fences order what is before the one that runs first against what is after the other, as if they always met
 * through a flag: no false alarms, and none where a flag is missing beside a fence. */
void clock_fence(Warp *w) {
    release(w, w->block->fence_clock);
    acquire(w, w->block->fence_clock);
}

/* ---- races in shared memory -------------------------------------------------------------------------------------- */

/* Two accesses of one byte by different threads, one of them a write, not both atomic, with no barrier between.
 *
 * A byte remembers its last write and the last reads of two different threads, each with thread, clock and whether it
 * was atomic (strong).  An access is ordered after another if the clock of that one is known to its warp.  Two threads
 * that write the same value do not harm each other. */

enum { THREAD_SHIFT = 21, STRONG = 1 << 20, CLOCK = STRONG - 1 };

static uint32_t stamp(const Warp *w, int lane, int how) {
    return (uint32_t)(w->index * LANES + lane) << THREAD_SHIFT | (how & ACCESS_STRONG ? STRONG : 0) | w->clock;
}

static bool conflicts(const Warp *w, uint32_t other, uint32_t mine) {
    if (!other || (other ^ mine) >> THREAD_SHIFT == 0 || other & mine & STRONG) return false;
    return (other & CLOCK) > w->clocks.known[other >> (THREAD_SHIFT + 5)];
}

static bool report(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t other, const char *mine,
                   const char *theirs) {
    uint32_t thread = other >> THREAD_SHIFT;
    const uint32_t *n = w->block->dimensions;
    fault(w, i, lane, EXEC_LAUNCH_FAILED,
          "race in shared memory at 0x%x: %s what thread (%u,%u,%u) %s, with no barrier between%s", offset, mine,
          thread % n[0], thread / n[0] % n[1], thread / n[0] / n[1], theirs,
          thread / LANES == (uint32_t)w->index ? " (both of one warp: bar.warp.sync orders them)" : "");
    return false;
}

/* One record, of the byte at |offset| or of the word there. */
static bool check_record(Warp *w, const Inst *i, int lane, uint32_t offset, SharedAccess *last, uint32_t mine,
                         bool write, bool same_value) {
    if (!write) {
        if (conflicts(w, last->write, mine)) return report(w, i, lane, offset, last->write, "reads", "wrote");
        if ((last->read[0] ^ mine) >> THREAD_SHIFT) last->read[1] = last->read[0];
        last->read[0] = mine;
        return true;
    }
    if (!same_value && conflicts(w, last->write, mine))
        return report(w, i, lane, offset, last->write, "writes", "wrote");
    for (int r = 0; r < 2; r++)
        if (conflicts(w, last->read[r], mine)) return report(w, i, lane, offset, last->read[r], "writes", "reads");
    /* What is ordered after this write is ordered after the reads before it. */
    *last = (SharedAccess){.write = mine};
    return true;
}

static void split(Block *b, SharedWord *word, uint32_t offset) {
    if (word->split) return;
    for (uint32_t k = 0; k < 4; k++) b->shared_bytes[(offset & ~3u) + k] = word->all;
    word->split = 1;
}

static bool check_bytes(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t size, uint32_t mine, bool write,
                        const uint8_t *value) {
    Block *b = w->block;
    for (uint32_t k = 0; k < size; k++) {
        bool same = value && value[k] == b->shared[offset + k];
        if (!check_record(w, i, lane, offset + k, &b->shared_bytes[offset + k], mine, write, same)) return false;
    }
    return true;
}

bool race_check(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t size, int how, const uint8_t *value) {
    Block *b = w->block;
    uint32_t mine = stamp(w, lane, how);
    bool write = how & ACCESS_WRITE;
    SharedWord *word = b->shared_words + offset / 4;
    if (size < 4) {
        split(b, word, offset);
        return check_bytes(w, i, lane, offset, size, mine, write, value);
    }
    for (uint32_t k = 0; k < size; k += 4, word++) {
        const uint8_t *v = value ? value + k : NULL;
        if (word->split) {
            if (!check_bytes(w, i, lane, offset + k, 4, mine, write, v)) return false;
            if (write) *word = (SharedWord){.all = {.write = mine}};
        } else if (!check_record(w, i, lane, offset + k, &word->all, mine, write,
                                 v && !memcmp(v, b->shared + offset + k, 4))) {
            return false;
        }
    }
    return true;
}

void race_forget(Block *b) { memset(b->shared_words, 0, (b->shared_size / 4 + 1) * sizeof *b->shared_words); }

bool race_begin_copy(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t size) {
    memset(w->block->shared_written + offset, 2, size);
    return race_check(w, i, lane, offset, size, ACCESS_WRITE, NULL);
}

void race_end_copy(Warp *w, int lane, uint32_t offset, uint32_t size) {
    memset(w->block->shared_written + offset, 1, size);
    for (uint32_t k = 0; k < size; k += 4)
        w->block->shared_words[(offset + k) / 4] = (SharedWord){.all = {.write = stamp(w, lane, 0)}};
}
