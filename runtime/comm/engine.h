/* engine.h: what moves messages between ranks.  mpi/ and files/ implement it; tests/runtime/comm/ has one of threads.
 *
 * Messages travel in lanes, one at a time in each.  A lane's messages are started in the same order on all ranks, while
 * the lanes do not wait for one another: what a rank starts in one lane may depend on what has arrived there.
 */
#ifndef AMP_RUNTIME_COMM_ENGINE_H
#define AMP_RUNTIME_COMM_ENGINE_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AMP_LANES = 4, AMP_LETTER_BYTES = 512 };

/* Part r of [R][count / R] belongs to rank r. */
typedef enum amp_message_op {
    AMP_SUM_ALL,   /* of all elements, in place */
    AMP_SUM_SHARE, /* of the own part, in place; the other parts are not defined afterwards */
    AMP_GATHER,    /* every part from its rank, in place */
    AMP_FROM_RANK, /* all from |rank|, in place */
    AMP_EXCHANGE   /* part r of |to| is the own part of what rank r has at |data| */
} amp_message_op;

typedef struct amp_message {
    amp_message_op op;
    amp_dtype dtype;
    void *data, *to;
    size_t count; /* elements, of AMP_MESSAGE_MOST bytes at most */
    int32_t rank;
} amp_message;

/* Counts of MPI are ints. */
#define AMP_MESSAGE_MOST ((size_t)1 << 30)

/* A short message beside the lanes, which no rank has to expect. */
typedef struct amp_letter {
    unsigned char bytes[AMP_LETTER_BYTES];
    void *request; /* the engine's, while |leaves| */
    bool leaves;   /* it may not be written to */
} amp_letter;

typedef struct amp_engine amp_engine;

typedef struct amp_engine_type {
    const char *name;
    uint32_t sums; /* 1 << dtype for each that it adds by itself */
    /* Joins the ranks: sets |rank| and |size|.  Allocates nothing, as none of the following does. */
    amp_status (*connect)(amp_engine *engine, amp_error *err);
    /* Neither waits.  |test|: whether the message that the lane has under way is done. */
    amp_status (*start)(amp_engine *engine, int32_t lane, const amp_message *message, amp_error *err);
    amp_status (*test)(amp_engine *engine, int32_t lane, bool *done, amp_error *err);
    /* Sends a letter, which leaves until |sent| says that it does not. */
    amp_status (*send)(amp_engine *engine, int32_t to, amp_letter *letter, amp_error *err);
    amp_status (*sent)(amp_engine *engine, amp_letter *letter, amp_error *err);
    /* Takes a letter that has come, if there is one. */
    amp_status (*receive)(amp_engine *engine, unsigned char bytes[AMP_LETTER_BYTES], bool *came, amp_error *err);
    /* Leaves the ranks; none has a message under way. */
    void (*disconnect)(amp_engine *engine);
    /* A peer failed: in place of disconnect, and nothing else is called but close. */
    void (*abandon)(amp_engine *engine);
    /* Frees it, whether it was connected or not; calls nothing of the library. */
    void (*close)(amp_engine *engine);
} amp_engine_type;

/* The head of every engine. */
struct amp_engine {
    const amp_engine_type *type;
    amp_allocator allocator;
    int32_t rank, size;
    bool own_thread; /* everything from connect to disconnect may be called by a thread of the comm, which is always the
                        same */
    int32_t connect_seconds; /* that ranks have to come together, also where the timeout is shorter */
    const char *library;     /* its name, for errors; lives as long as the engine */
};

#ifdef __cplusplus
}
#endif
#endif
