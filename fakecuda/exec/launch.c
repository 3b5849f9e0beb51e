/* launch.c: checks a launch, then runs its blocks in a seeded order on one or several host threads. */
#define _POSIX_C_SOURCE 200809L
#include "fakecuda/exec/inner.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Launch {
    const ExecLaunch *what;
    uint64_t blocks, start, step; /* the kth block to run is (start + k * step) % blocks */
    uint64_t next;                /* atomic */
    int stop;                     /* atomic */
    uint32_t epoch;
    bool many;
    pthread_mutex_t lock;
    uint64_t failed; /* the first block, in their order, that failed */
    ExecFault fault;
    char *message;
    size_t size;
    ExecCounters counters;
} Launch;

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

static void *work(void *argument) {
    Launch *l = argument;
    Block *b = block_new(l->what, l->epoch, l->many);
    uint64_t k = 0;
    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        k = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (k >= l->blocks) break;
        uint64_t at = (l->start + (uint64_t)((unsigned __int128)k * l->step % l->blocks)) % l->blocks;
        if (!block_run(b, (uint32_t)at)) break;
    }
    pthread_mutex_lock(&l->lock);
    if (b->fault && k < l->failed) {
        l->failed = k;
        l->fault = b->fault;
        snprintf(l->message, l->size, "%s", b->message);
        __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    }
    exec_counters_add(&l->counters, &b->counters);
    pthread_mutex_unlock(&l->lock);
    block_free(b);
    return NULL;
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
    if (l.blocks > UINT32_MAX)
        return snprintf(message, size, "kernel %s: more than 2^32 blocks", launch->entry), EXEC_INVALID_LAUNCH;
    if ((uint64_t)threads > l.blocks) threads = (int)l.blocks;
    l.many = threads > 1;
    l.epoch = ++launch->module->memory->launches;
    pthread_mutex_init(&l.lock, NULL);
    choose_order(&l);
    pthread_t others[64];
    int started = 0;
    while (started < threads - 1 && !pthread_create(&others[started], NULL, work, &l)) started++;
    work(&l);
    for (int k = 0; k < started; k++) pthread_join(others[k], NULL);
    pthread_mutex_destroy(&l.lock);
    if (counters) exec_counters_add(counters, &l.counters);
    return l.fault;
}
