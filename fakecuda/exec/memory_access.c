/* memory_access.c: from an address to bytes, after all checks: alignment, bounds, what was never written, and races
 * (race.c, race_global.c); and what it is counted as: sectors of global memory, banks of shared memory. */
#include "fakecuda/exec/few_bytes.h"
#include "fakecuda/exec/inner.h"

static const char *verb(int how) {
    return (how & ACCESS_READ) && (how & ACCESS_WRITE) ? "changes" : how & ACCESS_WRITE ? "writes" : "reads";
}

static bool aligned(Warp *w, const Inst *i, int lane, const char *space, uint64_t address, uint32_t size, int how) {
    if (!(address & (size - 1))) return true;
    fault(w, i, lane, EXEC_MISALIGNED, "%s %u bytes at 0x%llx%s, which is not aligned to %u bytes", verb(how), size,
          (unsigned long long)address, space, size);
    return false;
}

/* The first byte that is not 1; |size|: all are. */
static uint32_t first_unwritten(const uint8_t *written, uint32_t size) {
    if (all_are(written, 1, size)) return size;
    uint32_t k = 0;
    while (written[k] == 1) k++;
    return k;
}

/* ---- global memory ---- */

static bool find_range(Warp *w, uint64_t address, uint32_t size) {
    const MemoryRange *r = memory_before(w->block->memory, address);
    if (!r || r->freed || address - r->start >= r->bytes || size > r->bytes - (address - r->start)) return false;
    w->last_start = r->start;
    w->last_bytes = r->bytes;
    return true;
}

uint8_t *access_global(Warp *w, const Inst *i, int lane, uint64_t address, uint32_t size, int how, const void *value) {
    ExecMemory *m = w->block->memory;
    if (!(address - w->last_start < w->last_bytes && size <= w->last_bytes - (address - w->last_start)) &&
        !find_range(w, address, size)) {
        char text[256];
        memory_explain(m, address, size, text, sizeof text);
        fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at %s", verb(how), size, text);
        return NULL;
    }
    if (!aligned(w, i, lane, "", address, size, how)) return NULL;
    uint64_t offset = address - m->base;
    if (how & ACCESS_READ) {
        uint32_t hole = first_unwritten(m->written + offset, size);
        if (hole < size) {
            fault(
                w, i, lane, EXEC_LAUNCH_FAILED,
                "reads %u bytes at 0x%llx, %llu into an allocation of %llu bytes: uninitialised, no store has written "
                "byte %u of them",
                size, (unsigned long long)address, (unsigned long long)(address - w->last_start),
                (unsigned long long)w->last_bytes, hole);
            return NULL;
        }
    }
    if (!race_check_global(w, i, lane, address, size, how, value)) return NULL;
    bool changes = how & ACCESS_WRITE && !(how & ACCESS_READ); /* an atomic says itself whether it does */
    if (changes && how & ACCESS_STRONG && !(how & ACCESS_CTA) && w->block->order) {
        order_write(w, lane, address, false);
        if (!value || memcmp(m->bytes + offset, value, size) != 0) order_changed(w->block);
    }
    if (how & ACCESS_WRITE) fill_few(m->written + offset, 1, size);
    if (changes) w->block->progress = w->block->instructions;
    return m->bytes + offset;
}

/* ---- shared and local memory ---- */

static bool written_before(Warp *w, const Inst *i, int lane, const char *space, uint64_t address,
                           const uint8_t *written, uint32_t size) {
    uint32_t hole = first_unwritten(written, size);
    if (hole == size) return true;
    if (written[hole] == 2)
        fault(w, i, lane, EXEC_LAUNCH_FAILED,
              "reads %u bytes at 0x%llx%s, where a cp.async is in flight: no cp.async.wait_group or wait_all of the "
              "copying thread comes between",
              size, (unsigned long long)address, space);
    else
        fault(w, i, lane, EXEC_LAUNCH_FAILED,
              "reads %u bytes at 0x%llx%s: uninitialised, no store has written byte %u of them", size,
              (unsigned long long)address, space, hole);
    return false;
}

