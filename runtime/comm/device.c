/* device.c: collectives on memory of devices.
 *
 * The caller enqueues them; in the queue and the lanes they stand like others, so that numbers, deadlines, the roll
 * call and the first failure are the same for both.  The thread has nothing to move: it looks how far the stream is.
 *
 *   stream   ... before | collectives | after ...
 *
 * The clock runs from |before| on, as a device that computes waits for no rank.  When the comm fails, users are told
 * first, if something is under way that later work uses, so that they take no result for good; and then what is under
 * way is ended: a stream that waits for a dead rank would wait for ever, and with it the host.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/comm.h"

/* ---- attaching --------------------------------------------------------------------------------------------------- */

amp_status amp_comm_use_nccl(amp_comm_state *c, amp_nccl *n, amp_error *err) {
    pthread_mutex_lock(&c->lock);
    c->nccl = n;
    c->head.calls = &amp_comm_device_calls;
    pthread_mutex_unlock(&c->lock);
    if (c->started) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "the engine \"nccl\" needs a thread of its own: initialise MPI with MPI_THREAD_MULTIPLE");
}

/* This rank's own failure, which the others are told. */
static amp_status fail_own(amp_comm_state *c, const amp_error *said, amp_error *err) {
    amp_comm_give_up(&c->head, said->message);
    return amp_comm_check(c, err);
}

static void nap(void) {
    const struct timespec t = {.tv_nsec = 50000};
    nanosleep(&t, NULL);
}

/* Until what |call| began is on its way by itself.  It may have to wait for other ranks: |end| says how long, 0: as
 * long as the thread allows. */
static amp_status wait_for_nccl(amp_comm_state *c, const char *call, int64_t end, amp_error *err) {
    bool ready = false;
    amp_error said;
    for (;; nap()) {
        amp_status status = amp_nccl_poll(c->nccl, call, &ready, &said);
        AMP_TRY(amp_comm_check(c, err)); /* what ended it, if the thread did */
        if (status) return fail_own(c, &said, err);
        if (ready) return AMP_OK;
        if (!end || amp_nanoseconds() < end) continue;
        amp_fail(&said, AMP_PEER_FAILED, "%s timed out; check the network between the hosts (%s)", call, c->nccl->name);
        return fail_own(c, &said, err);
    }
}

/* What each rank sends the others before their devices are joined; of the id, rank 0's counts. */
typedef struct Card {
    int32_t version, given;
    NcclId id;
} Card;

static amp_status compare_cards(amp_comm_state *c, const Card *all, amp_error *err) {
    for (int32_t r = 1; r < c->head.size; r++) {
        if (all[r].version != all[0].version)
            return amp_comm_fail(c, err, AMP_MISMATCH,
                                 "rank %d has version %d of NCCL, rank 0 version %d: give all ranks the same", r,
                                 (int)all[r].version, (int)all[0].version);
        if (all[r].given != all[0].given)
            return amp_comm_fail(c, err, AMP_MISMATCH,
                                 "rank %d was%s given a communicator of NCCL, rank 0 was%s: all call "
                                 "amp_comm_from_nccl, or none",
                                 r, all[r].given ? "" : " not", all[0].given ? "" : " not");
    }
    return AMP_OK;
}

static amp_status join_by(amp_comm_state *c, const Card *all, amp_error *err) {
    const int64_t least = (int64_t)c->engine->connect_seconds * 1000000000;
    amp_error said;
    AMP_TRY(compare_cards(c, all, err));
    if (amp_nccl_join(c->nccl, &all[0].id, c->head.rank, c->head.size, &said)) return fail_own(c, &said, err);
    return wait_for_nccl(c, "ncclCommInitRankConfig", amp_nanoseconds() + (c->timeout > least ? c->timeout : least),
                         err);
}

static amp_status join_devices(amp_comm_state *c, amp_error *err) {
    const size_t bytes = (size_t)c->head.size * sizeof(Card);
    Card mine = {.version = c->nccl->version, .given = c->nccl->given != NULL}, *all = amp_alloc(&c->allocator, bytes);
    amp_error said;
    if (!all) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to join the devices of %d ranks", c->head.size);
    amp_status status = AMP_OK;
    if (!c->head.rank && !mine.given && amp_nccl_make_id(c->nccl, &mine.id, &said)) status = fail_own(c, &said, err);
    if (!status) status = amp_comm_meet(&c->head, &mine, sizeof mine, all, "the devices of ranks", err);
    if (!status) status = join_by(c, all, err);
    amp_free(&c->allocator, all, bytes);
    return status;
}

