/* amp/cuda.h: sessions on a CUDA device: which one, on whose stream, and where inputs are.
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_CUDA_H
#define AMP_CUDA_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_cuda_options { /* of amp_session_options.cuda; on other devices AMP_INVALID_ARGUMENT unless zero */
    size_t struct_size;
    int32_t index;         /* which device, from 0, if |stream| is NULL */
    int32_t device_inputs; /* 1: arrays that calls of the session take are in the device's memory: below */
    int32_t pinned_inputs; /* 1: they are in page-locked memory of the host: below */
    int32_t products;      /* AMP_PRODUCTS_*: below */
    void *stream; /* a CUstream (or cudaStream_t) of the application, on which everything runs; it and its context must
                     outlive the session and its params.  NULL: a stream of its own in the device's primary context.
                     Calls leave the caller's current context as it is */
    const char *choices;     /* of products: a file of amp_session_save_choices; NULL: none */
    double products_seconds; /* for measurements of products: after them no other begins; 0: 3 seconds; below 0: nothing
                                is measured */
} amp_cuda_options;

/* Inputs in device memory ("cuda", device_inputs = 1): each array given to amp_step, amp_eval and amp_infer is an
 * address that cuMemAlloc, cudaMalloc or an allocator over them gave (also of managed memory), on the session's device.
 * Nothing but a few counters comes from the host.  Results are written to arrays of the host as ever.
 * Order.    The session's stream copies the arrays within the device, after all that is on it when the call is made:
 *           what makes them is to be on |stream|, ordered before by an event that it waits for, or done.  What the
 *           application puts on |stream| after the call may write them; other work, and a session with a stream of
 *           its own, have to wait until a later amp_step with a report, amp_eval or amp_infer has returned, or the
 *           session is released.
 * Indices.  The host cannot look at them before the call, so the device does.  In the place of one that is out of range
 *           it computes with what the input ignores, or else with 0, and nothing is read past a table; that call, or
 *           without a report a later one that reads results, answers AMP_INVALID_ARGUMENT with input, sample and index.
 *           The step still ran.  Each bad index is reported once.
 * Errors.   An array that begins or ends elsewhere than in the device's memory: AMP_INVALID_ARGUMENT, before anything
 *           changes.  What is between the two ends cannot be checked.
 * AMP_INVALID_ARGUMENT on "cpu" and "null".
 *
 * Inputs in page-locked memory ("cuda", pinned_inputs = 1): each array given to these calls is in memory that
 * amp_session_alloc_pinned, cuMemHostAlloc, cudaMallocHost or an allocator over them gave (PyTorch's pin_memory), or
 * that cuMemHostRegister locked.  The device copies it while the host goes on; without the option a call first copies
 * it to such memory.
 * Order.    An array may be written or freed once its call or a later one has waited and returned AMP_OK (amp_step with
 *           a report, amp_eval, amp_infer), once the report of its call was given, once two later calls that take
 *           inputs have returned AMP_OK, or once the session is released.  Until then the device may read it, whatever
 *           its call returned.  So for steps without a report three sets of arrays take turns.
 * Indices.  The host checks them within the call, as without the option.
 * Errors.   An array that begins or ends elsewhere: AMP_INVALID_ARGUMENT, before anything changes.
 * AMP_INVALID_ARGUMENT on "cpu" and "null", and together with device_inputs. */

/* Who makes matrix products: ampc's kernels, or NVIDIA's cuBLASLt if it is installed (docs/installing.md).
 *
 * SAME_BITS  the library for launches that it makes faster and with the same bits as ampc's kernel, on ten million
 *            numbers
 * OWN        ampc's kernels alone; the library is not opened
 * FASTEST    the library for launches that it makes faster; its sums may have another order, so the bits depend on the
 *            device, the library and the measurement.  AMP_NOT_FOUND without the library.  AMP_LOG_NUMBERS does not
 *            count its products
 *
 * amp_session_create measures, at the capacity, what steps run, or inference in a session that does not train, and
 * keeps its choices beside the compiled kernels, where later sessions find them.  At another number of samples a launch
 * has its choice at that number from disk, else the choice at the nearest number that has one: with SAME_BITS only if
 * k, the length of its sums, is the same at both, and no workspace is wanted; else it is ampc's.  Each choice is said
 * once (AMP_LOG_INFO), and listed by amp_session_choice_at (amp/inspect.h).  amp_session_get_memory counts the
 * library's workspace.
 *
 * |choices| is read before the disk.  AMP_MISMATCH: it was made for other kernels, another device, driver, version of
 * the library, or another |products|, which may change what is fastest or right; AMP_NOT_FOUND without the library.
 *
 * Ranks with FASTEST have rank 0's choices, and a checkpoint names them. */
enum { AMP_PRODUCTS_SAME_BITS = 0, AMP_PRODUCTS_OWN = 1, AMP_PRODUCTS_FASTEST = 2 };

/* Measures who makes the products of all programs of the session at |n| samples, within products_seconds; what is
 * known stays.  Waits for all runs; the next ones have the new choices.  AMP_UNSUPPORTED: on another device, on one
 * that is too old, or after ranks agreed; AMP_WRONG_STATE: with OWN; AMP_NOT_FOUND, AMP_BAD_FILE: no library. */
AMP_API AMP_MUST_USE amp_status amp_session_tune(amp_session *session, int64_t n, amp_error *err);
/* Writes all choices of the session that were measured, for |choices| of other sessions.  The errors of
 * amp_session_tune, and of writing. */
AMP_API AMP_MUST_USE amp_status amp_session_save_choices(const amp_session *session, const char *path, amp_error *err);

/* Page-locked memory of the host, with any content, for inputs of this session and of others on "cuda".  It is given
 * back before the session is released; that waits for copies of this session that read it.  AMP_UNSUPPORTED on "cpu"
 * and "null", whose sessions read any memory.  By the session's thread; giving NULL back does nothing. */
AMP_API AMP_MUST_USE amp_status amp_session_alloc_pinned(amp_session *session, size_t bytes, void **out,
                                                         amp_error *err);
AMP_API void amp_session_free_pinned(amp_session *session, void *memory);

/* When code is compiled.  What a model has no machine code for is compiled when it is first needed, once for each
 * machine: amp_session_create compiles what steps take at the capacity, or inference in a session that does not train;
 * the first evaluation, other inference, and a number of samples whose launches take other tiles do it in their call,
 * which may answer what amp_session_create answers of code that cannot be compiled or loaded. */

/* An architecture for which all CUDA code was compiled with the model: what needs no compiler when a session is made.
 * Index out of range: AMP_INVALID_ARGUMENT; without images a session compiles its code with NVRTC, once for each
 * machine. */
typedef struct amp_cuda_image_info {
    int32_t arch;     /* 90 for sm_90 */
    char suffix[2];   /* "a" for sm_90a, else "" */
    int32_t is_cubin; /* 1: machine code for that architecture alone; 0: PTX, for it and later ones */
} amp_cuda_image_info;
AMP_API AMP_MUST_USE amp_status amp_model_cuda_image_at(const amp_model *model, int32_t index, amp_cuda_image_info *out,
                                                        amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
