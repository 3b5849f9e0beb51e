/* count.c: counters of exec.h: sectors of global memory, banks of shared memory. */
#include "fakecuda/exec/inner.h"

const char *const exec_kind_names[16] = {"int",  "f32",   "f64",    "f16",     "cvt",     "special", "pred",   "move",
                                         "load", "store", "atomic", "control", "barrier", "warp",    "tensor", "async"};

void exec_counters_add(ExecCounters *to, const ExecCounters *from) {
    uint64_t *t = (uint64_t *)to;
    const uint64_t *f = (const uint64_t *)from;
    for (size_t k = 0; k < sizeof *to / sizeof *t; k++) t[k] += f[k];
}

/* ---- global memory: 32-byte sectors ---- */

typedef struct Sectors {
    uint64_t number[2 * LANES];
    uint32_t bytes[2 * LANES]; /* those of each that are touched */
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
    if (row == lanes) return 1; /* one behind the other: 128 bytes at most */
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