uint8_t *access_shared(Warp *w, const Inst *i, int lane, uint64_t offset, uint32_t size, int how, const void *value) {
    Block *b = w->block;
    const char *space = " of shared memory";
    if (offset < SHARED_BASE || offset > b->shared_size || size > b->shared_size - offset) {
        uint32_t bytes = b->shared_size - SHARED_BASE;
        if (offset < SHARED_BASE)
            fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx%s, before the first of %u bytes (from 0x%x)",
                  verb(how), size, (unsigned long long)offset, space, bytes, SHARED_BASE);
        else
            fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx%s, %llu past the end of its %u bytes",
                  verb(how), size, (unsigned long long)offset, space,
                  (unsigned long long)(offset + size - b->shared_size), bytes);
        return NULL;
    }
    if (!aligned(w, i, lane, space, offset, size, how)) return NULL;
    uint8_t *written = b->shared_written + offset;
    if (how & ACCESS_READ && !written_before(w, i, lane, space, offset, written, size)) return NULL;
    if (how & ACCESS_WRITE) {
        if (some_has(written, 2, size)) {
            fault(w, i, lane, EXEC_LAUNCH_FAILED, "writes %u bytes at 0x%llx%s, where a cp.async is in flight", size,
                  (unsigned long long)offset, space);
            return NULL;
        }
        b->progress = b->instructions;
        if (how & ACCESS_COPY) return race_begin_copy(w, i, lane, (uint32_t)offset, size) ? b->shared + offset : NULL;
        fill_few(written, 1, size);
    }
    if (!race_check(w, i, lane, (uint32_t)offset, size, how, value)) return NULL;
    return b->shared + offset;
}

static uint8_t *access_local(Warp *w, const Inst *i, int lane, uint64_t offset, uint32_t size, int how) {
    uint32_t bytes = w->block->local_bytes;
    const char *space = " of local memory";
    if (offset >= bytes || size > bytes - offset) {
        fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx%s; a thread has %u bytes of it", verb(how), size,
              (unsigned long long)offset, space, bytes);
        return NULL;
    }
    if (!aligned(w, i, lane, space, offset, size, how)) return NULL;
    uint64_t at = (uint64_t)lane * bytes + offset;
    if (how & ACCESS_READ && !written_before(w, i, lane, space, offset, w->local_written + at, size)) return NULL;
    if (how & ACCESS_WRITE) fill_few(w->local_written + at, 1, size);
    return w->local + at;
}

/* Of an entry: the launch's block, then the .param variables of its calls.  Of a function: its call's own. */
static uint8_t *access_param(Warp *w, const Inst *i, int lane, uint64_t offset, uint32_t size, int how) {
    Frame *frame = w->strand->frame;
    const Function *f = frame->function;
    if (offset >= f->param_bytes || size > f->param_bytes - offset) {
        fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx of %u bytes of parameters", verb(how), size,
              (unsigned long long)offset, f->param_bytes);
        return NULL;
    }
    if (!aligned(w, i, lane, " of the parameters", offset, size, how)) return NULL;
    if (f->ptx->is_entry && offset < f->ptx->param_bytes) {
        if (!(how & ACCESS_WRITE) && offset + size <= f->ptx->param_bytes)
            return (uint8_t *)(uintptr_t)w->block->launch->params + offset;
        fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx of the kernel's parameters", verb(how), size,
              (unsigned long long)offset);
        return NULL;
    }
    return frame->params + (uint64_t)lane * f->param_bytes + offset;
}

/* ---- all spaces ---- */

PtxSpace access_resolve(const Warp *w, uint64_t *address) {
    uint64_t offset = *address - w->block->memory->base;
    if (offset >= WINDOW_GLOBAL || offset < WINDOW_SHARED) return PTX_GLOBAL;
    static const struct {
        uint32_t start;
        PtxSpace space;
    } windows[] = {
        {WINDOW_CODE, PTX_GLOBAL}, {WINDOW_PARAM, PTX_PARAM}, {WINDOW_LOCAL, PTX_LOCAL}, {WINDOW_SHARED, PTX_SHARED}};
    int k = 0;
    while (offset < windows[k].start) k++;
    if (windows[k].space != PTX_GLOBAL) *address = offset - windows[k].start;
    return windows[k].space;
}

