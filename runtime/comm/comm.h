/* comm.h: the parts of a comm, and who may touch them.
 *
 * Collectives wait in a queue, in order of their numbers; number n travels in lane n % AMP_LANES, when the one before
 * it in that lane is done.  Whoever drives the comm starts and tests messages: its thread, or where an engine has none,
 * the caller.
 */
#ifndef AMP_RUNTIME_COMM_COMM_H
#define AMP_RUNTIME_COMM_COMM_H

#include <pthread.h>
#include <time.h>

#include "amp/comm.h"
#include "runtime/comm/engine.h"
#include "runtime/comm/lane.h"
#include "runtime/comm/nccl/nccl.h"
#include "runtime/comm/roll.h"
#include "runtime/device/comm_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the roll call has of each rank. */
typedef struct amp_roll_rank {
    amp_letter question, reply; /* to it */
    amp_question asked;
    amp_answer answer;
} amp_roll_rank;

/* Collectives that were enqueued on a stream together: a place in it before them, and one after. */
typedef struct amp_flight {
    struct amp_flight *next;
    CuEvent before, after;
    uint64_t first; /* of its collectives */
    int32_t users;  /* collectives, which are not done; 0: to be used again */
    bool enqueued;  /* else the caller is about to */
    /* Of the driver: */
    bool reached, arrived;
} amp_flight;

typedef enum amp_comm_phase {
    AMP_COMM_CONNECTS,
    AMP_COMM_RUNS,
    AMP_COMM_CLOSES, /* the thread is to disconnect and end */
    AMP_COMM_ENDED
} amp_comm_phase;

typedef struct amp_comm_state {
    struct amp_comm head;
    amp_engine *engine;
    amp_allocator allocator;
    int64_t timeout; /* nanoseconds */
    amp_lane_limits limits;
    void *heads; /* of a meeting: one of each rank */
    pthread_t thread;
    bool started; /* the thread */
    bool ended;   /* amp_comm_end was called */
    bool hangs;   /* and the thread has not come back from the engine */

    /* Of the driver. */
    amp_lane lanes[AMP_LANES];
    int64_t moved;  /* when a message was done, or the first of several was started */
    int64_t driven; /* when it last looked */
    amp_roll roll;

    /* Of whoever has the lock, which is never held in a call of the engine. */
    pthread_mutex_t lock;
    pthread_cond_t work, news; /* for the driver; for who waits */
    amp_comm_phase phase;
    amp_collective *first, *last; /* in the queue */
    amp_collective *idle;         /* to be used again */
    amp_staging *retired;         /* no lane uses it any more: freed by the next caller, since threads of ours do not */
    size_t planned[AMP_LANES];    /* bytes of staging that the lane has when all in the queue have begun */
    uint64_t next_number, done;   /* all below |done| are */
    uint64_t beats;               /* how often the thread was outside the engine */
    amp_error failure;            /* the first; .code AMP_OK: none */
    bool reports;                 /* it is this rank's own, and the thread sends |why| to the others before it ends */
    char why[400];
    amp_rank_does does; /* what the session says */
    int64_t step;
    amp_roll_rank *ranks; /* NULL: not yet */
    amp_nccl *nccl;       /* NULL: there are no collectives on devices */
    amp_comm_user *users; /* of their devices */
    amp_flight *flights;  /* all of them */
    amp_flight *departed; /* of the caller: the one between depart and arrive */
    uint64_t used;        /* all collectives below: what was enqueued later reads their data */
} amp_comm_state;

extern const amp_comm_calls amp_comm_state_calls, amp_comm_device_calls;

/* Over |engine|, which it closes, also where it fails. */
amp_status amp_comm_open_engine(amp_engine *engine, const amp_comm_options *options, const amp_lane_limits *limits,
                                amp_comm **out, amp_error *err);

/* ---- drive.c: queue and thread ---- */