/* One communicator is for one device. */
static amp_status check_context(amp_comm_state *c, bool *first, amp_error *err) {
    CuContext now = NULL;
    if (!c->nccl->cuda.context_current) AMP_TRY(amp_nccl_find_cuda(c->nccl, err));
    CuResult result = c->nccl->cuda.context_current(&now);
    if (result) return amp_nccl_fail_cuda(c->nccl, "cuCtxGetCurrent", result, err);
    *first = !c->nccl->context;
    if (*first) c->nccl->context = now;
    if (c->nccl->context == now) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "all sessions of one comm must use one CUDA context: this session's is not the first session's");
}

amp_status amp_comm_attach(struct amp_comm *comm, amp_comm_user *user, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    bool first;
    AMP_TRY(amp_comm_check(c, err));
    AMP_TRY(check_context(c, &first, err));
    if (first) AMP_TRY(join_devices(c, err));
    pthread_mutex_lock(&c->lock);
    user->next = c->users;
    c->users = user;
    pthread_mutex_unlock(&c->lock);
    amp_status status = amp_comm_check(c, err);
    if (status) amp_comm_detach(comm, user);
    return status;
}

/* ---- flights ----------------------------------------------------------------------------------------------------- */

static void destroy_events(const amp_nccl *n, const amp_flight *f) {
    if (f->before) (void)n->cuda.event_destroy(f->before);
    if (f->after) (void)n->cuda.event_destroy(f->after);
}

static amp_status make_events(const amp_nccl *n, amp_flight *f, amp_error *err) {
    CuResult result = n->cuda.event_create(&f->before, CU_EVENT_DISABLE_TIMING);
    if (!result) result = n->cuda.event_create(&f->after, CU_EVENT_DISABLE_TIMING);
    return result ? amp_nccl_fail_cuda(n, "cuEventCreate", result, err) : AMP_OK;
}

static amp_status new_flight(amp_comm_state *c, amp_flight **out, amp_error *err) {
    amp_flight *f = amp_alloc_zeroed(&c->allocator, sizeof *f);
    if (!f) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for a collective");
    amp_status status = make_events(c->nccl, f, err);
    if (status) {
        destroy_events(c->nccl, f);
        amp_free(&c->allocator, f, sizeof *f);
        return status;
    }
    pthread_mutex_lock(&c->lock);
    f->next = c->flights;
    c->flights = f;
    pthread_mutex_unlock(&c->lock);
    *out = f;
    return AMP_OK;
}

static amp_status take_flight(amp_comm_state *c, amp_flight **out, amp_error *err) {
    pthread_mutex_lock(&c->lock);
    amp_flight *f = c->flights;
    while (f && f->users) f = f->next;
    pthread_mutex_unlock(&c->lock);
    if (!f) AMP_TRY(new_flight(c, &f, err));
    *f = (amp_flight){.next = f->next, .before = f->before, .after = f->after};
    *out = f;
    return AMP_OK;
}

/* Events go while their context is there. */
static void free_flights(amp_comm_state *c, bool events) {
    for (amp_flight *f = c->flights, *next; f; f = next) {
        next = f->next;
        if (events) destroy_events(c->nccl, f);
        amp_free(&c->allocator, f, sizeof *f);
    }
    c->flights = NULL;
}

/* After a failure the thread may still look at flights: they are freed with the comm. */
void amp_comm_detach(struct amp_comm *comm, amp_comm_user *user) {
    amp_comm_state *c = (amp_comm_state *)comm;
    const bool whole = !c->next_number || !amp_comm_wait(comm, c->next_number - 1, NULL);
    pthread_mutex_lock(&c->lock);
    amp_comm_user **at = &c->users;
    while (*at && *at != user) at = &(*at)->next;
    if (*at) *at = user->next;
    const bool last = !c->users;
    pthread_mutex_unlock(&c->lock);
    if (last && whole) free_flights(c, true);
}

