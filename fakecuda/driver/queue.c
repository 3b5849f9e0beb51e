/* queue.c: streams' queues.  Nothing runs when it is asked for: at every later call chance runs a little of what
 * could run, and a call that waits runs exactly what it waits for.  So a host or a stream that does not wait sees,
 * with some seed, the bytes of before. */
#include <stdlib.h>

#include "fakecuda/driver/driver.h"

uint64_t queue_add(Stream *s, const Work *work, Marker *after, Marker *done) {
    Op *op = must_alloc(sizeof *op);
    *op = (Op){.sequence = ++driver.sequence, .after = after, .done = done, .work = *work};
    if (done) {
        done->stream = s;
        done->sequence = op->sequence;
    }
    if (s->tail) s->tail->next = op;
    else s->head = op;
    s->tail = op;
    return op->sequence;
}

static void finish(Stream *s, Op *op) {
    if (op->done) {
        op->done->done = true;
        op->done->nanoseconds = s->context->nanoseconds;
    }
    marker_drop(op->after);
    marker_drop(op->done);
    work_free(&op->work);
    free(op);
}

static Op *take(Stream *s) {
    Op *op = s->head;
    s->head = op->next;
    if (!s->head) s->tail = NULL;
    return op;
}

static void run_head(Stream *s) {
    Op *op = take(s);
    work_run(s->context, &op->work);
    finish(s, op);
}

/* Whether the work of one waits for earlier work of the other: the legacy stream and the blocking streams do. */
static bool ordered(const Stream *a, const Stream *b) {
    return a != b && ((a->legacy && b->blocking) || (b->legacy && a->blocking));
}

void queue_run_to(Stream *s, uint64_t sequence) {
    Context *c = s->context;
    while (!c->sticky && s->head && s->head->sequence <= sequence) {
        Op *op = s->head;
        if (op->after && !op->after->done) queue_run_to(op->after->stream, op->after->sequence);
        for (Stream *other = c->streams; other; other = other->next)
            if (ordered(s, other)) queue_run_to(other, op->sequence - 1);
        if (!c->sticky && s->head == op) run_head(s);
    }
}

void queue_run_all(Context *c) {
    for (Stream *s = c->streams; s; s = s->next) queue_run_to(s, UINT64_MAX);
}

static bool ready(const Stream *s) {
    if (!s->head || (s->head->after && !s->head->after->done)) return false;
    for (const Stream *other = s->context->streams; other; other = other->next)
        if (ordered(s, other) && other->head && other->head->sequence < s->head->sequence) return false;
    return true;
}

/* Half of the time nothing; else one to four pieces, each of any stream that could go on. */
void queue_progress(Context *c) {
    if (queue_length(c) == 0 || chance(2)) return;
    for (uint64_t left = 1 + chance(4); left && !c->sticky; left--) {
        uint64_t candidates = 0;
        for (const Stream *s = c->streams; s; s = s->next) candidates += ready(s);
        if (candidates == 0) return;
        uint64_t pick = chance(candidates);
        for (Stream *s = c->streams; s; s = s->next)
            if (ready(s) && pick-- == 0) {
                run_head(s);
                break;
            }
    }
}

void queue_drop_all(Context *c) {
    for (Stream *s = c->streams; s; s = s->next)
        while (s->head) finish(s, take(s));
}

int queue_length(const Context *c) {
    int count = 0;
    for (const Stream *s = c->streams; s; s = s->next)
        for (const Op *op = s->head; op; op = op->next) count++;
    return count;
}
