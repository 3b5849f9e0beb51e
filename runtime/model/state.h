/* state.h: the memory of states (amp_model_state): parameters, moments, counters; and their first values. */
#ifndef AMP_RUNTIME_MODEL_STATE_H
#define AMP_RUNTIME_MODEL_STATE_H

#include <stdbool.h>

#include "amp/model_abi.h"
#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "runtime/model/model.h"

bool amp_state_is_param(const amp_model_state *state);   /* PARAM or BUFFER: what a file of params holds */
bool amp_state_is_in_rows(const amp_model_state *state); /* its memory is what a file holds */

size_t amp_state_bytes(const amp_model_state *state); /* of its memory, in its layout */
/* Up to the last element: rows have their padding after it, other layouts between elements. */
size_t amp_state_content_bytes(const amp_model_state *s);

/* The memory of one can be the memory of the other, if their shapes are the same. */
bool amp_state_stored_alike(const amp_model_state *a, const amp_model_state *b);

/* One pointer per state of the model, NULL for those that are not wanted. */
typedef bool amp_state_filter(const amp_model *model, int32_t index, const void *ctx);
bool amp_state_lives_in_params(const amp_model *model, int32_t index, const void *ctx); /* a filter: else in sessions */
/* Once, when the model has been checked: which states are one block. */
amp_status amp_states_join(amp_model *model, amp_error *err);
/* |blocks|, by state: in place of the model's; NULL: those. */
amp_status amp_states_alloc(const amp_model *model, const amp_state_block *blocks, amp_state_filter *wanted,
                            const void *ctx, const amp_allocator *allocator, void ***out, amp_error *err);
/* Counts what that would allocate. */
void amp_states_plan(const amp_model *model, const amp_state_block *blocks, amp_state_filter *wanted, const void *ctx,
                     amp_counted_allocator *allocator);
void amp_states_free(const amp_model *model, const amp_state_block *blocks, void **states,
                     const amp_allocator *allocator);
/* Bytes of memory that the state adds to those before it. */
size_t amp_state_block_bytes(const amp_model *model, const amp_state_block *blocks, int32_t state);

/* Row-major f32 from and to the state's memory. */
void amp_state_set_f32(const amp_model_state *state, void *memory, const float *from);
void amp_state_get_f32(const amp_model_state *state, const void *memory, float *to);

/* The same of |count| elements from |from| on, as a file counts them: row-major, or of a matrix that is stored there as
 * [cols, rows] where |turned|.  Padding is left as it is. */
void amp_state_put_f32(const amp_model_state *state, void *memory, bool turned, size_t from, size_t count,
                       const float *values);
void amp_state_take(const amp_model_state *state, const void *memory, bool turned, size_t from, size_t count,
                    void *values, amp_dtype dtype);

/* First values of every state that has memory, zeroed, and is neither derived nor a moment. */
amp_status amp_states_initialise(const amp_model *model, void *const *states, uint64_t seed,
                                 const amp_allocator *allocator, amp_error *err);
/* Elements of the largest state; at least 1. */
size_t amp_states_largest(const amp_model *model);

/* That no finite value becomes infinite where it is stored.  AMP_MISMATCH names the first; |from|: its number in the
 * tensor. */
amp_status amp_state_check_range(const amp_model_state *state, const float *values, size_t count, size_t from,
                                 amp_error *err);

/* amp_params_get and the like: |what| is "parameter" or "optimizer state". */
amp_status amp_state_check_count(const amp_model_state *state, const char *what, size_t count, amp_error *err);

/* ---- first values ------------------------------------------------------------------------------------------------ */

/* Element e of a tensor is drawn from the Philox word of (seed, hash of the tensor's name, e), so it depends on nothing
 * else: the same seed gives the same bits on every machine.  All arithmetic is IEEE double without contraction; no
 * function of libm but sqrt, which IEEE 754 defines exactly.  Reference: docs/language, "Initialisers"; formulas are
 * PyTorch's (torch.nn.init). */

/* That the state's initialiser exists and fits its shape.  The message does not name the state. */
amp_status amp_initialiser_check(const amp_model_state *state, amp_error *err);
/* All elements, row-major; the state passed amp_initialiser_check. */
void amp_initialise(const amp_model_state *state, uint64_t seed, float *out);
/* Of a counter or of the scaler, whose initialiser is a number: in double, because a learning rate is one. */
double amp_initial_scalar(const amp_model_state *state);

#endif
