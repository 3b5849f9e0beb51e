/* amp/comm.h: ranks that train together: libamp_comm, a library beside libamp.
 *
 *     amp_comm_options o = {.struct_size = sizeof o, .engine = "mpi"};
 *     amp_comm *comm;
 *     if (amp_comm_open(&o, &comm, &err)) fail(err.message);
 *     printf("rank %d of %d\n", amp_comm_rank(comm), amp_comm_size(comm));
 *     ...                                          sessions that were made with it
 *     amp_comm_release(comm);
 *
 * A rank is one process of R that a launcher (mpirun, srun) has started.  The library needs a C library only: MPI is
 * opened at run time, whichever of Open MPI, MPICH, Intel MPI and what has the ABI of MPI 5 the launcher belongs to.
 *
 * The engine "files" needs no MPI: ranks meet in a folder that all of them see, and all that they exchange are files in
 * it, added in the order of ranks as with |ordered|.  That is slow, and meant for a few ranks of one machine, where
 * /dev/shm is the best place, or of hosts with a network file system.  Who they are comes from the launcher: RANK and
 * WORLD_SIZE (torchrun), SLURM_PROCID and SLURM_NTASKS (srun), the variables of Open MPI and MPICH; or from |rank| and
 * |ranks|.  Rank 0 makes the folder, for its user alone, if it is not there; one that other users may write to, that
 * belongs to another user or that is a symbolic link is AMP_WRONG_STATE.  What an earlier start has left in it is
 * never believed, and is removed if its rank 0 has ended.  The last rank that leaves removes what is of this start;
 * where one has died, that stays until the next start in the folder.
 *
 * The engine "nccl" is the engine "mpi", or with |folder| the engine "files", and sessions on the device "cuda" leave
 * on it what they exchange in a step: NCCL 2.18 or newer, opened at run time too, adds it up in the order of their
 * stream, and the host waits for nothing.  The first such session of a comm joins the devices of all ranks; all
 * sessions of a comm are on one device, and every rank of a host has its own.  When a rank fails while a step is under
 * way, what the session and its params have on the device is of no whole step, and every call that would read it fails
 * with AMP_PEER_FAILED.  It has run under stand-ins for the driver and NCCL alone, on no GPU.
 *
 * All ranks open, use and release their comms in the same order.
 *
 * Threads.  One thread at a time calls with a comm; which one may change.  A comm has a thread of its own, with 4 MiB
 *           of stack and signals blocked but faults, which makes every call of MPI, MPI_Init_thread and MPI_Finalize
 *           too.  Where the program has initialised MPI without MPI_THREAD_MULTIPLE, calls of MPI are made by the
 *           threads that call here, and messages move during these calls alone.
 * fork.     Children have no ranks: they may not use a comm.
 * Errors.   amp/base.h.  AMP_PEER_FAILED: a rank has died, hangs or disagrees, or a call of MPI failed.  It is sticky,
 *           and its text begins with the rank that reports it and names the rank at fault.  It comes |timeout| after
 *           the last message, 2 s later if ranks are slow to answer; after twice the timeout for a rank that lives and
 *           computes, after twenty for one that loads, saves or evaluates.  No MPI function is called after
 *           that, not even MPI_Finalize, and memory of collectives that were under way may still be written until the
 *           process ends: end it soon.
 * NULL.     As in amp/amp.h.
 */
#ifndef AMP_COMM_H
#define AMP_COMM_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_comm amp_comm;

typedef struct amp_comm_options {
    size_t struct_size;
    const amp_allocator *allocator; /* copied */
    const char *engine;             /* "mpi", "files" or "nccl" (above); NULL: "mpi" */
    const char *library; /* the MPI to open, NULL: the one of the process, else by launcher, else the first that is
                            there; of the engine "nccl": the NCCL, NULL: libnccl.so.2 */
    double timeout;      /* seconds without an answer after which a rank has failed; 0: 30 */
    int32_t ordered;     /* 1: sums have the bits of adding ranks from left to right, on every machine; equal on all */
    const char *folder;  /* where ranks meet without MPI, copied; NULL: they meet by MPI */
    int32_t rank, ranks; /* with |folder|: which of how many this is; 0, 0: the launcher says it */
} amp_comm_options;

/* Training on several ranks (amp_session_options.comm, which outlives the session): a model that was compiled with
 * `ampc --distribute data`.  Each rank is a process with a session of its own and samples of its own; a step equals the
 * step of one rank with the micro-batches of all, and weights, moments, counters and the loss scale stay the same on
 * all.  amp_session_create, each amp_step and amp_checkpoint_load are called by all ranks, in the same order; the first
 * and the last give all ranks what rank 0 has.  Losses and metrics of a complete step cover all ranks;
 * amp_eval's cover the rank's own samples.  A step waits for the slowest rank; AMP_PEER_FAILED: a rank has died, hangs
 * or disagrees, and no call of the session trains any more.  AMP_MISMATCH at creation: a rank has another model,
 * policy, version or option.  AMP_INVALID_ARGUMENT: the model was compiled to train alone.  On "cuda" what ranks
 * exchange goes by the host's memory.  Sessions that do not train ignore it.
 *
 * Of a model of `ampc --distribute zero1` each rank has a share of the moments alone, and updates that share of the
 * weights: after each step all ranks have all weights, as ever.  Besides, all ranks call amp_checkpoint_save, and
 * amp_session_get_moment and amp_session_set_moment, in the same order.  Once a call has failed with AMP_PEER_FAILED
 * the weights may be of no whole step, and moments cannot be saved: go on from the last checkpoint.  AMP_UNSUPPORTED at
 * creation: keep_values or grad_norm is set, which need whole gradients.  On the device "cpu" alone.  If the model
 * reads copies of weights, a rank also has only a share of their masters: between steps params are whole as ever,
 * within one (accumulate) reading or setting them is AMP_WRONG_STATE, as is creating another session on them, but for
 * published ones; where one is alive already, masters stay whole.
 * Of ranks with shares all save a checkpoint: rank 0 gets the others' moments and writes the file, and the others write
 * none; whether it could, rank 0 alone knows.  Moments come and go one at a time, so that no rank needs memory for more
 * than its share and the largest one; if reading fails half-way (AMP_IO, AMP_PEER_FAILED, AMP_BAD_FILE of one that is
 * not as it was saved, by its sum), the ranks have to load again. */

