/* drive.c: collectives from the queue through the lanes, by the comm's thread or by who calls.
 *
 * The thread spins while something may come soon, naps while messages are under way, and sleeps where there are none.
 * It alone calls the engine, so that a library in which it hangs holds no other thread: who waits notices that the
 * driver has not been heard of.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep, pthread_condattr_setclock */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "runtime/comm/comm.h"

enum { STACK = 4 << 20, SPIN = 20000, NAP = 50000, LOOK = 50000000, TELLING = 1000000000 /* nanoseconds */ };
enum { GOING = 2 }; /* timeouts that the engine has to let a rank go */

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static amp_status fail_again(const amp_comm_state *c, amp_error *err) {
    return c->failure.code ? amp_fail(err, c->failure.code, "%s", c->failure.message) : AMP_OK;
}

amp_status amp_comm_check(amp_comm_state *c, amp_error *err) {
    pthread_mutex_lock(&c->lock);
    amp_status status = fail_again(c, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

amp_status amp_comm_fail(amp_comm_state *c, amp_error *err, amp_status code, const char *fmt, ...) {
    amp_error text;
    va_list args;
    va_start(args, fmt);
    amp_vfail(&text, code, fmt, args);
    va_end(args);
    pthread_mutex_lock(&c->lock);
    if (!c->failure.code) {
        if (c->head.size) amp_fail(&c->failure, code, "rank %d: %s", c->head.rank, text.message);
        else c->failure = text; /* it does not know yet which one it is */
        pthread_cond_broadcast(&c->news);
        pthread_cond_signal(&c->work);
    }
    amp_status status = fail_again(c, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static amp_lane_world world_of(const amp_comm_state *c) {
    return (amp_lane_world){.engine = c->engine->type,
                            .rank = c->head.rank,
                            .size = c->head.size,
                            .ordered = c->head.ordered,
                            .limits = &c->limits};
}

static amp_status fail_engine(amp_comm_state *c, const amp_collective *of, const amp_error *said) {
    return amp_comm_fail(c, NULL, AMP_PEER_FAILED, "%s: %s", of->what, said->message);
}

static amp_status next_message(amp_comm_state *c, int32_t lane) {
    amp_lane *l = &c->lanes[lane];
    const amp_lane_world w = world_of(c);
    amp_message message;
    amp_error said;
    if (l->now->flight) return AMP_OK; /* which the caller has started */
    l->done = !amp_lane_next(&w, l, &message);
    if (l->done || !c->engine->type->start(c->engine, lane, &message, &said)) return AMP_OK;
    return fail_engine(c, l->now, &said);
}

/* Takes collectives of the queue whose lanes are free, in order. */
static bool take(amp_comm_state *c, amp_collective **out) {
    pthread_mutex_lock(&c->lock);
    amp_collective *now = c->failure.code ? NULL : c->first;
    if (now && c->lanes[now->number % AMP_LANES].now) now = NULL;
    if (now) {
        c->first = now->next;
        if (!c->first) c->last = NULL;
        amp_lane *l = &c->lanes[now->number % AMP_LANES];
        if (now->grown) {
            if (l->staging) {
                l->staging->next = c->retired;
                c->retired = l->staging;
            }
            l->staging = now->grown;
            now->grown = NULL;
        }
        *l = (amp_lane){.now = now, .staging = l->staging};
    }
    pthread_mutex_unlock(&c->lock);
    *out = now;
    return now != NULL;
}

/* What is done, without gaps, is given to who waits. */
static void report_done(amp_comm_state *c) {
    amp_lane *l = &c->lanes[c->done % AMP_LANES]; /* no other thread writes |done| */
    if (!l->now || !l->done) return;
    pthread_mutex_lock(&c->lock);
    for (; l->now && l->done; l = &c->lanes[c->done % AMP_LANES]) {
        if (l->now->flight) l->now->flight->users--;
        l->now->next = c->idle;
        c->idle = l->now;
        l->now = NULL;
        c->done++;
    }
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

static const amp_collective *oldest(const amp_comm_state *c) {
    for (uint64_t i = 0; i < AMP_LANES; i++) {
        const amp_lane *l = &c->lanes[(c->done + i) % AMP_LANES];
        if (l->now && !l->done) return l->now;
    }
    return NULL;
}

/* The others cannot know. */
static amp_status fail_flight(amp_comm_state *c, const amp_collective *of, const amp_error *said) {
    amp_error why;
    amp_fail(&why, AMP_PEER_FAILED, "%s: %s", of->what, said->message);
    amp_roll_tell(c, why.message);
    return amp_comm_fail(c, NULL, AMP_PEER_FAILED, "%s", why.message);
}

static amp_status test_flight(amp_comm_state *c, amp_lane *l) {
    amp_error said;
    amp_flight_place place;
    if (amp_flight_test(c, l->now->flight, &place, &said)) return fail_flight(c, l->now, &said);
    if (place == AMP_FLIGHT_ARRIVED || (place == AMP_FLIGHT_COMPUTES && l->now == oldest(c)))
        c->moved = amp_nanoseconds();
    l->done = place == AMP_FLIGHT_ARRIVED;
    return AMP_OK;
}

static amp_status test_lanes(amp_comm_state *c) {
    for (int32_t i = 0; i < AMP_LANES; i++) {
        amp_lane *l = &c->lanes[i];
        bool done = false;
        amp_error said;
        if (!l->now || l->done) continue;
        if (l->now->flight) {
            AMP_TRY(test_flight(c, l));
            continue;
        }
        if (c->engine->type->test(c->engine, i, &done, &said)) return fail_engine(c, l->now, &said);
        if (!done) continue;
        c->moved = amp_nanoseconds();
        AMP_TRY(next_message(c, i));
    }
    return AMP_OK;
}

/* Ranks without a thread could not answer. */
static bool has_letters(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    bool has = c->ranks && c->started && c->head.size > 1;
    pthread_mutex_unlock(&c->lock);
    return has;
}

/* A process that was stopped and goes on waits anew: the others may have been stopped with it. */
static amp_status check_deadline(amp_comm_state *c, const amp_collective *waits) {
    const int64_t now = amp_nanoseconds();
    if (now - c->driven > c->timeout / 2) c->moved = now;
    c->driven = now;
    if (waits && has_letters(c)) return amp_roll_judge(c, waits, now);
    if (!waits || now - c->moved < c->timeout) return AMP_OK;
    return amp_comm_fail(c, NULL, AMP_PEER_FAILED,
                         "%s: no answer for %.1f s: another rank has died, hangs or is late, or the network is down; "
                         "this was collective %llu; if a rank may be this late, set a longer timeout",
                         waits->what, (double)c->timeout * 1e-9, (unsigned long long)waits->number);
}

void amp_comm_drive(amp_comm_state *c, bool *busy) {
    amp_collective *begun;
    *busy = false;
    while (take(c, &begun)) {
        if (oldest(c) == begun) c->moved = amp_nanoseconds();
        if (next_message(c, (int32_t)(begun->number % AMP_LANES))) return;
        report_done(c);
    }
    if (amp_comm_check(c, NULL) || test_lanes(c)) return;
    report_done(c);
    const amp_collective *waits = oldest(c);
    *busy = !check_deadline(c, waits) && waits;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void nap(void) {
    const struct timespec t = {.tv_nsec = NAP};
    nanosleep(&t, NULL);
}

static void set_phase(amp_comm_state *c, amp_comm_phase phase) {
    pthread_mutex_lock(&c->lock);
    c->phase = phase;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

static amp_status connect_engine(amp_comm_state *c) {
    amp_error said;
    amp_status status = c->engine->type->connect(c->engine, &said);
    if (status) return amp_comm_fail(c, NULL, status, "%s", said.message);
    pthread_mutex_lock(&c->lock);
    c->head.rank = c->engine->rank;
    c->head.size = c->engine->size;
    pthread_mutex_unlock(&c->lock);
    return AMP_OK;
}

static void tell_others(amp_comm_state *c) {
    pthread_mutex_lock(&c->lock);
    const bool reports = c->reports && c->ranks && c->started && c->head.size > 1;
    pthread_mutex_unlock(&c->lock);
    if (reports) amp_roll_tell(c, c->why);
}

/* Nothing but letters is sent where messages may be under way. */
static void leave(amp_comm_state *c) {
    tell_others(c);
    const bool together = c->head.size && !amp_comm_check(c, NULL) && !oldest(c);
    amp_comm_part_devices(c, together);
    if (together) c->engine->type->disconnect(c->engine);
    else if (c->engine->type->abandon) c->engine->type->abandon(c->engine);
}

/* Until there is something to do, or time to look for letters; false: the thread is to end. */
static bool has_work(amp_comm_state *c, bool busy) {
    const struct timespec t = amp_comm_clock(LOOK);
    int late = 0;
    pthread_mutex_lock(&c->lock);
    while (!busy && !late && !c->first && c->phase == AMP_COMM_RUNS && !c->failure.code)
        late = pthread_cond_timedwait(&c->work, &c->lock, &t);
    c->beats++;
    bool goes_on = c->phase == AMP_COMM_RUNS && !c->failure.code;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void *drive_thread(void *comm) {
    amp_comm_state *c = comm;
    bool busy = false;
    int64_t idle_since = 0;
    if (!connect_engine(c)) {
        set_phase(c, AMP_COMM_RUNS); /* it is not closed before */
        for (int64_t moved = -1; has_work(c, busy);) {
            amp_comm_drive(c, &busy);
            if (has_letters(c) && !amp_comm_check(c, NULL)) amp_roll_read(c);
            if (moved != c->moved) idle_since = amp_nanoseconds();
            moved = c->moved;
            if (busy && amp_nanoseconds() - idle_since > SPIN) nap();
        }
    }
    leave(c);
    set_phase(c, AMP_COMM_ENDED);
    return NULL;
}

/* ---- starting and ending it -------------------------------------------------------------------------------------- */

struct timespec amp_comm_clock(int64_t nanoseconds) {
    const int64_t at = amp_nanoseconds() + nanoseconds;
    return (struct timespec){.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
}

/* Until the thread is so far, or has failed where |or_failure|; false: the time is over. */
static bool wait_for_phase(amp_comm_state *c, amp_comm_phase phase, bool or_failure, int64_t nanoseconds) {
    const struct timespec t = amp_comm_clock(nanoseconds);
    int late = 0;
    pthread_mutex_lock(&c->lock);
    while (c->phase < phase && !(or_failure && c->failure.code) && !late)
        late = pthread_cond_timedwait(&c->news, &c->lock, &t);
    bool there = c->phase >= phase || (or_failure && c->failure.code);
    pthread_mutex_unlock(&c->lock);
    return there;
}

amp_status amp_comm_start_thread(amp_comm_state *c, amp_error *err) {
    const int64_t least = (int64_t)c->engine->connect_seconds * 1000000000,
                  bound = c->timeout > least ? c->timeout : least;
    if (!c->engine->own_thread) {
        AMP_TRY(connect_engine(c) ? amp_comm_check(c, err) : AMP_OK);
        c->phase = AMP_COMM_RUNS;
        return AMP_OK;
    }
    int failed = amp_thread_start(&c->thread, STACK, drive_thread, c);
    if (failed) return amp_fail_errno(err, AMP_UNSUPPORTED, failed, "a thread for messages could not be started");
    c->started = true;
    if (!wait_for_phase(c, AMP_COMM_RUNS, true, bound))
        return amp_comm_fail(c, err, AMP_PEER_FAILED,
                             "%s: the ranks did not connect within %.1f s: was every rank started, and can their hosts "
                             "reach each other?",
                             c->engine->library, (double)bound * 1e-9);
    return amp_comm_check(c, err);
}

bool amp_comm_await_end(amp_comm_state *c) { return wait_for_phase(c, AMP_COMM_ENDED, false, TELLING); }

void amp_comm_give_up(amp_comm *comm, const char *why) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (!c || !why) return;
    pthread_mutex_lock(&c->lock);
    const bool first = !c->failure.code;
    if (first) {
        c->reports = true;
        snprintf(c->why, sizeof c->why, "%s", why);
        amp_fail(&c->failure, AMP_PEER_FAILED, "rank %d: %s", c->head.rank, why);
        pthread_cond_broadcast(&c->news);
        pthread_cond_signal(&c->work);
    }
    pthread_mutex_unlock(&c->lock);
    if (first && c->started) (void)amp_comm_await_end(c);
}

static bool end_thread(amp_comm_state *c) {
    /* A thread that has failed only has to come back from the engine. */
    const int64_t bound = amp_comm_check(c, NULL) ? 1000000000 : GOING * c->timeout;
    pthread_mutex_lock(&c->lock);
    if (c->phase == AMP_COMM_RUNS) c->phase = AMP_COMM_CLOSES;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    if (!wait_for_phase(c, AMP_COMM_ENDED, false, bound)) {
        pthread_detach(c->thread);
        return false;
    }
    pthread_join(c->thread, NULL);
    return true;
}

bool amp_comm_end(amp_comm_state *c) {
    if (c->ended) return !c->hangs;
    c->ended = true;
    if (c->started) c->hangs = !end_thread(c);
    else if (c->phase == AMP_COMM_RUNS) leave(c);
    return !c->hangs;
}

/* The meeting makes sure that no rank leaves while others still count on it, and that MPI_Finalize need not wait. */
amp_status amp_comm_leave(amp_comm *comm, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (!c) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_leave: comm is NULL");
    if (c->ended) return amp_fail(err, AMP_WRONG_STATE, "amp_comm_release: this comm has left the other ranks already");
    amp_status status = amp_comm_meet(comm, NULL, 0, NULL, "amp_comm_release", err);
    if (status) amp_comm_fail(c, NULL, status, "the comm was released before all ranks had released theirs");
    if (amp_comm_end(c) || status) return status;
    return amp_comm_fail(c, err, AMP_PEER_FAILED,
                         "amp_comm_release: %s has not disconnected this rank within %.1f s: another rank has died, "
                         "hangs or was stopped",
                         c->engine->library, GOING * (double)c->timeout * 1e-9);
}
