/* pool.c: see pool.h. */
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "runtime/device/cpu/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    LINE = 64,            /* bytes of a cache line: what threads write is on separate lines */
    SPINS_IN_JOB = 20000, /* about 0.5 ms before a barrier yields */
    SPINS_IDLE = 100000,  /* about 3 ms before an idle worker sleeps */
    SPINS_CROWDED = 200,  /* the same where threads share processors */
    YIELDS = 50           /* before a futex */
};

struct amp_pool {
    amp_allocator allocator;
    int32_t threads, started;
    int spins_in_job, spins_idle;
    bool quit;
    amp_pool_job job;
    void *ctx;
    pthread_t *workers;
    struct worker_start *starts;
    _Alignas(LINE) atomic_int generation; /* of jobs */
    _Alignas(LINE) atomic_int sleepers;   /* workers that may be in a futex on generation */
    _Alignas(LINE) atomic_int arrived;    /* at the barrier */
    _Alignas(LINE) atomic_int phase;      /* of the barrier */
    atomic_int phase_sleepers;
};

typedef struct worker_start {
    amp_pool *pool;
    int32_t thread;
} worker_start;

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static void futex_wait(atomic_int *word, int seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void futex_wake_all(atomic_int *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

/* Returns when |word| is no longer |seen|. */
static void wait_for_change(atomic_int *word, int seen, int spins, atomic_int *sleepers) {
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) return;
        pause_cpu();
    }
    for (int i = 0; i < YIELDS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) return;
        sched_yield();
    }
    atomic_fetch_add(sleepers, 1);
    while (atomic_load(word) == seen) futex_wait(word, seen);
    atomic_fetch_sub(sleepers, 1);
}

/* Sequentially consistent, so that a sleeper is seen or sees the change. */
static void change(atomic_int *word, int value, atomic_int *sleepers) {
    atomic_store(word, value);
    if (atomic_load(sleepers)) futex_wake_all(word);
}

void amp_pool_barrier(amp_pool *p) {
    if (p->threads == 1) return;
    int phase = atomic_load_explicit(&p->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->threads - 1) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
        change(&p->phase, (phase + 1) & INT_MAX, &p->phase_sleepers);
    } else {
        wait_for_change(&p->phase, phase, p->spins_in_job, &p->phase_sleepers);
    }
}

static void *work(void *start) {
    amp_pool *p = ((worker_start *)start)->pool;
    int32_t thread = ((worker_start *)start)->thread;
    for (int seen = 0;;) {
        wait_for_change(&p->generation, seen, p->spins_idle, &p->sleepers);
        seen = (seen + 1) & INT_MAX;
        if (p->quit) return NULL;
        p->job(p->ctx, thread);
        amp_pool_barrier(p);
    }
}

void amp_pool_run(amp_pool *p, amp_pool_job job, void *ctx) {
    if (p->threads == 1) {
        job(ctx, 0);
        return;
    }
    p->job = job;
    p->ctx = ctx;
    change(&p->generation, (atomic_load_explicit(&p->generation, memory_order_relaxed) + 1) & INT_MAX, &p->sleepers);
    job(ctx, 0);
    amp_pool_barrier(p);
}

static size_t workers_bytes(const amp_pool *p) {
    return (size_t)p->threads * (sizeof(pthread_t) + sizeof(worker_start));
}

size_t amp_pool_bytes(const amp_pool *p) { return sizeof *p + workers_bytes(p); }
int32_t amp_pool_threads(const amp_pool *p) { return p->threads; }

static int32_t processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

amp_status amp_pool_create(int32_t threads, const amp_allocator *allocator, amp_pool **out, amp_error *err) {
    *out = NULL;
    int32_t online = processors();
    if (threads == 0) threads = online;
    amp_pool *p = amp_alloc_zeroed_aligned(allocator, sizeof *p, LINE);
    if (!p) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for threads");
    p->allocator = *allocator;
    p->threads = threads;
    bool crowded = threads > online;
    p->spins_in_job = crowded ? SPINS_CROWDED : SPINS_IN_JOB;
    p->spins_idle = crowded ? SPINS_CROWDED : SPINS_IDLE;
    p->workers = amp_alloc_zeroed(allocator, workers_bytes(p));
    if (!p->workers) {
        amp_pool_destroy(p);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d threads", threads);
    }
    p->starts = (worker_start *)(p->workers + threads);
    for (int32_t i = 1; i < threads; i++) {
        p->starts[i] = (worker_start){p, i};
        int failed = pthread_create(&p->workers[i], NULL, work, &p->starts[i]);
        if (failed) {
            amp_pool_destroy(p);
            return amp_fail_errno(err, AMP_UNSUPPORTED, failed, "thread %d of %d could not be started; ask for fewer",
                                  i + 1, threads);
        }
        p->started = i;
    }
    *out = p;
    return AMP_OK;
}

void amp_pool_destroy(amp_pool *p) {
    if (!p) return;
    p->quit = true;
    change(&p->generation, (atomic_load(&p->generation) + 1) & INT_MAX, &p->sleepers);
    for (int32_t i = 1; i <= p->started; i++) pthread_join(p->workers[i], NULL);
    amp_allocator a = p->allocator;
    amp_free(&a, p->workers, workers_bytes(p));
    amp_free_aligned(&a, p, sizeof *p, LINE);
}
