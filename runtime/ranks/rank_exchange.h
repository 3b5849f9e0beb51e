/* rank_exchange.h: what ranks exchange in a step, and what they share; for this folder and whoever lists messages. */
#ifndef AMP_RUNTIME_RANKS_RANK_EXCHANGE_H
#define AMP_RUNTIME_RANKS_RANK_EXCHANGE_H

#include "runtime/ranks/ranks.h"

/* What ranks exchange in a step; see exchange.c. */
typedef struct amp_message {
    /* What is sent and received: the block of the states; of GATHER_BATCHES (what each micro-batch of all ranks has
     * left, one after the other) memory of its own.  In the host's memory, where on a device all messages have memory
     * of their own; with |enqueued| in the device's. */
    void *data;
    size_t count, bytes; /* elements, and bytes of |data| */
    size_t block_bytes;  /* of the states, one after the other */
    int32_t ready;       /* the kernel of micro_step after which it is complete, and those before it are; -1: at once */
    uint64_t number;     /* of the comm, once it is started */
    bool is_owned;       /* |data| */
} amp_message;

/* Hashes of what a rank has in common with the others: drift.c. */
typedef struct amp_fingerprint {
    uint64_t scalars, weights;
} amp_fingerprint;

typedef struct amp_exchange {
    amp_comm *comm;
    const amp_ranks *ranks;
    const amp_model *model;          /* of the session */
    bool on_device;                  /* states are in the memory of a device */
    amp_message *messages;           /* by collective of |model| */
    int32_t started;                 /* in the step, of the messages */
    amp_device_collective *enqueued; /* by message, where collectives run on the device; NULL: they do not */
    amp_fingerprint *prints;         /* by rank */
    uint64_t compared;               /* the gather of |prints| that is under way; with |enqueued| */
    bool compares;                   /* there is one */
} amp_exchange;

/* States are in the memory of a device. */
static inline bool amp_ranks_on_device(const amp_ranks *ranks) { return ranks->session.device->type->device_memory; }
/* How many steps have been made, on the host; NULL where the model does not count them. */
static inline const int64_t *amp_ranks_iteration(const amp_ranks *ranks) {
    const int32_t i = amp_model_counter(ranks->session.model, AMP_COUNTER_ITERATION);
    return i >= 0 ? ranks->session.states->host[i] : NULL;
}

/* ---- agreement.c ------------------------------------------------------------------------------------------------- */

/* All ranks, before their first step: they train the same. */
amp_status amp_ranks_agree(amp_ranks *ranks, amp_error *err);
/* All ranks: they get rank 0's weights, moments and counters. */
amp_status amp_ranks_share(amp_ranks *ranks, amp_error *err);
/* Whether all ranks have the same number or scale in it. */
bool amp_ranks_share_scalar(const amp_ranks *ranks, int32_t state);

/* ---- drift.c ----------------------------------------------------------------------------------------------------- */

/* Starts to gather the ranks' fingerprints, as collective |*number|. */
amp_status amp_ranks_compare(const amp_ranks *ranks, uint64_t *number, amp_error *err);
/* When they have come: AMP_MISMATCH names the first rank that differs from rank 0. */
amp_status amp_ranks_check_drift(const amp_ranks *ranks, amp_error *err);
/* Both, where the host waits for no step: it looks at what was gathered in the step before.  That has come by now, or
 * soon will: so a host is two steps ahead at most. */
amp_status amp_ranks_compare_in_passing(const amp_ranks *ranks, amp_error *err);

/* ---- exchange.c -------------------------------------------------------------------------------------------------- */

amp_status amp_ranks_make_exchange(amp_ranks *ranks, amp_error *err);
void amp_ranks_free_exchange(amp_ranks *ranks);
/* Of what ranks compare in each step. */
size_t amp_fingerprints_bytes(int32_t ranks);
/* What a session of |ranks| ranks takes more for collective |message| than one that trains alone; -1: for all
 * together, besides. */