uint8_t *access_bytes(Warp *w, const Inst *i, int lane, PtxSpace space, uint64_t address, uint32_t size, int how,
                      const void *value) {
    if (space == PTX_SPACE_NONE) space = access_resolve(w, &address);
    switch (space) {
    case PTX_SHARED: return access_shared(w, i, lane, address, size, how, value);
    case PTX_LOCAL: return access_local(w, i, lane, address, size, how);
    case PTX_PARAM: return access_param(w, i, lane, address, size, how);
    default: return access_global(w, i, lane, address, size, how, value);
    }
}

/* ---- counters of exec.h ------------------------------------------------------------------------------------------ */

const char *const exec_kind_names[16] = {"int",  "f32",   "f64",    "f16",     "cvt",     "special", "pred",   "move",
                                         "load", "store", "atomic", "control", "barrier", "warp",    "tensor", "async"};

void exec_counters_add(ExecCounters *to, const ExecCounters *from) {
    uint64_t longest = to->longest_warp > from->longest_warp ? to->longest_warp : from->longest_warp;
    uint64_t *t = (uint64_t *)to;
    const uint64_t *f = (const uint64_t *)from;
    for (size_t k = 0; k < sizeof *to / sizeof *t; k++) t[k] += f[k];
    to->longest_warp = longest;
}

/* ---- global memory: 32-byte sectors ---- */

typedef struct Sectors {
    uint64_t number[2 * LANES];
    uint32_t bytes[2 * LANES]; /* how many of each are touched */
    int count;
} Sectors;

static void touch(Sectors *s, uint64_t address, uint32_t size) {
    uint64_t number = address / 32;
    uint32_t bytes = (uint32_t)(((1ull << size) - 1) << (address % 32));
    for (int k = s->count; k-- > 0;)
        if (s->number[k] == number) {
            s->bytes[k] |= bytes;
            return;
        }
    s->number[s->count] = number;
    s->bytes[s->count++] = bytes;
}

void count_global(Block *b, const uint64_t address[LANES], uint32_t active, uint32_t size, bool store) {
    uint32_t asked = size * (uint32_t)__builtin_popcount(active), different = 0;
    Sectors s;
    s.count = 0;
    FOR_LANES(l, active) touch(&s, address[l], size);
    if (b->launch->asked) FOR_LANES(l, active) b->launch->asked(b->launch->asked_user, address[l], size, store);
    for (int k = 0; k < s.count; k++) different += (uint32_t)__builtin_popcount(s.bytes[k]);
    b->counters.sectors += (uint64_t)s.count;
    b->counters.ideal_sectors += (different + 31) / 32;
    if (store) b->counters.global_stores++, b->counters.global_store_bytes += asked;
    else b->counters.global_loads++, b->counters.global_load_bytes += asked;
}

/* ---- shared memory: 32 banks of 4 bytes; equal words are read once ---- */

/* Passes that the words of some lanes take. */
static uint32_t passes(const uint64_t *offset, uint32_t lanes, uint32_t size) {
    uint32_t words[32][LANES], used[32] = {0}, most = 0, first = (uint32_t)__builtin_ctz(lanes), row = 0;
    FOR_LANES(l, lanes) row |= (uint32_t)(offset[l] == offset[first] + (l - first) * size) << l;
    if (row == lanes) return 1; /* one after the other: 128 bytes at most */
    FOR_LANES(l, lanes)
    for (uint32_t word = (uint32_t)(offset[l] / 4), end = (uint32_t)((offset[l] + size + 3) / 4); word < end; word++) {
        uint32_t bank = word % 32, k = 0;
        while (k < used[bank] && words[bank][k] != word) k++;
        if (k < used[bank]) continue;
        words[bank][used[bank]++] = word;
        if (used[bank] > most) most = used[bank];
    }
    return most;
}

void count_shared(Block *b, const uint64_t offset[LANES], uint32_t active, uint32_t size) {
    b->counters.shared_accesses++;
    uint32_t lanes = size <= 4 ? 32 : size <= 8 ? 16 : size <= 16 ? 8 : 4; /* at once: 128 bytes */
    for (uint32_t at = 0; at < LANES; at += lanes) {
        uint32_t part = active & (lanes == 32 ? UINT32_MAX : ((1u << lanes) - 1) << at);
        if (part) b->counters.bank_conflicts += passes(offset, part, size) - 1;
    }
}

void count_matrix_rows(Block *b, const uint64_t offset[8]) {
    b->counters.bank_conflicts += passes(offset, 0xff, 16) - 1;
}
