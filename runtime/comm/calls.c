/* calls.c: amp_comm_calls: what sessions ask of a comm. */
#define _POSIX_C_SOURCE 200809L /* nanosleep, struct timespec */
#include <stddef.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/sums.h"

const amp_comm_calls amp_comm_state_calls = {
    .start = amp_comm_start, .wait = amp_comm_wait, .meet = amp_comm_meet, .does = amp_comm_does};
const amp_comm_calls amp_comm_device_calls = {.start = amp_comm_start,
                                              .wait = amp_comm_wait,
                                              .meet = amp_comm_meet,
                                              .does = amp_comm_does,
                                              .attach = amp_comm_attach,
                                              .detach = amp_comm_detach,
                                              .enqueue = amp_comm_enqueue,
                                              .put = amp_comm_put,
                                              .depart = amp_comm_depart,
                                              .arrive = amp_comm_arrive,
                                              .use = amp_comm_use};

/* ---- start ------------------------------------------------------------------------------------------------------- */

amp_status amp_comm_check_collective(const amp_comm_state *c, const amp_collective *new, amp_error *err) {
    const size_t size = amp_dtype_size(new->dtype);
    const bool sums = new->op != AMP_COLLECTIVE_ALL_GATHER &&new->op != AMP_COLLECTIVE_BROADCAST;
    const bool parts = new->op == AMP_COLLECTIVE_REDUCE_SCATTER || new->op == AMP_COLLECTIVE_REDUCE_SCATTER_TREE ||
                       new->op == AMP_COLLECTIVE_ALL_GATHER;
    if ((unsigned)new->op > AMP_COLLECTIVE_REDUCE_SCATTER_TREE)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: there is no collective %d", new->what, (int)new->op);
    if (!new->data &&new->count) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: data is NULL", new->what);
    if (sums ? !amp_sums_have(new->dtype) : !size)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %s %s", new->what, amp_dtype_name(new->dtype),
                        sums ? "cannot be summed; f32, f64, f16 and bf16 can" : "is not a type of elements");
    if (parts && new->count % (size_t)c->head.size)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %zu elements do not divide by %d ranks", new->what, new->count,
                        c->head.size);
    if (new->op == AMP_COLLECTIVE_BROADCAST && (new->root < 0 || new->root >= c->head.size))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: rank %d is not one of the %d ranks", new->what, new->root,
                        c->head.size);
    if (new->count > PTRDIFF_MAX / size)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %zu elements are more than memory can hold", new->what,
                        new->count);
    return AMP_OK;
}

void amp_comm_free_retired(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    amp_staging *s = c->retired;
    c->retired = NULL;
    pthread_mutex_unlock(&c->lock);
    for (amp_staging *next; s; s = next) {
        next = s->next;
        amp_free_aligned(&c->allocator, s, s->size, AMP_STAGING_ALIGN);
    }
}

/* What the lane lacks by the time that it gets there. */
static amp_status grow(const amp_comm_state *c, amp_collective *new, amp_error *err) {
    const amp_lane_world w = {.engine = c->engine->type,
                              .rank = c->head.rank,
                              .size = c->head.size,
                              .ordered = c->head.ordered,
                              .limits = &c->limits};
    const size_t need = amp_lane_staging(&w, new);
    new->grown = NULL;
    if (need <= c->planned[new->number % AMP_LANES]) return AMP_OK;
    const size_t size = sizeof *new->grown + need;
    new->grown = amp_alloc_aligned(&c->allocator, size, AMP_STAGING_ALIGN);
    if (!new->grown)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes that come from other ranks", new->what,
                        need);
    new->grown->size = size;
    return AMP_OK;
}

amp_collective *amp_comm_take_idle(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    amp_collective *new = c->idle;
    if (new) c->idle = new->next;
    pthread_mutex_unlock(&c->lock);
    return new ? new : amp_alloc(&c->allocator, sizeof *new);
}

