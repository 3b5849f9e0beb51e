/* grid.c: checks a launch, then runs its blocks in a seeded order on one or several host threads, one by one or several
 * in turns, and the warps of a block in a seeded order; the message of a launch that failed. */
#define _POSIX_C_SOURCE 200809L
#include "fakecuda/exec/inner.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- the message of a launch that failed ------------------------------------------------------------------------- */

static int print_thread(const Block *b, int linear, char *to, size_t room) {
    uint32_t x = (uint32_t)linear % b->dimensions[0], y = (uint32_t)linear / b->dimensions[0] % b->dimensions[1];
    uint32_t z = (uint32_t)linear / b->dimensions[0] / b->dimensions[1];
    return snprintf(to, room, ", thread (%u,%u,%u)", x, y, z);
}

Step fault(Warp *w, const Inst *i, int lane, ExecFault kind, const char *format, ...) {
    Block *b = w->block;
    if (b->fault) return STEP_FAULT;
    b->fault = kind;
    const PtxInstruction *p = i->ptx;
    const char *inside = w->strand ? w->strand->frame->function->ptx->name : b->entry->ptx->name;
    char *to = b->message;
    size_t room = sizeof b->message, n = 0;
#define ADD(...) n += (size_t)snprintf(to + (n < room ? n : room), n < room ? room - n : 0, __VA_ARGS__)
    ADD("kernel %s", b->entry->ptx->name);
    if (strcmp(inside, b->entry->ptx->name)) ADD(" in %s", inside);
    ADD(", ptx line %d (%s), block (%u,%u,%u)", p->line, p->text, b->at[0], b->at[1], b->at[2]);
    if (lane >= 0 && n < room) n += (size_t)print_thread(b, w->index * LANES + lane, to + n, room - n);
    ADD(": ");
    if (n < room) {
        va_list args;
        va_start(args, format);
        n += (size_t)vsnprintf(to + n, room - n, format, args);
        va_end(args);
    }
    if (p->origin) ADD("; made from: %s", p->origin);
    else if (p->source_line > 0) ADD("; source line %d", p->source_line);
#undef ADD
    return STEP_FAULT;
}

/* ---- one block --------------------------------------------------------------------------------------------------- */

struct Launch {
    const ExecLaunch *what;
    uint64_t blocks, start, step; /* the kth block to run is (start + k * step) % blocks */
    uint64_t next;                /* atomic */
    int stop;                     /* atomic */
    int unwaited;                 /* atomic: blocks with threads that did not execute griddepcontrol.wait */
    uint32_t first_serial;        /* the kth has the serial first_serial + k: race_global.c */
    Order *order;
    int resident; /* of each host thread */
    bool many;
    pthread_mutex_t lock;
    uint64_t failed; /* the first block, in their order, that failed */
    ExecFault fault;
    char *message;
    size_t size;
    ExecCounters counters;
};

enum { QUANTUM = 96, SPINNING = 1 << 26 /* warp instructions without anything that another warp could see */ };

static uint32_t next_random(uint64_t *state) { /* splitmix64, Steele, Lea and Flood 2014 */
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32 ^ z);
}

uint32_t block_random(Block *b) { return next_random(&b->random); }

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

