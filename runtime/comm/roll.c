/* roll.c: see roll.h. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/comm.h"

enum {
    LATE = 2,
    BUSY = 20 /* timeouts that a rank may take until it comes */,
    MILLISECOND = 1000000,
    LEAD = 2000 /* milliseconds */
};

typedef enum Kind { ASK = 1, ANSWER = 2, FAILED = 3 } Kind;

typedef struct Letter {
    int32_t kind, from;
    uint64_t round;
    uint64_t number, count; /* ASK: the collective that the asker waits for */
    int32_t op, dtype;
    uint64_t started; /* ANSWER: as amp_answer */
    int64_t step;
    int32_t does, differs;
    char text[400]; /* ANSWER: the name of its collective; FAILED: why */
} Letter;
_Static_assert(sizeof(Letter) <= AMP_LETTER_BYTES, "a letter has room for it");

/* ---- letters ----------------------------------------------------------------------------------------------------- */

/* False: the one before has not left yet.  What fails here, a collective reports. */
static bool send_to(amp_comm_state *c, int32_t to, amp_letter *by, const Letter *letter) {
    if (by->leaves && (c->engine->type->sent(c->engine, by, NULL) || by->leaves)) return false;
    memcpy(by->bytes, letter, sizeof *letter);
    if (c->engine->type->send(c->engine, to, by, NULL)) by->leaves = false;
    return true;
}

static void send_to_all(amp_comm_state *c, const Letter *letter) {
    for (int32_t r = 0; r < c->head.size; r++)
        if (r != c->head.rank) send_to(c, r, &c->ranks[r].question, letter);
}

/* The rank's own collective of that number, while it is under way or in the queue. */
static const amp_collective *own(const amp_comm_state *c, uint64_t number) {
    const amp_collective *under_way = c->lanes[number % AMP_LANES].now;
    if (under_way && under_way->number == number) return under_way;
    for (const amp_collective *q = c->first; q; q = q->next)
        if (q->number == number) return q;
    return NULL;
}

/* How many collectives this rank has come to: one on a device counts when the device is there, which computes until
 * then. */
static uint64_t came_to(const amp_comm_state *c) {
    for (uint64_t n = c->done; n < c->next_number; n++) {
        const amp_collective *mine = own(c, n);
        if (mine && mine->flight && mine->flight->enqueued && !mine->flight->reached) return n;
    }
    return c->next_number;
}

static void take_question(amp_comm_state *c, const Letter *l) {
    amp_question *q = &c->ranks[l->from].asked;
    c->roll.open += !q->open;
    *q = (amp_question){
        .open = true, .round = l->round, .number = l->number, .count = l->count, .op = l->op, .dtype = l->dtype};
}

static void answer(amp_comm_state *c, int32_t rank) {
    amp_question *q = &c->ranks[rank].asked;
    Letter a = {.kind = ANSWER, .from = c->head.rank, .round = q->round};
    pthread_mutex_lock(&c->lock);
    const amp_collective *mine = own(c, q->number);
    a.started = came_to(c);
    a.does = (int32_t)c->does;
    a.step = c->step;
    a.differs = mine && ((int32_t)mine->op != q->op || (int32_t)mine->dtype != q->dtype || mine->count != q->count);
    if (mine) snprintf(a.text, sizeof a.text, "%s", mine->what);
    pthread_mutex_unlock(&c->lock);
    if (!send_to(c, rank, &c->ranks[rank].reply, &a)) return;
    q->open = false;
    c->roll.open--;
}

static void take_answer(amp_comm_state *c, const Letter *a) {
    amp_answer *to = &c->ranks[a->from].answer;
    *to = (amp_answer){
        .round = a->round, .started = a->started, .does = a->does, .step = a->step, .differs = a->differs != 0};
    snprintf(to->what, sizeof to->what, "%.*s", (int)sizeof to->what - 1, a->text);
}