/* Joins the ranks that the launcher started: calls MPI_Init_thread unless the program has, or writes to |folder|, and
 * compares versions and |ordered| of all ranks.  Waits for all of them, |timeout| at most, but no less than 30 s; in a
 * folder AMP_PEER_FAILED then names the ranks that have not come.
 * AMP_NOT_FOUND: no such engine, no MPI or no NCCL.  AMP_BAD_FILE: |library| is no MPI, or no NCCL.  AMP_UNSUPPORTED:
 * an MPI of a kind that is not known; an NCCL that is too old; "nccl" with |ordered|, as sums have an order of their
 * own, or in a program that has initialised MPI without MPI_THREAD_MULTIPLE.  AMP_MISMATCH: the launcher and the MPI do
 * not belong together, or a rank has another version, another |ordered| or another number of ranks.  AMP_WRONG_STATE:
 * MPI was finalised before; the folder has other files, or is in use by another start.  AMP_IO: the folder cannot be
 * written.
 * AMP_INVALID_ARGUMENT, AMP_OUT_OF_MEMORY, AMP_PEER_FAILED. */
AMP_API AMP_MUST_USE amp_status amp_comm_open(const amp_comm_options *options, amp_comm **out, amp_error *err);

/* The same over the ranks of a communicator of the program: |mpi_comm| is the address of an MPI_Comm of |size| bytes.
 * It is duplicated, and neither changed nor freed.  The program has initialised MPI and finalises it, after the
 * release.  AMP_WRONG_STATE: MPI is not initialised. */
AMP_API AMP_MUST_USE amp_status amp_comm_from_mpi(const void *mpi_comm, size_t size, const amp_comm_options *options,
                                                  amp_comm **out, amp_error *err);

/* The engine "nccl" over a communicator of the program: |nccl_comm| is an ncclComm_t of the NCCL that |library| names,
 * ready, made in the primary context of the device on which the sessions will be.  The ranks are its ranks; what the
 * host has to tell goes over MPI, which has to number them in the same way, or with |folder| by files.  It has to live
 * until amp_comm_release, which neither changes nor destroys it; the program enqueues nothing on it while a call of a
 * session is under way.  After AMP_PEER_FAILED it was aborted (ncclCommAbort): the program may not use or destroy it
 * any more.  All ranks call this, or none.
 * AMP_INVALID_ARGUMENT: another engine than "nccl" or NULL.  AMP_MISMATCH, by the first session: another rank or number
 * of ranks than those that have met.  Else as amp_comm_open. */
AMP_API AMP_MUST_USE amp_status amp_comm_from_nccl(void *nccl_comm, const amp_comm_options *options, amp_comm **out,
                                                   amp_error *err);

/* Which of the ranks this is, from 0; how many there are.  NULL: 0 and 1.  Any thread. */
AMP_API int32_t amp_comm_rank(const amp_comm *comm);
AMP_API int32_t amp_comm_size(const amp_comm *comm);

/* Gathers |size| bytes of each rank into all[R][size], by rank, and waits for all ranks, which call it at the same
 * place among all their calls, of sessions too.  |what| names the meeting in errors: "whether training goes
 * on".  A |size| of 0: ranks only wait for each other.  If ranks meet for something else or with another size, the call
 * fails on all of them, for good. */
AMP_API AMP_MUST_USE amp_status amp_comm_meet(amp_comm *comm, const void *mine, size_t size, void *all,
                                              const char *what, amp_error *err);

/* What a rank may be doing while others wait for it; all but computing may take long (Errors, above). */
typedef enum amp_rank_does {
    AMP_RANK_COMPUTES = 0,
    AMP_RANK_LOADS = 1,
    AMP_RANK_SAVES = 2,
    AMP_RANK_EVALUATES = 3
} amp_rank_does;
/* What this rank does from now on, until a session or the next call says something else; |step|: the step that it
 * computes, or the one before what it does, -1: none.  Ranks that wait for it name it.  Any thread. */
AMP_API void amp_comm_does(amp_comm *comm, amp_rank_does what, int64_t step);

/* This rank ends because of an error of its own: the others fail with |why| at once, and not after their timeout.
 * Every later call fails, but the release.  Takes a second at most. */
AMP_API void amp_comm_give_up(amp_comm *comm, const char *why);

/* What amp_comm_release does, and it says which rank was missing: all ranks call it, and only the release after it.
 * Waits for the others, |timeout| at most, then twice as long for the engine.  AMP_WRONG_STATE: the second time. */
AMP_API AMP_MUST_USE amp_status amp_comm_leave(amp_comm *comm, amp_error *err);

/* All ranks, after everything that uses the comm is released.  Waits for the others, |timeout| at most; then calls
 * MPI_Finalize where amp_comm_open initialised MPI.  After AMP_PEER_FAILED it waits for no rank and calls nothing of
 * MPI.  NULL is a no-op. */
AMP_API void amp_comm_release(amp_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