void amp_comm_put_idle(amp_comm_state *c, amp_collective *old) {
    pthread_mutex_lock(&c->lock);
    old->next = c->idle;
    c->idle = old;
    pthread_mutex_unlock(&c->lock);
}

void amp_comm_queue(amp_comm_state *c, amp_collective *new) {
    pthread_mutex_lock(&c->lock);
    if (new->grown) c->planned[new->number % AMP_LANES] = new->grown->size - sizeof *new->grown;
    new->next = NULL;
    if (c->last) c->last->next = new;
    else c->first = new;
    c->last = new;
    c->next_number++;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

amp_status amp_comm_start(struct amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count,
                          int32_t root, const char *what, uint64_t *number, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    amp_collective wanted = {.number = c->next_number, /* which callers alone write */
                             .op = op,
                             .dtype = dtype,
                             .data = data,
                             .count = count,
                             .root = root,
                             .what = what ? what : "a collective"};
    bool busy;
    AMP_TRY(amp_comm_check(c, err));
    AMP_TRY(amp_comm_check_collective(c, &wanted, err));
    amp_comm_free_retired(c);
    amp_collective *new = amp_comm_take_idle(c);
    if (!new) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a collective", wanted.what);
    *new = wanted;
    amp_status status = grow(c, new, err);
    if (status) {
        amp_comm_put_idle(c, new);
        return status;
    }
    *number = wanted.number;
    amp_comm_queue(c, new);
    if (!c->started) amp_comm_drive(c, &busy);
    return AMP_OK;
}

/* ---- wait -------------------------------------------------------------------------------------------------------- */

/* The thread makes messages fail in time; this is for a thread that does not come back from the library.  Looks are
 * counted, and not the time, so that a process that was stopped for long and goes on finds no fault. */
static amp_status wait_for_thread(amp_comm_state *c, uint64_t number, amp_error *err) {
    enum { LOOKS = 12, LOOKS_OF_A_TIMEOUT = 8 };
    int32_t in_vain = 0;
    pthread_mutex_lock(&c->lock);
    uint64_t beats = c->beats;
    while (c->done <= number && !c->failure.code && in_vain < LOOKS) {
        const struct timespec t = amp_comm_clock(c->timeout / LOOKS_OF_A_TIMEOUT);
        if (!pthread_cond_timedwait(&c->news, &c->lock, &t)) continue;
        in_vain = beats == c->beats ? in_vain + 1 : 0;
        beats = c->beats;
    }
    pthread_mutex_unlock(&c->lock);
    if (in_vain < LOOKS) return AMP_OK;
    return amp_comm_fail(c, err, AMP_PEER_FAILED, "collective %llu: a call of %s has not returned for %.1f s",
                         (unsigned long long)number, c->engine->library,
                         (double)c->timeout * 1e-9 * LOOKS / LOOKS_OF_A_TIMEOUT);
}

static void drive_until(amp_comm_state *c, uint64_t number) {
    const struct timespec pause = {.tv_nsec = 50000};
    const int64_t spin = amp_nanoseconds() + 20000;
    c->moved = amp_nanoseconds(); /* nothing could move before */
    for (bool busy; c->done <= number;) {
        amp_comm_drive(c, &busy);
        if (!busy && amp_comm_check(c, NULL)) return;
        if (c->done <= number && amp_nanoseconds() > spin) nanosleep(&pause, NULL);
    }
}

amp_status amp_comm_wait(struct amp_comm *comm, uint64_t number, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (number >= c->next_number)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "collective %llu was not started: %llu were",
                        (unsigned long long)number, (unsigned long long)c->next_number);
    if (c->started) AMP_TRY(wait_for_thread(c, number, err));
    else drive_until(c, number);
    return amp_comm_check(c, err);
}

void amp_comm_does(amp_comm *comm, amp_rank_does what, int64_t step) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->does = what;
    c->step = step;
    pthread_mutex_unlock(&c->lock);
}
