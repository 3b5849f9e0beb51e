/* pool.c: see pool.h.
 *
 * The word |work| holds the number of a run and how many of its tasks are left.  To take a task is to subtract one:
 * what the subtraction returns says which task it was, of whatever run is current by then.  The caller begins another
 * run when all tasks of the last one are done, so what describes a run does not change while somebody holds one of its
 * tasks, and who holds none does not look at it.
 */
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "runtime/device/cpu/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/float_environment.h"
#include "base/futex.h"
#include "base/thread.h"

enum {
    LINE = 64,       /* bytes of a cache line: what threads write is on separate lines */
    STACK = 1 << 20, /* of a worker: kernels take a few kB; the rest is for a program with much thread-local data */
    PAUSES = 32,     /* between two looks at the clock */
    BIAS = 1 << 16,  /* what |work| holds when no task is left: several threads may then subtract at once */
    SLICE = 1 << 30  /* tasks of a run that fit */
};

/* Nanoseconds of spinning.  A futex costs some 50 us until a sleeper runs again: to spin longer than that for somebody
 * who may not be scheduled wastes more than it can save. */
enum {
    SPIN_FOR_TASK = 50000,   /* the caller, for a task that a worker holds */
    SPIN_IN_CALL = 100000,   /* a worker, for the next run of a call */
    SPIN_IDLE_MAX = 1000000, /* a worker, between calls that follow each other closely */
    SPIN_SHORT = 5000,       /* between calls that do not, and where threads share processors */
    GAP_MAX = 2000000        /* a pause between calls counts as this at most */
};

typedef struct Worker {
    amp_pool *pool;
    pthread_t thread;
    int32_t index;
} Worker;

struct amp_pool {
    amp_allocator allocator;
    int32_t threads, started;
    int32_t active; /* threads of this call */
    bool crowded;   /* more threads than processors */
    pid_t process;  /* that the workers are in */
    bool in_call;
    int64_t last_end, gap; /* when the last call ended, and how long pauses between calls are of late */
    Worker *workers;
    amp_outside_threads outside;       /* in place of workers */
    _Alignas(LINE) atomic_ullong work; /* run << 32 | BIAS + tasks left */
    amp_pool_task task;
    void *ctx;
    int64_t first, count;             /* the run's tasks are |first| and the |count - 1| after it */
    _Alignas(LINE) atomic_int done;   /* tasks that workers have done of the run */
    atomic_int waiting;               /* the caller may be in a futex on |done| */
    _Alignas(LINE) atomic_int wakes;  /* a worker sleeps until it changes */
    atomic_int sleepers;              /* workers that may be in a futex on |wakes| */
    _Alignas(LINE) atomic_llong spin; /* nanoseconds that workers spin now */
    atomic_bool quit;
};

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#else
    sched_yield();
#endif
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static int64_t left(unsigned long long work) { return (int64_t)(work & UINT32_MAX) - BIAS; }

static bool is_work(amp_pool *p) { return left(atomic_load_explicit(&p->work, memory_order_relaxed)) > 0; }

