/* state_type.h: how parameters or moments are stored, as `masters = bf16` and `moments = bf16(rounding = nearest)` of a
 * precision block say. */
#ifndef AMP_IR_STATE_TYPE_H
#define AMP_IR_STATE_TYPE_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ROUNDING_STOCHASTIC "stochastic"
#define ROUNDING_NEAREST "nearest"

#define STATE_TYPE_F8 "f8"

typedef struct StateType {
    Dtype dtype;     /* f8 is AMP_DT_F8M, of second moments AMP_DT_F8V */
    bool stochastic; /* else to nearest even */
} StateType;

/* A call without a name is f32.  False: it is no such call. */
bool ir_state_type(const Call *c, StateType *out);
/* Whether masters or moments have their type by a line of the policy, rather than by the model's precision block. */
bool ir_state_type_is_of_policy(const Module *m, const Call *c);

#ifdef __cplusplus
}
#endif

#endif