static Block *block_new(const Launch *all) {
    const ExecLaunch *launch = all->what;
    const ExecModule *m = launch->module;
    Block *b = aligned_bytes(sizeof *b);
    b->all = all;
    b->launch = launch;
    b->module = m;
    b->memory = m->memory;
    b->entry = &m->functions[function_index(m, launch->entry)];
    b->first_serial = all->first_serial;
    b->order = all->order;
    b->many = all->many;
    memcpy(b->dimensions, launch->block, sizeof b->dimensions);
    b->threads = launch->block[0] * launch->block[1] * launch->block[2];
    b->warp_count = (int)(b->threads + LANES - 1) / LANES;
    uint32_t align = b->entry->dynamic_align > 16 ? b->entry->dynamic_align : 16;
    b->dynamic_base = (b->entry->static_shared + align - 1) / align * align;
    b->shared_size = launch->dynamic_shared ? b->dynamic_base + launch->dynamic_shared : b->entry->static_shared;
    b->shared = aligned_bytes(b->shared_size);
    b->shared_written = aligned_bytes(b->shared_size);
    b->shared_bytes = calloc((size_t)(b->shared_size / 4 + 1) * 4, sizeof *b->shared_bytes); /* of whole words */
    if (!b->shared_bytes) abort(); /* the host has no memory left */
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

static void block_free(Block *b) {
    for (int v = 0; v < b->warp_count; v++) warp_free(&b->warps[v]);
    free(b->shared);
    free(b->shared_written);
    free(b->shared_bytes);
    free(b->shared_words);
    free(b->signals);
    free(b->deferred);
    free(b->seen);
    free(b->acquired);
    free(b);
}

/* ---- running ---- */

static void begin_warp(Warp *w) {
    Block *b = w->block;
    strands_reset(w);
    Frame *frame = frame_new(w, b->entry);
    w->alive = w->exists;
    w->waited = 0;
    w->clock = 1;
    w->instructions = w->polls = 0;
    memset(w->polled, 0, sizeof w->polled);
    w->copy_count = 0;
    w->outcome = WARP_READY;
    memset(&w->clocks, 0, sizeof w->clocks);
    memset(&w->own, 0, sizeof w->own);
    memset(&w->last_known, 0, sizeof w->last_known);
    memset(w->groups, 0, sizeof w->groups);
    if (b->local_bytes) memset(w->local_written, 0, (size_t)b->local_bytes * LANES);
    strand_add(w, &(Strand){.active = w->exists, .frame = frame});
    w->strand = &w->strands[0];
    set_block_special(b, w);
}

static uint32_t linear_of(const Launch *l, uint64_t k) {
    return (uint32_t)((l->start + (uint64_t)((unsigned __int128)k * l->step % l->blocks)) % l->blocks);
}

void block_at(const Block *b, uint32_t serial, uint32_t at[3]) {
    const uint32_t *grid = b->launch->grid;
    uint32_t linear = linear_of(b->all, serial - b->first_serial);
    at[0] = linear % grid[0];
    at[1] = linear / grid[0] % grid[1];
    at[2] = linear / grid[0] / grid[1];
}

static void begin(Block *b, uint32_t serial) {
    uint32_t linear = linear_of(b->all, serial - b->first_serial);
    b->serial = serial;
    b->linear = linear;
    block_at(b, serial, b->at);
    b->random = b->launch->seed * 0x9e3779b97f4a7c15ull + linear * 0xd1342543de82ef95ull;
    b->signal_count = b->deferred_count = b->seen_count = b->acquired_count = 0;
    b->clock_base = 0;
    memset(b->shared_written, 0, b->shared_size);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->fence_clock, 0, sizeof b->fence_clock);
    race_forget(b);
    for (int v = 0; v < b->warp_count; v++) begin_warp(&b->warps[v]);
    b->counters.blocks++;
    b->counters.warps += (uint64_t)b->warp_count;
    b->progress = b->instructions;
}

typedef enum BlockState { BLOCK_RUNS, BLOCK_DONE, BLOCK_FAILED } BlockState;

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

static void end(Block *b) {
    for (int v = 0; v < b->warp_count; v++)
        if (b->warps[v].instructions > b->counters.longest_warp) b->counters.longest_warp = b->warps[v].instructions;
}

/* One warp runs for a while. */
static BlockState step(Block *b) {
    bool done;
    int v = choose_warp(b, &done);
    if (done) return BLOCK_DONE;
    if (v < 0) {
        block_stuck(b);
        return BLOCK_FAILED;
    }
    Warp *w = &b->warps[v];
    Outcome outcome = warp_run(w, 1 + (int)(block_random(b) % QUANTUM));
    if (outcome == WARP_FAILED || b->fault || too_long(b, w)) return BLOCK_FAILED;
    w->outcome = (uint8_t)outcome;
    return BLOCK_RUNS;
}

/* A block is the same whenever it runs, but for what it reads from others. */
const Inst *block_place(const Block *b, uint32_t serial, uint32_t at[3], Watch watch) {
    enum { LONGEST = 1 << 20 }; /* it may wait for what comes no more */
    block_at(b, serial, at);
    if (b->many) return NULL; /* other threads run blocks on this memory */
    Launch all = *b->all;
    ExecLaunch what = *all.what;
    what.asked = NULL;
    what.instruction_limit = LONGEST;
    all.what = &what;
    all.order = NULL;
    Block *again = block_new(&all);
    again->watch = &watch;
    begin(again, serial);
    while (!watch.found && step(again) == BLOCK_RUNS) continue;
    block_free(again);
    return watch.found;
}

/* ---- all blocks -------------------------------------------------------------------------------------------------- */

/* ---- limits ---- */

static uint32_t shared_limit(int arch) {
    static const struct {
        int arch, kilobytes;
    } limits[] = {{75, 64}, {80, 163}, {86, 99}, {89, 99}, {90, 227}, {120, 99}};
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
        if (limits[k].arch == arch) return (uint32_t)limits[k].kilobytes * 1024;
    return 48 * 1024;
}

