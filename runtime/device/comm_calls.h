/* comm_calls.h: what sessions see of an amp_comm (amp/comm.h): libamp_comm fills it, libamp calls it.
 *
 * All ranks make the same calls in the same order; one thread at a time makes them, which need not always be the same.
 * Once a peer failed every call fails: AMP_PEER_FAILED, with the first cause.
 */
#ifndef AMP_RUNTIME_DEVICE_COMM_CALLS_H
#define AMP_RUNTIME_DEVICE_COMM_CALLS_H

#include <stdbool.h>

#include "amp/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one bucket's collective is.  A part is count / R elements; rank r has part r. */
typedef enum amp_collective_op {
    AMP_COLLECTIVE_ALL_REDUCE = 0,     /* the sum over ranks, everywhere */
    AMP_COLLECTIVE_REDUCE_SCATTER = 1, /* the sum of the own part; the other parts are not defined afterwards */
    AMP_COLLECTIVE_ALL_GATHER = 2,     /* every part from the rank whose part it is */
    AMP_COLLECTIVE_BROADCAST = 3,      /* all from |root| */
    /* ALL_REDUCE; where the comm's sums are ordered they are added as a balanced tree, (0 + 1) + (2 + 3): of 2^k ranks
     * and more, the sum of the first 2^k and the sum of the others. */
    AMP_COLLECTIVE_ALL_REDUCE_TREE = 4,
    AMP_COLLECTIVE_REDUCE_SCATTER_TREE = 5 /* REDUCE_SCATTER; ordered, the same */
} amp_collective_op;

/* One collective on memory of a device. */
typedef struct amp_device_collective {
    amp_collective_op op;
    amp_dtype dtype;
    void *data;
    size_t count;
    int32_t root;
    const char *what; /* as in start; lives as long as the comm is attached to */
    int32_t after;    /* for the device, not for the comm: where it may begin (device.h) */
    const void *from; /* of ALL_REDUCE: what is added up; NULL: |data|, as of the others */
} amp_device_collective;

/* Whoever has memory on which collectives are enqueued: told of the comm's failure, by any thread, before collectives
 * are ended that are under way on the device and used.  What streams do after that has no defined result.  If none is
 * used users are not told: then everything is whole but the data of collectives. */
typedef struct amp_comm_user {
    struct amp_comm_user *next;
    void (*failed)(struct amp_comm_user *user, const amp_error *why);
} amp_comm_user;

typedef struct amp_comm_calls {
    /* Starts the collective |*number| (0, 1, 2, .. over the life of the comm; equal on all ranks) over |count| elements
     * at |data|, in place.  Does not wait.  |data| and |what|, which names it in errors ("bucket 0 (fc1.weight ..)"),
     * stay until wait has returned.  Sums are of f32, f64, f16 and bf16, the last two added in f32 and rounded once;
     * the others move any type.  For parts |count| is a multiple of R.
     * AMP_INVALID_ARGUMENT, AMP_OUT_OF_MEMORY: nothing was started. */
    amp_status (*start)(amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count, int32_t root,
                        const char *what, uint64_t *number, amp_error *err);
    /* Waits until |number| and all before it are done, at most the deadline. */
    amp_status (*wait)(amp_comm *comm, uint64_t number, amp_error *err);
    /* amp_comm_meet and amp_comm_does (amp/comm.h). */
    amp_status (*meet)(amp_comm *comm, const void *mine, size_t size, void *all, const char *what, amp_error *err);
    void (*does)(amp_comm *comm, amp_rank_does what, int64_t step);

    /* Of engines that have collectives on memory of CUDA devices; else NULL.  All with the same CUDA context
     * current.  All ranks attach at the same place among their other calls; the first one joins the devices, and waits
     * for all ranks.  |user| is the caller's memory, until detach, which waits for collectives that are under way. */
    amp_status (*attach)(amp_comm *comm, amp_comm_user *user, amp_error *err);
    void (*detach)(amp_comm *comm, amp_comm_user *user);
    /* Enqueues them on |stream|, a CUstream, after what is there, and does not wait for it.  They take numbers as those
     * of start do.  What fails later is told to users, and by every later call. */
    amp_status (*enqueue)(amp_comm *comm, const amp_device_collective *list, int32_t count, void *stream,
                          amp_error *err);
    /* Collectives among other work: |put| adds one to |stream|, which may be in a capture: then each launch of the
     * graph makes it, and the graph has to be gone before the comm is.  It takes no number; the work does, from
     * depart, before it is put or launched, to arrive, after that.  |what| names the work, |count| elements are in
     * its collectives. */
    amp_status (*put)(amp_comm *comm, const amp_device_collective *one, void *stream, amp_error *err);
    amp_status (*depart)(amp_comm *comm, const char *what, size_t count, void *stream, amp_error *err);
    amp_status (*arrive)(amp_comm *comm, void *stream, amp_error *err);
    /* What is given to streams from now on uses the data of all collectives so far; arrive does the same.
     * AMP_PEER_FAILED: it must not.  Then nothing is under way on the device any more, or users were told. */
    amp_status (*use)(amp_comm *comm, amp_error *err);
} amp_comm_calls;

/* The head of every amp_comm. */
struct amp_comm {
    const amp_comm_calls *calls;
    int32_t rank, size;
    bool ordered; /* sums have the bits of adding ranks from left to right */
};

#ifdef __cplusplus
}
#endif
#endif
