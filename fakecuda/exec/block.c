/* block.c: runs the warps of a block in a seeded order. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

enum { QUANTUM = 96, SPINNING = 1 << 26 /* warp instructions without anything that another warp could see */ };

uint32_t block_random(Block *b) { /* splitmix64, Steele, Lea and Flood 2014 */
    uint64_t z = b->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32 ^ z);
}

static void *aligned_bytes(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p) abort(); /* the host has no memory left */
    return memset(p, 0, (bytes + 64) / 64 * 64);
}

/* ---- special registers ---- */

static void set_special(Warp *w, PtxSpecial s, uint64_t value) {
    for (int l = 0; l < LANES; l++) {
        w->lanes->special[s][l] = (uint32_t)value;
        w->lanes->special64[s][l] = value;
    }
}

static void set_lanes_special(Block *b, Warp *w) {
    const uint32_t *n = b->dimensions;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t t = (uint32_t)w->index * LANES + l;
        const uint32_t values[][2] = {{PTX_TID_X, t % n[0]},
                                      {PTX_TID_Y, t / n[0] % n[1]},
                                      {PTX_TID_Z, t / n[0] / n[1]},
                                      {PTX_LANEID, l},
                                      {PTX_LANEMASK_EQ, 1u << l},
                                      {PTX_LANEMASK_LT, (1u << l) - 1},
                                      {PTX_LANEMASK_LE, (2u << l) - 1},
                                      {PTX_LANEMASK_GT, ~((2u << l) - 1)},
                                      {PTX_LANEMASK_GE, ~((1u << l) - 1)}};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            w->lanes->special64[values[k][0]][l] = w->lanes->special[values[k][0]][l] = values[k][1];
    }
}

static void set_launch_special(Block *b, Warp *w) {
    const ExecLaunch *launch = b->launch;
    for (int k = 0; k < 3; k++) {
        set_special(w, (PtxSpecial)(PTX_NTID_X + k), b->dimensions[k]);
        set_special(w, (PtxSpecial)(PTX_NCTAID_X + k), launch->grid[k]);
    }
    set_special(w, PTX_WARPID, (uint64_t)w->index);
    set_special(w, PTX_NWARPID, MAX_WARPS);
    set_special(w, PTX_NSMID, 16);
    set_special(w, PTX_DYNAMIC_SMEM_SIZE, launch->dynamic_shared);
    set_special(w, PTX_TOTAL_SMEM_SIZE, b->shared_size - SHARED_BASE);
    set_special(w, PTX_CLUSTER_NCTARANK, 1);
    for (int l = 0; l < LANES; l++) w->lanes->dynamic_shared64[l] = w->lanes->dynamic_shared[l] = b->dynamic_base;
    set_lanes_special(b, w);
}

static void set_block_special(Block *b, Warp *w) {
    for (int k = 0; k < 3; k++) set_special(w, (PtxSpecial)(PTX_CTAID_X + k), b->at[k]);
    set_special(w, PTX_SMID, b->linear % 16);
    set_special(w, PTX_CLUSTERID_X, b->at[0]);
}

/* ---- memory of a block ---- */

enum { RECURSION = 16384 /* bytes of local memory beyond what is known, for functions that call themselves */ };

Block *block_new(const ExecLaunch *launch, uint32_t epoch, bool many) {
    const ExecModule *m = launch->module;
    Block *b = aligned_bytes(sizeof *b);
    b->launch = launch;
    b->module = m;
    b->memory = m->memory;
    b->entry = &m->functions[function_index(m, launch->entry)];
    b->epoch = epoch;
    b->many = many;
    memcpy(b->dimensions, launch->block, sizeof b->dimensions);
    b->threads = launch->block[0] * launch->block[1] * launch->block[2];
    b->warp_count = (int)(b->threads + LANES - 1) / LANES;
    uint32_t align = b->entry->dynamic_align > 16 ? b->entry->dynamic_align : 16;
    b->dynamic_base = (b->entry->static_shared + align - 1) / align * align;
    b->shared_size = launch->dynamic_shared ? b->dynamic_base + launch->dynamic_shared : b->entry->static_shared;
    b->shared = aligned_bytes(b->shared_size);
    b->shared_written = aligned_bytes(b->shared_size);
    b->shared_bytes = aligned_bytes(b->shared_size * sizeof *b->shared_bytes);
    b->shared_words = aligned_bytes((b->shared_size / 4 + 1) * sizeof *b->shared_words);
    b->local_bytes = b->entry->stack_bytes + (b->entry->recursive ? RECURSION : 0);
    for (int v = 0; v < b->warp_count; v++) {
        Warp *w = &b->warps[v];
        uint32_t rest = b->threads - (uint32_t)v * LANES;
        w->index = v;
        w->block = b;
        w->exists = rest >= LANES ? UINT32_MAX : (1u << rest) - 1;
        w->lanes = aligned_bytes(sizeof *w->lanes);
        w->bases[BASE_WARP] = (uint8_t *)w->lanes;
        if (b->local_bytes) {
            w->local = aligned_bytes((size_t)b->local_bytes * LANES);
            w->local_written = aligned_bytes((size_t)b->local_bytes * LANES);
        }
        set_launch_special(b, w);
    }
    return b;
}

