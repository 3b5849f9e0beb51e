/* race_global.c: races in global memory between blocks of one launch, and of launches that overlap.
 *
 * Hardware promises no order between two blocks.  So two accesses of one byte by different blocks of a launch, one of
 * them a write, not both strong (atomic, volatile, relaxed), are a race, whatever this run's order made of them, unless
 * a release of the one and an acquire of the other come between (order.c).  The rules are in the chapter "Memory
 * Consistency Model" of the PTX ISA document; the way to find races is FastTrack's (Flanagan and Freund, PLDI 2009): a
 * place remembers the last accesses only, each with who made it and when.
 *
 * Two blocks that write the same bytes do not harm each other, although the document calls it a race: flags are set so.
 * What reads beside them does.
 *
 * Blocks of an earlier launch may run beside a thread, too (dependent.c): then the same holds, but that no access is
 * strong and no bytes are equal: who waits for them has an instruction for it.
 *
 * A word remembers the last two blocks that wrote and the last two that read; older ones are forgotten, so of three
 * blocks that read, the first is not seen by a later write.  Never is an access called a race that is none. */
#include "fakecuda/exec/inner.h"

/* A record: the block's serial, whether an access was weak, which of the four bytes. */
enum { SERIAL_SHIFT = 5, WEAK = 16, BYTES = 15 };
enum { READS = 2 }; /* slots 0 and 1 are of writes, the latest first; 2 and 3 of reads */