static bool check(const ExecLaunch *l, char *message, size_t size) {
    ExecKernelInfo info;
    if (!exec_kernel_info(l->module, l->entry, &info))
        return snprintf(message, size, "there is no kernel %s", l->entry), false;
    const PtxFunction *f = l->module->functions[function_index(l->module, l->entry)].ptx;
    static const uint64_t most_blocks[3] = {2147483647, 65535, 65535}, most_threads[3] = {1024, 1024, 64};
    const char *const axis[] = {"x", "y", "z"};
    for (int k = 0; k < 3; k++) {
        if (!l->grid[k] || l->grid[k] > most_blocks[k])
            return snprintf(message, size, "kernel %s: a grid of %u blocks in %s; 1 to %llu are possible", l->entry,
                            l->grid[k], axis[k], (unsigned long long)most_blocks[k]),
                   false;
        if (!l->block[k] || l->block[k] > most_threads[k])
            return snprintf(message, size, "kernel %s: a block of %u threads in %s; 1 to %llu are possible", l->entry,
                            l->block[k], axis[k], (unsigned long long)most_threads[k]),
                   false;
        int required = f->required_threads[k];
        if (f->required_threads[0] && l->block[k] != (uint32_t)(required ? required : 1))
            return snprintf(message, size, "kernel %s: a block of %u threads in %s; .reqntid asks for %d", l->entry,
                            l->block[k], axis[k], required ? required : 1),
                   false;
        if (l->cluster[k] > 1) return snprintf(message, size, "kernel %s: clusters are not supported", l->entry), false;
    }
    if (f->cluster[0] > 1 || f->cluster[1] > 1 || f->cluster[2] > 1)
        return snprintf(message, size, "kernel %s: clusters are not supported", l->entry), false;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (threads > (uint64_t)info.max_threads)
        return snprintf(message, size, "kernel %s: a block of %llu threads; at most %d are possible", l->entry,
                        (unsigned long long)threads, info.max_threads),
               false;
    if (info.static_shared > 48 * 1024)
        return snprintf(message, size, "kernel %s: %d bytes of static shared memory; at most 49152 are possible",
                        l->entry, info.static_shared),
               false;
    uint64_t shared = (uint64_t)info.static_shared + l->dynamic_shared;
    int arch = l->module->context.arch;
    if (shared > shared_limit(arch))
        return snprintf(message, size, "kernel %s: %llu bytes of shared memory; sm_%d has %u", l->entry,
                        (unsigned long long)shared, arch, shared_limit(arch)),
               false;
    if (info.local_bytes > 512 * 1024)
        return snprintf(message, size, "kernel %s: %d bytes of local memory; 524288 are possible", l->entry,
                        info.local_bytes),
               false;
    if (info.param_bytes && !l->params)
        return snprintf(message, size, "kernel %s: no parameters are given", l->entry), false;
    return true;
}

/* ---- order ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void choose_order(Launch *l) {
    uint64_t seed = l->what->seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    l->start = (seed >> 33) % l->blocks;
    l->step = (seed >> 11) % l->blocks;
    while (!l->step || common_divisor(l->step, l->blocks) != 1)
        l->step = (l->step + 1) % (l->blocks > 1 ? l->blocks : 2);
}

/* ---- running ---- */

/* The blocks that one host thread runs in turns: blocks[0 .. count) are resident, those up to |made| are free. */
typedef struct Residents {
    Launch *launch;
    Block **blocks;
    int count, made;
    uint64_t random;
} Residents;

static void fill(Residents *r) {
    Launch *l = r->launch;
    while (r->count < l->resident && __atomic_load_n(&l->next, __ATOMIC_RELAXED) < l->blocks) {
        uint64_t k = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (k >= l->blocks) return;
        if (r->count == r->made) r->blocks[r->made++] = block_new(l);
        begin(r->blocks[r->count++], l->first_serial + (uint32_t)k);
    }
}

/* Blocks wait for what only a block could do that has no place before one of them ends.  Other host threads may still
 * do it. */
static bool all_wait(const Residents *r, Block *b) {
    if (!r->launch->order || r->launch->many || !order_waits(b)) return false;
    for (int k = 0; k < r->count; k++)
        if (!order_waits(r->blocks[k])) return false;
    Warp *w = b->warps;
    while (w->outcome != WARP_READY) w++;
    w->strand = &w->strands[0];
    const Inst *i = &w->strand->frame->function->code[w->strand->pc];
    int lane = __builtin_ctz(w->strand->active);
    uint64_t left = r->launch->blocks - r->launch->next;
    if (left)
        fault(w, i, lane, EXEC_LAUNCH_FAILED,
              "deadlock: waits for a block that is not resident: each of %d resident blocks polls memory that "
              "no block changes, and %llu of %llu blocks have not begun",
              r->count, (unsigned long long)left, (unsigned long long)r->launch->blocks);
    else
        fault(w, i, lane, EXEC_LAUNCH_FAILED,
              "deadlock: each of the %d blocks that have not ended polls memory that no block changes", r->count);
    return true;
}