void amp_roll_read(amp_comm_state *c) {
    const int64_t now = amp_nanoseconds();
    unsigned char bytes[AMP_LETTER_BYTES];
    bool came = false;
    if (now - c->roll.read < MILLISECOND) return;
    c->roll.read = now;
    for (;;) {
        Letter l;
        if (c->engine->type->receive(c->engine, bytes, &came, NULL) || !came) break;
        memcpy(&l, bytes, sizeof l);
        l.text[sizeof l.text - 1] = '\0';
        if (l.from < 0 || l.from >= c->head.size) continue;
        if (l.kind == ASK) take_question(c, &l);
        else if (l.kind == ANSWER) take_answer(c, &l);
        else if (l.kind == FAILED) amp_comm_fail(c, NULL, AMP_PEER_FAILED, "rank %d says: %s", l.from, l.text);
    }
    for (int32_t r = 0; r < c->head.size && c->roll.open; r++)
        if (c->ranks[r].asked.open) answer(c, r);
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static void ask(amp_comm_state *c, const amp_collective *waits, int64_t now) {
    c->roll.asked = now;
    const Letter l = {.kind = ASK,
                      .from = c->head.rank,
                      .round = ++c->roll.round,
                      .number = waits->number,
                      .count = waits->count,
                      .op = (int32_t)waits->op,
                      .dtype = (int32_t)waits->dtype};
    send_to_all(c, &l);
}

/* A rank whose last question has not left yet is told when it has; one that takes nothing delays no other. */
void amp_roll_tell(amp_comm_state *c, const char *why) {
    const struct timespec pause = {.tv_nsec = MILLISECOND};
    Letter l = {.kind = FAILED, .from = c->head.rank};
    int tries = 50, leave = 1;
    snprintf(l.text, sizeof l.text, "%s", why);
    for (int32_t r = 0; r < c->head.size; r++)
        for (; r != c->head.rank && !send_to(c, r, &c->ranks[r].question, &l) && tries; tries--)
            nanosleep(&pause, NULL);
    for (; leave && tries; tries--) {
        leave = 0;
        for (int32_t r = 0; r < c->head.size; r++)
            if (c->ranks[r].question.leaves) leave += !c->engine->type->sent(c->engine, &c->ranks[r].question, NULL);
        if (leave) nanosleep(&pause, NULL);
    }
}

/* What all ranks end with. */
static amp_status fail_all(amp_comm_state *c, const char *fmt, ...) AMP_PRINTF(2, 3);
static amp_status fail_all(amp_comm_state *c, const char *fmt, ...) {
    amp_error said;
    va_list args;
    va_start(args, fmt);
    amp_vfail(&said, AMP_PEER_FAILED, fmt, args);
    va_end(args);
    amp_roll_tell(c, said.message);
    return amp_comm_fail(c, NULL, AMP_PEER_FAILED, "%s", said.message);
}

/* "rank 2", "ranks 1, 2, 5 and others" of those that |is| true for; 0: none. */
static int32_t list_ranks(const amp_comm_state *c, bool (*is)(const amp_comm_state *, int32_t), char *out,
                          size_t size) {
    enum { NAMED = 4 };
    char names[80] = "";
    int32_t count = 0;
    for (int32_t r = 0; r < c->head.size; r++) {
        if (r == c->head.rank || !is(c, r) || count++ >= NAMED) continue;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%d", at ? ", " : "", r);
    }
    snprintf(out, size, "rank%s %s%s", count > 1 ? "s" : "", names, count > NAMED ? " and others" : "");
    return count;
}

static bool is_silent(const amp_comm_state *c, int32_t rank) { return c->ranks[rank].answer.round != c->roll.round; }

/* The first rank that the question |is| true of; -1: none. */
static int32_t first_that_differs(const amp_comm_state *c) {
    for (int32_t r = 0; r < c->head.size; r++)
        if (r != c->head.rank && c->ranks[r].answer.differs) return r;
    return -1;
}

/* Of the ranks that have not started it, one that computes before one that has a reason to be late. */
static int32_t first_absent(const amp_comm_state *c, uint64_t number) {
    int32_t found = -1;
    for (int32_t r = 0; r < c->head.size; r++) {
        if (r == c->head.rank || c->ranks[r].answer.started > number) continue;
        if (found < 0 || c->ranks[r].answer.does == AMP_RANK_COMPUTES) found = r;
        if (c->ranks[r].answer.does == AMP_RANK_COMPUTES) break;
    }
    return found;
}

static amp_status fail_absent(amp_comm_state *c, const amp_collective *waits, int32_t rank, double seconds) {
    static const char *const words[] = {"computes", "loads", "saves", "evaluates"};
    const amp_answer *a = &c->ranks[rank].answer;
    const char *word = words[a->does >= 0 && a->does < 4 ? a->does : AMP_RANK_COMPUTES];
    const char *when = a->does == AMP_RANK_COMPUTES ? "in" : "after";
    char step[40] = "";
    if (a->step >= 0) snprintf(step, sizeof step, " %s step %lld", when, (long long)a->step);
    return fail_all(c,
                    "%s: rank %d is alive, but has not joined for %.1f s: it %s%s; if a rank may be this late, set a "
                    "longer timeout",
                    waits->what, rank, seconds, word, step);
}

/* The time is over, and these are the answers. */
static amp_status judge(amp_comm_state *c, const amp_collective *waits, int64_t waited) {
    const double seconds = (double)waited * 1e-9;
    const int32_t differs = first_that_differs(c), absent = first_absent(c, waits->number);
    char who[100];
    if (list_ranks(c, is_silent, who, sizeof who))
        return fail_all(c, "%s: no answer from %s for %.1f s: died, hangs or was stopped", waits->what, who, seconds);
    if (differs >= 0)
        return fail_all(c,
                        "%s: rank %d is in %s instead: all ranks have to make the same calls in the same "
                        "order",
                        waits->what, differs, c->ranks[differs].answer.what);
    if (absent < 0)
        return fail_all(c, "%s: all ranks are in it, and nothing came for %.1f s: the network or %s is at fault",
                        waits->what, seconds, waits->flight ? c->nccl->name : c->engine->library);
    const int64_t patience = c->ranks[absent].answer.does == AMP_RANK_COMPUTES ? LATE : BUSY;
    if (waited >= patience * c->timeout) return fail_absent(c, waits, absent, seconds);
    c->roll.granted += c->timeout;
    c->roll.asked = 0;
    return AMP_OK;
}

/* Ranks have |lead| for their answers, also where this one was late to ask. */
amp_status amp_roll_judge(amp_comm_state *c, const amp_collective *waits, int64_t now) {
    const int64_t waited = now - c->moved, half = c->timeout / 2, longest = LEAD * (int64_t)MILLISECOND,
                  lead = half < longest ? half : longest;
    if (c->roll.since != c->moved)
        c->roll = (amp_roll){.round = c->roll.round, .since = c->moved, .read = c->roll.read, .open = c->roll.open};
    const int64_t end = c->timeout + c->roll.granted;
    if (waited >= end - lead && !c->roll.asked) ask(c, waits, now);
    if (waited < end || now - c->roll.asked < lead) return AMP_OK;
    amp_roll_read(c);
    return amp_comm_check(c, NULL) ? AMP_PEER_FAILED : judge(c, waits, waited);
}