uint64_t amp_exchange_bytes(const amp_model *model, int32_t message, int32_t ranks);
static inline bool amp_exchange_gathers(const amp_model_collective *c) { return c->op == AMP_EXCHANGE_GATHER_BATCHES; }
/* Whether messages are in the host's memory, and states are not. */
static inline bool amp_exchange_is_apart(const amp_exchange *x) { return x->on_device && !x->enqueued; }
/* What micro-batch |batch| of all ranks has left: in the message that gathers them; */
static inline char *amp_message_batch(const amp_message *m, int64_t batch) {
    return (char *)m->data + m->block_bytes * (size_t)batch;
}
/* and where micro_step leaves it, and statistics_step reads it: states of one message are one block. */
void *amp_exchange_block(const amp_exchange *x, int32_t message);
/* What micro-batch |micro| of this rank has left is kept in the message; not of the last one, which goes with it. */
amp_status amp_exchange_keep(const amp_exchange *x, int64_t micro, amp_error *err);
/* What starts messages while |program| runs. */
amp_kernel_hooks amp_exchange_hooks(amp_exchange *x, const amp_program *program, int64_t micro);
/* rank_sums.c: the hook of a COLLECTIVE; |exchange| is the session's. */
amp_status amp_exchange_sum(void *exchange, const char *what, float *data, size_t count, amp_error *err);
/* After the last micro-batch: waits for all messages of the step; of a device they go by the host's memory, here. */
amp_status amp_exchange_finish(amp_exchange *x, amp_error *err);

/* The message that gathers statistics; -1: none. */
int32_t amp_exchange_gathering(const amp_exchange *x);
/* Before statistics_step: it finds what the micro-batches of |batches| have left. */
amp_status amp_exchange_give_batches(const amp_exchange *x, amp_micro_batches *batches, amp_error *err);

/* ---- exchange_device.c ------------------------------------------------------------------------------------------- */

/* Whether collectives run on the device, and room for their list. */
amp_status amp_exchange_on_device(amp_exchange *x, amp_error *err);
/* The message's memory, on the device. */
amp_status amp_exchange_place(const amp_exchange *x, int32_t message, amp_error *err);
/* All ranks, once they agree. */
amp_status amp_exchange_attach(const amp_exchange *x, amp_error *err);
/* As a comm has it. */
amp_collective_op amp_exchange_engine_op(const amp_model_collective *collective);
amp_status amp_exchange_enqueue(const amp_exchange *x, amp_error *err);
amp_status amp_exchange_enqueue_gathers(const amp_exchange *x, amp_error *err); /* of weights, after apply_step */
/* Runs from now on use what the collectives so far have left; AMP_PEER_FAILED: none is under way any more, and what was
 * there before them is whole, or the device has failed. */
amp_status amp_exchange_use(const amp_exchange *x, amp_error *err);
void amp_exchange_leave_device(const amp_exchange *x);

/* ---- shares.c: where each rank has a share of the moments (zero1) ------------------------------------------------ */

/* Before states have memory. */
amp_status amp_ranks_plan_shares(amp_ranks *ranks, amp_error *err);
void amp_ranks_free_shares(amp_ranks *ranks);
/* After gradients have been exchanged. */
amp_status amp_ranks_clear_other_shares(const amp_ranks *ranks, amp_error *err);
/* After apply_step: the shares that other ranks have updated. */
amp_status amp_ranks_gather_weights(amp_ranks *ranks, amp_error *err);

/* ---- shared_masters.c: where each rank has a share of the masters, too ------------------------------------------- */

/* When ranks have the same weights and messages have memory; of a session that is only planned, at once. */
amp_status amp_ranks_share_masters(amp_ranks *ranks, amp_error *err);
void amp_ranks_return_masters(amp_ranks *ranks); /* before messages are freed */
/* Whole masters are in the memory of gradients, which micro_step writes, until they have been gathered. */
void amp_ranks_masters_leave(const amp_ranks *ranks);
void amp_ranks_masters_come(amp_ranks *ranks);
/* A share to the whole master. */
amp_status amp_ranks_give_master(const amp_ranks *ranks, int32_t state, amp_error *err);

/* ---- state_memory.c: bytes of states, on the host or the device -------------------------------------------------- */

/* Within that memory; of a device after all runs so far, and not waited for. */
amp_status amp_ranks_copy_bytes(const amp_ranks *ranks, void *to, const void *from, size_t bytes, amp_error *err);
amp_status amp_ranks_clear_bytes(const amp_ranks *ranks, void *at, size_t bytes, amp_error *err); /* whole words */
/* From there to the host's memory, and back. */
amp_status amp_ranks_read_bytes(const amp_ranks *ranks, void *to, const void *from, size_t bytes, amp_error *err);
amp_status amp_ranks_write_bytes(const amp_ranks *ranks, void *to, const void *from, size_t bytes, amp_error *err);

#endif
