/* messages.h: what the collectives of a model move: the bytes of each, and when it is complete. */
#ifndef AMP_RUNTIME_MODEL_MESSAGES_H
#define AMP_RUNTIME_MODEL_MESSAGES_H

#include "runtime/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of REDUCE_SCATTER and ALL_GATHER: ranks have parts of the message of one size.  Each state begins on a whole unit,
 * and parts are of whole units: a unit is a tile of panels, 32 x 32, or as many elements of rows. */
enum { AMP_SHARE_UNIT = 1024 };
bool amp_collective_is_shared(const amp_model_collective *collective);
bool amp_collective_is_scattered(const amp_model_collective *collective); /* REDUCE_SCATTER, in whatever order */
/* The REDUCE_SCATTER of the param's gradient, which is its state |*at|; NULL: ranks have no shares of the param. */
const amp_model_collective *amp_collective_scattering(const amp_model *model, int32_t param, uint32_t *at);

/* A rank's share of a state: its elements, as they are in memory. */
typedef struct amp_share {
    int64_t first, end; /* end < 0: there are no shares of it, and each rank has all */
} amp_share;
/* Of state |i| of a message that is shared. */
amp_share amp_collective_share(const amp_model *model, const amp_model_collective *collective, uint32_t i, int32_t rank,
                               int32_t ranks);
/* The element of the message with which state |i| of it begins. */
int64_t amp_collective_place(const amp_model *model, const amp_model_collective *collective, uint32_t i);
/* Elements in memory, between which there may be padding but not after them. */
int64_t amp_state_slots(const amp_model_state *state);
/* The REDUCE_SCATTER that brings the gradients of weights which |gather|, an ALL_GATHER, brings. */
int32_t amp_collective_of_gradients(const amp_model *model, int32_t gather);

/* Whether elements of those gradients take the 4 bytes that one of the weights takes on its way: then these travel in
 * their memory. */
bool amp_collective_in_place(const amp_model *model, int32_t gather);

/* Whether only kernels that can run for a share, and derived copies, read the param: then a rank has no more than its
 * share of it while a step runs, where its message is in the memory of gradients (shared_master.c). */
bool amp_master_can_be_shared(const amp_model *model, int32_t param);

/* Of the states, one after the other. */
size_t amp_collective_block_bytes(const amp_model *model, const amp_model_collective *collective);
/* Of the message: of GATHER_BATCHES what all micro-batches of |ranks| ranks have left. */
size_t amp_collective_bytes(const amp_model *model, const amp_model_collective *collective, int32_t ranks);
/* The last kernel of micro_step that uses the state; -1: none. */
int32_t amp_state_last_use(const amp_model *model, int32_t state);
/* The same of all states of the message. */
int32_t amp_collective_last_use(const amp_model *model, const amp_model_collective *collective);
/* Weights, each with operands of its own, whose shares a kernel for CUDA runs for. */
static inline uint32_t amp_cuda_share_members(const amp_model_cuda_kernel *kernel) {
    return kernel->shares && kernel->elements.count ? kernel->elements.count : 1;
}

/* Whether ranks add up inside of a program for CUDA.  Then messages begin at its end: a communicator does one thing at
 * a time, and the program has it. */
bool amp_program_sums_on_device(const amp_program *program);

#ifdef __cplusplus
}
#endif

#endif