/* How many tasks this thread did. */
static int do_tasks(amp_pool *p, int32_t thread) {
    int done = 0;
    while (is_work(p)) {
        int64_t remaining = left(atomic_fetch_sub_explicit(&p->work, 1, memory_order_acq_rel));
        if (remaining <= 0) break;
        p->task(p->ctx, p->first + p->count - remaining, thread);
        done++;
    }
    return done;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static bool is_called(amp_pool *p) { return is_work(p) || atomic_load_explicit(&p->quit, memory_order_relaxed); }

static bool spin_for_work(amp_pool *p) {
    for (int64_t start = amp_nanoseconds();;) {
        for (int i = 0; i < PAUSES; i++) {
            if (is_called(p)) return true;
            pause_cpu();
        }
        if (amp_nanoseconds() - start >= atomic_load_explicit(&p->spin, memory_order_relaxed)) return false;
    }
}

static void wait_for_work(amp_pool *p) {
    if (spin_for_work(p)) return;
    atomic_fetch_add(&p->sleepers, 1);
    for (;;) {
        int seen = atomic_load(&p->wakes);
        if (left(atomic_load(&p->work)) > 0 || atomic_load(&p->quit)) break;
        amp_futex_wait(&p->wakes, seen);
    }
    atomic_fetch_sub(&p->sleepers, 1);
}

static void *work(void *start) {
    Worker *w = start;
    amp_pool *p = w->pool;
    amp_float_environment_enter();
    while (!atomic_load_explicit(&p->quit, memory_order_acquire)) {
        int done = do_tasks(p, w->index);
        if (!done) {
            wait_for_work(p);
            continue;
        }
        atomic_fetch_add(&p->done, done);
        if (atomic_load(&p->waiting)) amp_futex_wake(&p->done, 1);
    }
    return NULL;
}

/* Sequentially consistent, as in wait_for_work: a sleeper is seen or sees the change. */
static void wake(amp_pool *p, int count) {
    if (!atomic_load(&p->sleepers)) return;
    atomic_fetch_add(&p->wakes, 1);
    amp_futex_wake(&p->wakes, count);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static void wait_for_workers(amp_pool *p, int tasks) {
    if (atomic_load_explicit(&p->done, memory_order_acquire) == tasks) return;
    int64_t limit = p->crowded ? SPIN_SHORT : SPIN_FOR_TASK;
    for (int64_t start = amp_nanoseconds(); amp_nanoseconds() - start < limit;)
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&p->done, memory_order_acquire) == tasks) return;
            pause_cpu();
        }
    atomic_store(&p->waiting, 1);
    for (int seen; (seen = atomic_load(&p->done)) != tasks;) amp_futex_wait(&p->done, seen);
    atomic_store(&p->waiting, 0);
}

static void run_slice(amp_pool *p, int64_t first, int64_t count) {
    unsigned long long run = (atomic_load_explicit(&p->work, memory_order_relaxed) >> 32) + 1;
    p->first = first;
    p->count = count;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store(&p->work, run << 32 | (unsigned long long)(BIAS + count));
    wake(p, (int)(count - 1 < p->threads ? count - 1 : p->threads));
    int mine = do_tasks(p, 0);
    wait_for_workers(p, (int)count - mine);
}

/* ---- the application's threads ----------------------------------------------------------------------------------- */

typedef struct OutsideRun {
    amp_pool_task task;
    void *ctx;
    int64_t count;
    atomic_llong next;
} OutsideRun;

static void take_tasks(OutsideRun *r, int32_t share) {
    for (int64_t i; (i = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) < r->count;)
        r->task(r->ctx, i, share);
}

static void run_share(void *run, int32_t share) {
    amp_float_environment before = amp_float_environment_enter();
    take_tasks(run, share);
    amp_float_environment_leave(before);
}

/* What a pool that is being shut down has not run is done here. */
static void run_outside(const amp_pool *p, amp_pool_task task, void *ctx, int64_t count) {
    OutsideRun r = {.task = task, .ctx = ctx, .count = count};
    p->outside.run(p->outside.user, run_share, &r, count < p->threads ? (int32_t)count : p->threads);
    take_tasks(&r, 0);
}