/* The block that failed; NULL: none. */
static Block *run_residents(Residents *r) {
    while (!__atomic_load_n(&r->launch->stop, __ATOMIC_RELAXED)) {
        fill(r);
        if (!r->count) return NULL;
        int at = r->count > 1 ? (int)(next_random(&r->random) % (uint32_t)r->count) : 0;
        Block *b = r->blocks[at];
        BlockState state = step(b);
        if (state == BLOCK_FAILED || (state == BLOCK_RUNS && all_wait(r, b))) return b;
        if (state == BLOCK_RUNS) continue;
        end(b);
        if (!dependent_waited(b)) __atomic_store_n(&r->launch->unwaited, 1, __ATOMIC_RELAXED);
        r->blocks[at] = r->blocks[--r->count];
        r->blocks[r->count] = b;
    }
    return NULL;
}

static void *work(void *argument) {
    Launch *l = argument;
    Residents r = {
        .launch = l, .random = l->what->seed, .blocks = aligned_bytes((size_t)l->resident * sizeof(Block *))};
    Block *failed = run_residents(&r);
    for (int k = 0; k < r.count; k++) end(r.blocks[k]);
    pthread_mutex_lock(&l->lock);
    if (failed && failed->serial - l->first_serial < l->failed) {
        l->failed = failed->serial - l->first_serial;
        l->fault = failed->fault;
        snprintf(l->message, l->size, "%s", failed->message);
        __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    }
    for (int k = 0; k < r.made; k++) exec_counters_add(&l->counters, &r.blocks[k]->counters);
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < r.made; k++) block_free(r.blocks[k]);
    free(r.blocks);
    return NULL;
}

/* Of each host thread. */
static int resident_blocks(const Launch *l, int threads) {
    int asked = l->what->resident < 1 ? EXEC_RESIDENT : l->what->resident;
    if (asked > EXEC_MOST_RESIDENT) asked = EXEC_MOST_RESIDENT;
    return l->order ? (asked + threads - 1) / threads : 1;
}

/* Whether the kernel, or what it may call, could order blocks or wait for one. */
static bool orders_blocks(const ExecModule *m, const char *entry) {
    const Function *f = &m->functions[function_index(m, entry)];
    if (f->orders || !f->calls) return f->orders;
    for (int k = 0; k < m->ptx->function_count; k++)
        if (m->functions[k].orders && !m->functions[k].ptx->is_entry) return true;
    return false;
}

ExecFault exec_launch(const ExecLaunch *launch, ExecCounters *counters, char *message, size_t size) {
    if (size) *message = 0;
    if (!check(launch, message, size)) return EXEC_INVALID_LAUNCH;
    int threads = launch->threads < 1 ? 1 : launch->threads > 64 ? 64 : launch->threads;
    Launch l = {.what = launch,
                .blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
                .message = message,
                .size = size,
                .failed = UINT64_MAX};
    if (l.blocks > MOST_SERIALS)
        return snprintf(message, size, "kernel %s: %llu blocks; the stand-in runs at most %d", launch->entry,
                        (unsigned long long)l.blocks, MOST_SERIALS),
               EXEC_INVALID_LAUNCH;
    if ((uint64_t)threads > l.blocks) threads = (int)l.blocks;
    l.many = threads > 1;
    l.first_serial = memory_serials(launch->module->memory, l.blocks);
    if (orders_blocks(launch->module, launch->entry)) {
        if (!memory_need_stamps(launch->module->memory))
            return snprintf(message, size, "the host has no memory left"), EXEC_OUT_OF_MEMORY;
        l.order = order_new(l.first_serial, l.blocks);
    }
    l.resident = resident_blocks(&l, threads);
    pthread_mutex_init(&l.lock, NULL);
    choose_order(&l);
    pthread_t others[64];
    int started = 0;
    while (started < threads - 1 && !pthread_create(&others[started], NULL, work, &l)) started++;
    work(&l);
    for (int k = 0; k < started; k++) pthread_join(others[k], NULL);
    pthread_mutex_destroy(&l.lock);
    order_free(l.order, l.blocks);
    if (counters) exec_counters_add(counters, &l.counters);
    if (launch->beside) {
        launch->beside->start = l.first_serial;
        launch->beside->waited = !l.unwaited;
    }
    return l.fault;
}