/* Several host threads may run blocks: what they overwrite of each other may hide a race, never make one. */
static uint32_t get(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static void put(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }

static bool same_bytes(const uint8_t *a, const uint8_t *b, uint32_t mask) {
    for (int k = 0; k < 4; k++)
        if (mask >> k & 1 && a[k] != b[k]) return false;
    return true;
}

/* Whether the record is of this launch and of another block, and touches bytes that |mine| touches. */
static inline bool others(const Block *b, uint32_t record, uint32_t mine) {
    return record >= b->first_serial << SERIAL_SHIFT && (record ^ mine) >> SERIAL_SHIFT && record & mine & BYTES;
}

static bool conflicts(Warp *w, int lane, uint64_t word, int slot, uint32_t mine) {
    uint32_t record = get(&w->block->memory->words[word].slot[slot]);
    if (!others(w->block, record, mine) || !((record | mine) & WEAK)) return false;
    if (!w->block->order) return true;
    uint32_t stamp = get(&w->block->memory->stamps[word].slot[slot]);
    return !order_known(w, lane, record >> SERIAL_SHIFT, stamp, word, !(record & WEAK));
}

/* ---- the message ---- */

static Step report(Warp *w, const Inst *i, int lane, uint64_t address, const char *what, int slot, uint32_t record) {
    Block *b = w->block;
    uint32_t at[3], word = (uint32_t)((address - b->memory->base) / 4 * 4 - (w->last_start - b->memory->base));
    const Inst *place = block_place(b, record >> SERIAL_SHIFT, at,
                                    (Watch){.word = (address - b->memory->base) / 4,
                                            .mask = record & BYTES,
                                            .how = slot < READS ? ACCESS_WRITE : ACCESS_READ});
    char where[256] = "";
    if (place) snprintf(where, sizeof where, " at ptx line %d (%s)", place->ptx->line, place->ptx->text);
    return fault(
        w, i, lane, EXEC_LAUNCH_FAILED,
        "race in global memory at 0x%llx, %u into an allocation of %llu bytes: %s what block (%u,%u,%u) of the "
        "same launch %s%s, with nothing that orders the two blocks",
        (unsigned long long)address, word, (unsigned long long)w->last_bytes, what, at[0], at[1], at[2],
        slot < READS ? "wrote" : "reads", where);
}

static Step report_constant(Warp *w, const Inst *i, int lane, uint64_t address, uint32_t record) {
    uint32_t at[3];
    block_at(w->block, record >> SERIAL_SHIFT, at);
    return fault(w, i, lane, EXEC_LAUNCH_FAILED,
                 "reads with .nc what was written in the same launch, by block (%u,%u,%u): 4 bytes at 0x%llx", at[0],
                 at[1], at[2], (unsigned long long)address);
}

/* Of a block of an earlier launch, which may run still. */
static Step report_earlier(Warp *w, const Inst *i, int lane, uint64_t address, const char *what, int slot) {
    const uint64_t start = w->last_start;
    const bool waited = w->waited >> lane & 1;
    return fault(
        w, i, lane, EXEC_LAUNCH_FAILED,
        "race in global memory at 0x%llx, %llu into an allocation of %llu bytes: %s what an earlier launch %s, "
        "which may not have ended: %s",
        (unsigned long long)address, (unsigned long long)(address - start), (unsigned long long)w->last_bytes, what,
        slot < READS ? "wrote" : "reads",
        waited ? "a launch between them has not executed griddepcontrol.wait"
               : "this thread has not executed griddepcontrol.wait");
}

static bool touches_earlier(const Warp *w, int lane, uint32_t record, uint32_t mine) {
    return record & mine & BYTES && dependent_may_run(w, lane, record >> SERIAL_SHIFT);
}

/* ---- one word ---- */

/* Makes |mine| the latest of the two records at |slot|. */
static void remember(const Warp *w, int lane, uint64_t word, int slot, uint32_t mine) {
    uint32_t *r = w->block->memory->words[word].slot + slot, last = get(r), stamp = 0, both = 0, *stamps = NULL;
    bool same = !((last ^ mine) >> SERIAL_SHIFT);
    if (w->block->order) {
        stamps = w->block->memory->stamps[word].slot + slot;
        stamp = order_stamp(w, lane);
        both = order_stamp_of_both(get(stamps), stamp);
    }
    if (same && (!stamps || both)) {
        if ((last | mine) != last) put(r, last | mine);
        if (stamps && both != get(stamps)) put(stamps, both);
        return;
    }
    if (!same || last & ~mine & BYTES) {
        put(r + 1, last);
        if (stamps) put(stamps + 1, get(stamps));
    }
    put(r, mine);
    if (stamps) put(stamps, stamp);
}

static bool check_read(Warp *w, const Inst *i, int lane, uint64_t word, uint32_t mine, int how) {
    const uint32_t *slots = w->block->memory->words[word].slot;
    for (int s = 0; s < READS; s++) {
        uint32_t record = get(&slots[s]);
        uint64_t address = w->block->memory->base + 4 * word;
        if (touches_earlier(w, lane, record, mine)) return report_earlier(w, i, lane, address, "reads", s), false;
        if (record < w->block->first_serial << SERIAL_SHIFT) continue;
        if (how & ACCESS_CONSTANT && record & mine & BYTES) return report_constant(w, i, lane, address, record), false;
        if (conflicts(w, lane, word, s, mine)) return report(w, i, lane, address, "reads", s, record), false;
    }
    remember(w, lane, word, READS, mine);
    return true;
}

static bool check_write(Warp *w, const Inst *i, int lane, uint64_t word, uint32_t mine, const uint8_t *value) {
    const uint32_t *slots = w->block->memory->words[word].slot;
    const uint8_t *present = w->block->memory->bytes + 4 * word;
    for (int s = 0; s < READS + 2; s++) {
        uint32_t record = get(&slots[s]);
        if (touches_earlier(w, lane, record, mine))
            return report_earlier(w, i, lane, w->block->memory->base + 4 * word, "writes", s), false;
        if (record < w->block->first_serial << SERIAL_SHIFT || !conflicts(w, lane, word, s, mine)) continue;
        if (s < READS && value && same_bytes(present, value, record & mine & BYTES)) continue;
        const char *what = s < READS && value ? "writes another value over" : "writes";
        return report(w, i, lane, w->block->memory->base + 4 * word, what, s, record), false;
    }
    remember(w, lane, word, 0, mine);
    return true;
}

/* ---- an access ---- */

/* |block_place| looks for the instruction of a block that touched a word. */
static void watch(Warp *w, const Inst *i, uint64_t offset, uint32_t size, int how) {
    Watch *t = w->block->watch;
    if (t->found || !(how & t->how) || offset >= 4 * t->word + 4 || offset + size <= 4 * t->word) return;
    uint32_t mask = size < 4 ? ((1u << size) - 1) << (offset & 3) : BYTES;
    if (mask & t->mask) t->found = i;
}

bool race_check_global(Warp *w, const Inst *i, int lane, uint64_t address, uint32_t size, int how,
                       const uint8_t *value) {
    Block *b = w->block;
    uint64_t offset = address - b->memory->base, word = offset / 4;
    if (b->watch) return watch(w, i, offset, size, how), true;
    uint32_t granules = size < 4 ? 1 : size / 4, mask = size < 4 ? ((1u << size) - 1) << (offset & 3) : BYTES;
    bool strong = how & ACCESS_STRONG && !(how & ACCESS_CTA);
    uint32_t mine = b->serial << SERIAL_SHIFT | (strong ? 0 : WEAK) | mask;
    bool locked = b->many && b->order, fine = true;
    if (locked) order_lock_records(b->order);
    for (uint32_t k = 0; k < granules && fine; k++)
        fine = how & ACCESS_WRITE ? check_write(w, i, lane, word + k, mine, value ? value - (offset & 3) + 4 * k : NULL)
                                  : check_read(w, i, lane, word + k, mine, how);
    if (locked) order_unlock_records(b->order);
    return fine;
}
