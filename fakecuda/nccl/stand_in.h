/* stand_in.h: what the files of NCCL's stand-in share.
 *
 * Ranks are processes of one machine. They share a segment of memory, whose name is the id: a place of each rank, and
 * of each a piece of staging memory.  A collective is made in rounds, each of one piece:
 *
 *     wait until all have read the round before; copy the piece from the device; say so
 *     wait until all have said so; compare what they say they do; add in the order of ranks; copy to the device
 *
 * None of this waits in a call: it is work in a stream, which the driver's stand-in asks again until it is done.
 */
#ifndef FAKECUDA_NCCL_STAND_IN_H
#define FAKECUDA_NCCL_STAND_IN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fakecuda/driver/fakecuda.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/cuda/driver_api.h"

#define DECLARE(name, symbol, parameters) CuResult symbol parameters;
CUDA_DRIVER_CALLS(DECLARE)
#undef DECLARE

enum { MOST_RANKS = 64, PIECE = 1 << 20, TEXT = 256 };

typedef enum Kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST } Kind;

/* What a rank says of the round that it has come to. */
typedef struct Round {
    uint64_t number; /* of the collective */
    int32_t kind, type, root;
    uint64_t count, at; /* elements, and of them done */
} Round;

typedef struct Place {
    _Atomic int32_t joined;
    int32_t device, ranks;
    _Atomic uint64_t arrived, left; /* rounds */
    Round round;
} Place;

typedef struct Segment {
    Place places[MOST_RANKS];
    unsigned char pieces[][PIECE];
} Segment;

struct ncclComm {
    int32_t rank, ranks;
    _Atomic int32_t references; /* its own, and one for each collective in a stream or a graph */
    _Atomic int32_t captured;   /* collectives in graphs */
    char name[NCCL_ID_BYTES];
    Segment *segment;
    size_t bytes;
    CuContext context;
    CuDevice device;
    uint64_t rounds, collectives; /* made so far */
    _Atomic int32_t error;        /* asynchronous; 0: none */
    _Atomic bool aborted;
    bool joined, finalized;
    int32_t delay;         /* polls until what was asked for last is in its stream */
    struct Asked *pending; /* that is not yet */
};

typedef struct Asked { /* one collective */
    struct Asked *next;
    struct ncclComm *comm;
    void *stream, *context;
    const char *name;
    Kind kind;
    int32_t type, root;
    uint64_t send, receive, count, number, at;
    bool begun, wrote, captured;
    int64_t starts; /* nanoseconds of the clock: late ranks */
} Asked;

/* ---- nccl.c ---- */

void comm_drop(struct ncclComm *comm);
void last_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rounds.c ---- */

size_t type_size(int32_t type); /* 0: not known */
uint64_t asked_bytes(const Asked *a);
bool asked_run(void *asked, void *context);
void asked_drop(void *asked);
void asked_stays(Asked *asked); /* in a graph, until that is dropped */
int64_t now(void);

/* ---- faults.c: FAKECUDA_NCCL ---- */

enum { ANY_RANK = -1 };
/* Whether the fault |what| is planted for collective |number| of |rank|, counted from 1. */
bool fault_at(const char *what, int32_t rank, uint64_t number);
int64_t fault_delay(int32_t rank); /* nanoseconds */
/* Counts the call; true: it is to fail. */
bool fault_call(const char *call);
const char *faults_problem(void); /* what cannot be read; NULL: nothing */

#endif