void amp_comm_free_devices(amp_comm_state *c) {
    free_flights(c, false);
    if (!c->nccl) return;
    amp_nccl_close(c->nccl);
    amp_free(&c->allocator, c->nccl, sizeof *c->nccl);
}

/* ---- enqueueing -------------------------------------------------------------------------------------------------- */

static amp_collective collective_of(const amp_comm_state *c, const amp_device_collective *d, amp_flight *flight) {
    return (amp_collective){.number = c->next_number,
                            .op = d->op,
                            .dtype = d->dtype,
                            .data = d->data,
                            .count = d->count,
                            .root = d->root,
                            .what = d->what ? d->what : "a collective",
                            .flight = flight};
}

/* All in the queue, or none: ranks number them alike. */
static amp_status queue_all(amp_comm_state *c, const amp_device_collective *list, int32_t count, amp_flight *flight,
                            amp_error *err) {
    amp_collective *taken = NULL;
    for (int32_t i = 0; i < count; i++) {
        amp_collective *new = amp_comm_take_idle(c);
        if (new) {
            new->next = taken;
            taken = new;
            continue;
        }
        for (amp_collective *next; taken; taken = next) {
            next = taken->next;
            amp_comm_put_idle(c, taken);
        }
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d collectives", count);
    }
    pthread_mutex_lock(&c->lock);
    flight->first = c->next_number;
    flight->users = count;
    pthread_mutex_unlock(&c->lock);
    for (int32_t i = 0; i < count; i++) {
        amp_collective *new = taken;
        taken = taken->next;
        *new = collective_of(c, &list[i], flight);
        amp_comm_queue(c, new);
    }
    return AMP_OK;
}

static amp_status record(const amp_nccl *n, CuEvent event, void *stream, amp_error *err) {
    CuResult result = n->cuda.event_record(event, stream);
    return result ? amp_nccl_fail_cuda(n, "cuEventRecord", result, err) : AMP_OK;
}

/* Until NCCL has them in the stream. */
static amp_status call_nccl(amp_comm_state *c, const amp_device_collective *list, int32_t count, void *stream,
                            amp_error *err) {
    amp_error said;
    if (!amp_nccl_enqueue(c->nccl, list, count, c->head.rank, c->head.size, stream, &said))
        return wait_for_nccl(c, "ncclGroupEnd", 0, err);
    AMP_TRY(amp_comm_check(c, err));
    return fail_own(c, &said, err);
}

/* In the queue first: the thread is the one who judges ranks that do not come. */
static amp_status start_flight(amp_comm_state *c, const amp_device_collective *list, int32_t count, void *stream,
                               amp_flight **flight, amp_error *err) {
    AMP_TRY(amp_comm_check(c, err));
    for (int32_t i = 0; i < count; i++) {
        const amp_collective wanted = collective_of(c, &list[i], NULL);
        AMP_TRY(amp_comm_check_collective(c, &wanted, err));
    }
    AMP_TRY(take_flight(c, flight, err));
    AMP_TRY(record(c->nccl, (*flight)->before, stream, err));
    return queue_all(c, list, count, *flight, err);
}

static amp_status end_flight(amp_comm_state *c, amp_flight *flight, void *stream, amp_error *err) {
    amp_error said;
    if (record(c->nccl, flight->after, stream, &said)) return fail_own(c, &said, err);
    pthread_mutex_lock(&c->lock);
    flight->enqueued = true;
    pthread_mutex_unlock(&c->lock);
    return AMP_OK;
}

amp_status amp_comm_enqueue(struct amp_comm *comm, const amp_device_collective *list, int32_t count, void *stream,
                            amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    amp_flight *flight;
    if (count < 1) return amp_comm_check(c, err);
    AMP_TRY(start_flight(c, list, count, stream, &flight, err));
    AMP_TRY(call_nccl(c, list, count, stream, err));
    return end_flight(c, flight, stream, err);
}

amp_status amp_comm_put(struct amp_comm *comm, const amp_device_collective *one, void *stream, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    const amp_collective wanted = collective_of(c, one, NULL);
    AMP_TRY(amp_comm_check(c, err));
    AMP_TRY(amp_comm_check_collective(c, &wanted, err));
    return call_nccl(c, one, 1, stream, err);
}