static void warp_free(Warp *w) {
    strands_free(w);
    free(w->lanes);
    free(w->local);
    free(w->local_written);
    free(w->copies);
}

void block_free(Block *b) {
    for (int v = 0; v < b->warp_count; v++) warp_free(&b->warps[v]);
    free(b->shared);
    free(b->shared_written);
    free(b->shared_bytes);
    free(b->shared_words);
    free(b->signals);
    free(b->deferred);
    free(b);
}

/* ---- running ---- */

static void begin_warp(Warp *w) {
    Block *b = w->block;
    strands_reset(w);
    Frame *frame = frame_new(w, b->entry);
    w->alive = w->exists;
    w->clock = 1;
    w->copy_count = 0;
    w->outcome = WARP_READY;
    memset(w->known, 0, sizeof w->known);
    memset(w->groups, 0, sizeof w->groups);
    if (b->local_bytes) memset(w->local_written, 0, (size_t)b->local_bytes * LANES);
    strand_add(w, &(Strand){.active = w->exists, .frame = frame});
    w->strand = &w->strands[0];
    set_block_special(b, w);
}

static void begin(Block *b, uint32_t linear) {
    const uint32_t *grid = b->launch->grid;
    b->linear = linear;
    b->at[0] = linear % grid[0];
    b->at[1] = linear / grid[0] % grid[1];
    b->at[2] = linear / grid[0] / grid[1];
    b->random = b->launch->seed * 0x9e3779b97f4a7c15ull + linear * 0xd1342543de82ef95ull;
    b->fenced = false;
    b->signal_count = b->deferred_count = 0;
    memset(b->shared_written, 0, b->shared_size);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->fence_clock, 0, sizeof b->fence_clock);
    race_forget(b);
    for (int v = 0; v < b->warp_count; v++) begin_warp(&b->warps[v]);
    b->counters.blocks++;
    b->counters.warps += (uint64_t)b->warp_count;
    b->progress = b->instructions;
}

/* A warp that can go on; -1: none.  |done|: all have left. */
static int choose_warp(Block *b, bool *done) {
    int ready[MAX_WARPS], count = 0;
    *done = true;
    for (int v = 0; v < b->warp_count; v++) {
        if (b->warps[v].outcome != WARP_DONE) *done = false;
        if (b->warps[v].outcome == WARP_READY) ready[count++] = v;
    }
    return count ? ready[count > 1 ? block_random(b) % (uint32_t)count : 0] : -1;
}

static bool too_long(Block *b, Warp *w) {
    uint64_t limit = b->launch->instruction_limit ? b->launch->instruction_limit : 1ull << 40;
    bool spins = b->instructions - b->progress > SPINNING;
    if (b->instructions <= limit && !spins) return false;
    const Strand *s = w->strand_count ? &w->strands[0] : NULL;
    if (!s) return false;
    w->strand = &w->strands[0];
    fault(w, &s->frame->function->code[s->pc], __builtin_ctz(s->active), EXEC_LAUNCH_FAILED,
          spins ? "deadlock: for %llu instructions of warps nothing has changed that another thread could see"
                : "deadlock: the limit of %llu instructions of warps is reached",
          (unsigned long long)(spins ? SPINNING : limit));
    return true;
}

bool block_run(Block *b, uint32_t linear) {
    begin(b, linear);
    for (;;) {
        bool done;
        int v = choose_warp(b, &done);
        if (done) break;
        if (v < 0) {
            block_stuck(b);
            return false;
        }
        Warp *w = &b->warps[v];
        Outcome outcome = warp_run(w, 1 + (int)(block_random(b) % QUANTUM));
        if (outcome == WARP_FAILED || b->fault || too_long(b, w)) return false;
        w->outcome = (uint8_t)outcome;
    }
    return true;
}
