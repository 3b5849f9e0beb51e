/* places.h: buffers that take the memory of others (Buffer.place). */
#ifndef AMP_IR_PLACES_H
#define AMP_IR_PLACES_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The buffer whose memory buffer |id| has, both from 1. */
uint32_t ir_place_of(const Func *f, uint32_t id);
/* Whether one of the buffers |ids| has the memory of buffer |id|. */
bool ir_is_among(const Func *f, const uint32_t *ids, int count, uint32_t id);
/* Whether |b| reads or writes what |a| writes, or is skipped by it.  |flags|: also where both write a flag, which takes
 * any order. */
bool ir_touches(const Func *f, const Kernel *a, const Kernel *b, bool flags);
/* A tile kernel that is a reshape of one buffer into another, and nothing else. */
bool ir_is_reshape_alone(const Func *f, const Kernel *k);
/* A tile kernel that puts rows of whole buffers beside each other, or takes parts of them, and nothing else. */
bool ir_is_cut_alone(const Func *f, const Kernel *k);
/* A kernel that has nothing to do: a reshape, concat or slices whose results have the memory of its operands. */
bool ir_is_still(const Func *f, const Kernel *k);
/* Whether |b| has the memory of its place in every session: such a kernel makes it, or reads it as a part. */
bool ir_is_renamed(const Func *f, const Buffer *b);

#ifdef __cplusplus
}
#endif
#endif
