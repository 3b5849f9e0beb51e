/* amp/data.h: batches of the application's own data, filled ahead by a thread while the model computes.
 *
 *     static amp_status fill(void *user, int64_t index, void *const *arrays, amp_sizes capacity, amp_sizes *sizes,
 *                            amp_error *err) {
 *         sizes->n = read_batch(user, index, arrays[0], arrays[1], capacity.n);
 *         return AMP_OK;
 *     }
 *     amp_dataset_options data = {.struct_size = sizeof data, .fill = fill, .user = file, .capacity.n = 128};
 *     if (amp_dataset_create(model, &data, &dataset, &err)) return fail(err.message);
 *     while (!(status = amp_dataset_next(dataset, &inputs, &sizes, &err)) && sizes.n)
 *         status = amp_step(session, inputs, sizes, &report, &err);
 *
 * Threads.   One at a time uses a dataset.  Its thread, which the first amp_dataset_next starts, calls fill and nothing
 *            else of the application's; it blocks all signals but faults, has 8 MiB of stack, and sleeps where there is
 *            nothing to fill.  With ahead = -1 there is none, and amp_dataset_next calls fill itself.
 * Memory.    (ahead + 1) batches of the largest size, of the model's allocator, taken when the dataset is made.
 * fork.      In a child process the first amp_dataset_next starts a thread anew, and fill is called again for the
 *            batches that had been filled but not given: what it reads from must bear that.  AMP_WRONG_STATE where
 *            the process was forked while another thread was in a call of the dataset.
 *
 * Objects, errors and options as in amp/amp.h.
 */
#ifndef AMP_DATA_H
#define AMP_DATA_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_dataset amp_dataset;

/* Fills batch |index|: the first |sizes->n| samples of the arrays, one for each input of the model in order, which have
 * room for |capacity| in the dtype and shape of amp_model_input_at.  They are aligned to 64 bytes and hold what an
 * earlier batch left.  |*sizes| is |capacity| before: of a batch whose T is smaller fill sets t, and the arrays have
 * the shapes at it.  If the options limit |tokens|, fill sets sizes whose n * t is no more.  n = 0: the data end before
 * this batch.
 * A failure is what amp_dataset_next answers: its status, and "batch INDEX: " with the text in |err| (never NULL).
 * Called for one batch at a time, in order, from |first| on; again from an earlier or later one after
 * amp_dataset_seek, and again for one that failed.  It must not call the dataset, throw or jump out. */
typedef amp_status (*amp_fill_batch)(void *user, int64_t index, void *const *arrays, amp_sizes capacity,
                                     amp_sizes *sizes, amp_error *err);

typedef struct amp_dataset_options {
    size_t struct_size;
    amp_fill_batch fill;
    void *user;
    amp_sizes capacity;  /* of a batch at most; n = 0: 1; t = 0: the model's largest */
    int64_t first;       /* the batch that amp_dataset_next gives first: where a checkpoint goes on, say */
    int32_t ahead;       /* batches that are filled before they are asked for, at most; 0: 2; -1: none, and no thread */
    const char *program; /* as in amp_session_options; "infer": the model's own inputs, without its train block's */
    int64_t tokens;      /* n * t of a batch at most, as in amp_session_options; 0: capacity.n * capacity.t */
} amp_dataset_options;

AMP_API AMP_MUST_USE amp_status amp_dataset_create(amp_model *model, const amp_dataset_options *options,
                                                   amp_dataset **out, amp_error *err);
AMP_API void amp_dataset_retain(amp_dataset *dataset);
/* Waits for a call of fill that is under way; none follows. */
AMP_API void amp_dataset_release(amp_dataset *dataset);

/* The next batch: |*inputs| and |*sizes| for amp_step, amp_eval or amp_infer; NULL and 0 if the data end.
 * The arrays hold until the next call of the dataset.  After an error, and at the end, the next call asks fill for the
 * same batch again. */
AMP_API AMP_MUST_USE amp_status amp_dataset_next(amp_dataset *dataset, const void *const **inputs, amp_sizes *sizes,
                                                 amp_error *err);
/* Goes on with batch |index| (0 or more); waits for a call of fill that is under way. */
AMP_API AMP_MUST_USE amp_status amp_dataset_seek(amp_dataset *dataset, int64_t index, amp_error *err);
/* The batch that the next amp_dataset_next gives. */
AMP_API int64_t amp_dataset_position(const amp_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