/* One collective in the queue for all that the work has. */
amp_status amp_comm_depart(struct amp_comm *comm, const char *what, size_t count, void *stream, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    const amp_device_collective all = {
        .op = AMP_COLLECTIVE_ALL_REDUCE, .dtype = AMP_DT_F32, .data = c, .count = count, .what = what};
    return start_flight(c, &all, 1, stream, &c->departed, err);
}

amp_status amp_comm_arrive(struct amp_comm *comm, void *stream, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    AMP_TRY(amp_comm_check(c, err));
    AMP_TRY(end_flight(c, c->departed, stream, err));
    return amp_comm_use(comm, err);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static amp_status query(const amp_nccl *n, CuEvent event, bool *there, amp_error *err) {
    if (*there) return AMP_OK;
    CuResult result = n->cuda.event_query(event);
    *there = !result;
    return result && result != CU_NOT_READY ? amp_nccl_fail_cuda(n, "cuEventQuery", result, err) : AMP_OK;
}

static amp_status look(const amp_nccl *n, amp_flight *f, amp_error *err) {
    CuContext popped;
    CuResult result = n->cuda.context_push(n->context);
    if (result) return amp_nccl_fail_cuda(n, "cuCtxPushCurrent_v2", result, err);
    amp_status status = query(n, f->before, &f->reached, err);
    if (!status && f->reached) status = query(n, f->after, &f->arrived, err);
    (void)n->cuda.context_pop(&popped);
    return status;
}

amp_status amp_flight_test(amp_comm_state *c, amp_flight *f, amp_flight_place *out, amp_error *err) {
    bool ready;
    pthread_mutex_lock(&c->lock);
    const bool enqueued = f->enqueued;
    pthread_mutex_unlock(&c->lock);
    *out = !enqueued ? AMP_FLIGHT_STARTS : f->reached ? AMP_FLIGHT_FLIES : AMP_FLIGHT_COMPUTES;
    if (!enqueued) return AMP_OK;
    if (!f->arrived) AMP_TRY(look(c->nccl, f, err));
    if (!f->arrived) return amp_nccl_poll(c->nccl, NULL, &ready, err);
    *out = AMP_FLIGHT_ARRIVED;
    return AMP_OK;
}

/* Whether everything that was enqueued, and is used, is done, so that ending the others changes nothing. */
static bool has_landed(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    amp_flight *f = c->flights; /* new ones come before it */
    pthread_mutex_unlock(&c->lock);
    for (; f; f = f->next) {
        amp_flight_place place;
        pthread_mutex_lock(&c->lock);
        const bool used = f->users != 0 && f->first < c->used;
        pthread_mutex_unlock(&c->lock);
        if (used && (amp_flight_test(c, f, &place, NULL) || place != AMP_FLIGHT_ARRIVED)) return false;
    }
    return true;
}

static void tell_users(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    amp_error why = c->failure;
    if (!why.code) amp_fail(&why, AMP_PEER_FAILED, "rank %d: the comm was released before its work", c->head.rank);
    for (amp_comm_user *u = c->users; u; u = u->next) u->failed(u, &why);
    pthread_mutex_unlock(&c->lock);
}

/* The thread looks at |used| after it has failed: either it sees what is used here, or this sees the failure. */
amp_status amp_comm_use(struct amp_comm *comm, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    pthread_mutex_lock(&c->lock);
    const bool failed = c->failure.code;
    if (!failed) c->used = c->next_number;
    pthread_mutex_unlock(&c->lock);
    if (!failed) return AMP_OK;
    if (!amp_comm_await_end(c)) tell_users(c); /* what is under way may stay so */
    return amp_comm_check(c, err);
}

void amp_comm_part_devices(amp_comm_state *c, bool together) {
    pthread_mutex_lock(&c->lock);
    amp_nccl *n = c->nccl;
    pthread_mutex_unlock(&c->lock);
    if (!n) return;
    if (!together && !has_landed(c)) tell_users(c);
    if (together) amp_nccl_leave(n, c->timeout);
    else if (!amp_nccl_abort(n)) tell_users(c);
}
