/* low_states.h: parameters and moments in 16 bits: the last step of the pass optimizer. */
#ifndef AMP_PASSES_TRAINING_LOW_STATES_H
#define AMP_PASSES_TRAINING_LOW_STATES_H

#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores the states in the types that the precision block gives them.  False after an error. */
bool store_low_states(PassContext *c);

#ifdef __cplusplus
}
#endif

#endif
