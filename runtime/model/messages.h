/* messages.h: what the collectives of a model's table move: the bytes of each, and when it is complete.  |table| has
 * the table; |model| runs: the same, or its form for CUDA, whose states are found by name. */
#ifndef AMP_RUNTIME_MODEL_MESSAGES_H
#define AMP_RUNTIME_MODEL_MESSAGES_H

#include "runtime/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of |model|, state |i| of the message; -1: it has none of that name. */
int32_t amp_collective_state(const amp_model *table, const amp_model *model, const amp_model_collective *collective,
                             uint32_t i);
/* Of the states, one after the other. */
size_t amp_collective_block_bytes(const amp_model *table, const amp_model *model,
                                  const amp_model_collective *collective);
/* Of the message: of GATHER_BATCHES what all micro-batches of |ranks| ranks have left. */
size_t amp_collective_bytes(const amp_model *table, const amp_model *model, const amp_model_collective *collective,
                            int32_t ranks);
/* The last kernel of micro_step that uses the state; -1: none. */
int32_t amp_state_last_use(const amp_model *model, int32_t state);
/* The same of all states of the message. */
int32_t amp_collective_last_use(const amp_model *table, const amp_model *model, const amp_model_collective *collective);

#ifdef __cplusplus
}
#endif

#endif