void amp_pool_run(amp_pool *p, amp_pool_task task, void *ctx, int64_t count) {
    if (p->active == 1 || count <= 1) {
        for (int64_t i = 0; i < count; i++) task(ctx, i, 0);
        return;
    }
    if (p->outside.run) {
        run_outside(p, task, ctx, count);
        return;
    }
    p->task = task;
    p->ctx = ctx;
    for (int64_t first = 0; first < count; first += SLICE)
        run_slice(p, first, count - first < SLICE ? count - first : SLICE);
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

static amp_status start_workers(amp_pool *p, amp_error *err) {
    p->process = getpid();
    for (p->started = 0; p->started < p->threads - 1; p->started++) {
        Worker *w = &p->workers[p->started];
        w->pool = p;
        w->index = p->started + 1;
        int failed = amp_thread_start(&w->thread, STACK, work, w);
        if (failed)
            return amp_fail_errno(err, AMP_UNSUPPORTED, failed, "thread %d of %d could not be started; ask for fewer",
                                  w->index + 1, p->threads);
    }
    return AMP_OK;
}

/* The workers of the parent process are not here, and what they last wrote does not hold. */
static amp_status restart_workers(amp_pool *p, amp_error *err) {
    if (p->in_call)
        return amp_fail(err, AMP_WRONG_STATE,
                        "the process was forked while another thread was in a call of this session: "
                        "make a new one in the child");
    atomic_store(&p->sleepers, 0);
    return start_workers(p, err);
}

/* Workers spin through pauses about as long as the last ones were; where those are long they sleep at once. */
static int64_t idle_spin(const amp_pool *p) {
    return p->crowded || 2 * p->gap > 3 * (SPIN_IDLE_MAX / 2) ? SPIN_SHORT
           : 2 * p->gap > SPIN_IDLE_MAX                       ? SPIN_IDLE_MAX
           : 2 * p->gap > SPIN_FOR_TASK                       ? 2 * p->gap
                                                              : SPIN_FOR_TASK;
}

bool amp_pool_is_outside(const amp_pool *p) { return p->outside.run != NULL; }

bool amp_pool_is_asleep(amp_pool *p) {
    return atomic_load_explicit(&p->sleepers, memory_order_relaxed) == p->threads - 1;
}

amp_status amp_pool_begin(amp_pool *p, int32_t threads, amp_error *err) {
    p->active = threads;
    if (p->threads == 1 || p->outside.run) return AMP_OK;
    if (p->process != getpid()) AMP_TRY(restart_workers(p, err));
    int64_t gap = amp_nanoseconds() - p->last_end;
    p->gap = (p->gap + (gap < GAP_MAX ? gap : GAP_MAX)) / 2;
    p->in_call = true;
    atomic_store_explicit(&p->spin, threads == 1 || p->crowded ? SPIN_SHORT : SPIN_IN_CALL, memory_order_relaxed);
    return AMP_OK;
}

void amp_pool_end(amp_pool *p) {
    if (p->threads == 1 || p->outside.run) return;
    atomic_store_explicit(&p->spin, p->active == 1 ? SPIN_SHORT : idle_spin(p), memory_order_relaxed);
    p->in_call = false;
    p->last_end = amp_nanoseconds();
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static size_t workers_bytes(const amp_pool *p) { return (size_t)p->threads * sizeof(Worker); }

size_t amp_pool_bytes(const amp_pool *p) { return sizeof *p + workers_bytes(p); }
int32_t amp_pool_threads(const amp_pool *p) { return p->threads; }

int32_t amp_pool_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

amp_status amp_pool_create_outside(int32_t threads, const amp_outside_threads *outside, const amp_allocator *allocator,
                                   amp_pool **out, amp_error *err) {
    *out = NULL;
    int32_t online = amp_pool_processors();
    if (threads == 0) threads = online;
    amp_pool *p = amp_alloc_zeroed_aligned(allocator, sizeof *p, LINE);
    if (!p) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for threads");
    p->allocator = *allocator;
    p->threads = p->active = threads;
    p->crowded = threads > online;
    p->last_end = amp_nanoseconds();
    atomic_store(&p->work, BIAS);
    atomic_store(&p->spin, SPIN_SHORT);
    p->outside = *outside;
    p->workers = amp_alloc_zeroed(allocator, workers_bytes(p));
    amp_status status = AMP_OK;
    if (!p->workers) status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d threads", threads);
    else if (!outside->run) status = start_workers(p, err);
    if (status) amp_pool_destroy(p);
    else *out = p;
    return status;
}

amp_status amp_pool_create(int32_t threads, const amp_allocator *allocator, amp_pool **out, amp_error *err) {
    return amp_pool_create_outside(threads, &(amp_outside_threads){NULL, NULL}, allocator, out, err);
}

void amp_pool_destroy(amp_pool *p) {
    if (!p) return;
    atomic_store(&p->quit, true);
    wake(p, INT_MAX);
    for (int32_t i = 0; p->process == getpid() && i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
    amp_allocator a = p->allocator;
    amp_free(&a, p->workers, workers_bytes(p));
    amp_free_aligned(&a, p, sizeof *p, LINE);
}