/* Starts what can start, tests what is under way.  |*busy|: something is. */
void amp_comm_drive(amp_comm_state *c, bool *busy);
amp_status amp_comm_start_thread(amp_comm_state *c, amp_error *err);
/* Disconnects or abandons, once; false: the thread hangs in the engine, and all that it may touch has to stay. */
bool amp_comm_end(amp_comm_state *c);
/* After a failure; false: the thread has not ended in a second. */
bool amp_comm_await_end(amp_comm_state *c);
/* The time in |nanoseconds| from now, for conditions of a comm. */
struct timespec amp_comm_clock(int64_t nanoseconds);
/* The first failure, if there is one.  Takes the lock. */
amp_status amp_comm_check(amp_comm_state *c, amp_error *err);
/* Keeps the first; the text gets the rank.  Takes the lock. */
amp_status amp_comm_fail(amp_comm_state *c, amp_error *err, amp_status code, const char *fmt, ...) AMP_PRINTF(4, 5);

/* ---- device.c: collectives on devices ---- */

/* With them.  |n| is the comm's from now on. */
amp_status amp_comm_use_nccl(amp_comm_state *c, amp_nccl *n, amp_error *err);
typedef enum amp_flight_place {
    AMP_FLIGHT_STARTS,   /* the caller has still to do with it */
    AMP_FLIGHT_COMPUTES, /* the device had not come to it, when it was last asked */
    AMP_FLIGHT_FLIES,
    AMP_FLIGHT_ARRIVED
} amp_flight_place;
/* Of the driver: how far it is. */
amp_status amp_flight_test(amp_comm_state *c, amp_flight *flight, amp_flight_place *out, amp_error *err);
/* Of the driver, at its end: |together|: all ranks leave; else what is under way is ended, and users are told. */
void amp_comm_part_devices(amp_comm_state *c, bool together);
amp_status amp_comm_attach(struct amp_comm *comm, amp_comm_user *user, amp_error *err);
void amp_comm_detach(struct amp_comm *comm, amp_comm_user *user);
amp_status amp_comm_enqueue(struct amp_comm *comm, const amp_device_collective *list, int32_t count, void *stream,
                            amp_error *err);
amp_status amp_comm_put(struct amp_comm *comm, const amp_device_collective *one, void *stream, amp_error *err);
amp_status amp_comm_depart(struct amp_comm *comm, const char *what, size_t count, void *stream, amp_error *err);
amp_status amp_comm_arrive(struct amp_comm *comm, void *stream, amp_error *err);
amp_status amp_comm_use(struct amp_comm *comm, amp_error *err);
void amp_comm_free_devices(amp_comm_state *c);

/* ---- roll.c: who is alive ---- */

/* Reads letters that have come and answers them. */
void amp_roll_read(amp_comm_state *c);
/* Reports to all ranks what this one fails with; letters get a moment to leave. */
void amp_roll_tell(amp_comm_state *c, const char *why);
/* |waits| is under way since |c->moved|: asks all ranks before the timeout ends, and judges by their answers when it
 * has. */
amp_status amp_roll_judge(amp_comm_state *c, const amp_collective *waits, int64_t now);

/* ---- calls.c: amp_comm_calls ---- */

amp_status amp_comm_start(struct amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count,
                          int32_t root, const char *what, uint64_t *number, amp_error *err);
amp_status amp_comm_wait(struct amp_comm *comm, uint64_t number, amp_error *err);
void amp_comm_free_retired(amp_comm_state *c);
/* |wanted| can be made: nothing of it is wrong.  Whether there is memory for it is another thing. */
amp_status amp_comm_check_collective(const amp_comm_state *c, const amp_collective *wanted, amp_error *err);
amp_collective *amp_comm_take_idle(amp_comm_state *c); /* NULL: no memory */
void amp_comm_put_idle(amp_comm_state *c, amp_collective *old);
void amp_comm_queue(amp_comm_state *c, amp_collective *collective);

/* ---- meet.c ---- */

size_t amp_meeting_bytes(int32_t ranks); /* of |heads| */
/* What has to be the same on all ranks before anything else. */
amp_status amp_comm_hello(amp_comm_state *c, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
