/* places.h: buffers that take the memory of others (Buffer.place). */
#ifndef AMP_IR_PLACES_H
#define AMP_IR_PLACES_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The buffer whose memory buffer |id| has, both from 1. */
uint32_t ir_place_of(const Func *f, uint32_t id);
/* A tile kernel that is a reshape of one buffer into another, and nothing else. */
bool ir_is_reshape_alone(const Func *f, const Kernel *k);
/* A kernel that has nothing to do: such a reshape whose result has the memory of its operand. */
bool ir_is_still(const Func *f, const Kernel *k);
/* Whether such a kernel makes |b|: then it has that memory in every session. */
bool ir_is_renamed(const Func *f, const Buffer *b);

#ifdef __cplusplus
}
#endif
#endif
