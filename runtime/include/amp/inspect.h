/* amp/inspect.h: what is inside: why ops have their dtypes, values of a step, kernels as they run, memory.
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_INSPECT_H
#define AMP_INSPECT_H

#include "amp/amp.h"
#include "amp/observe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_inspect_options { /* of amp_session_options.inspect */
    size_t struct_size;
    int32_t keep_values;  /* 1: gradients and intermediates stay readable after a step (amp_session_get_value) */
    int32_t grad_norm;    /* 1: gradients are kept after a step, for amp_session_get_grad_norm (amp/train.h), which
                                 says what it costs */
    int32_t looks_at_all; /* 1: each step and evaluation is looked at for AMP_LOG_NUMBERS */
    int32_t
        separate_buffers; /* 1: each planned buffer is an allocation of its own, so that sanitizers see overruns, and
                                 on "cuda" reads after the end of a buffer's life */
} amp_inspect_options;

/* Why an op of the forward graph has its dtype. */
typedef struct amp_decision {
    const char *path, *op;   /* "fc1.linear", "linear" */
    amp_dtype dtype;         /* of the result */
    const char *rule;        /* "lower", "follow", ... */
    const char *reason;      /* "{follow, torch-fp16:9, input fc1.linear}" */
    const char *policy_text; /* the policy's line */
    const char *because;     /* the model's own words; NULL */
    const char *file;
    int32_t line, column;
} amp_decision;
AMP_API AMP_MUST_USE amp_status amp_model_decision_at(const amp_model *model, int32_t index, amp_decision *out,
                                                      amp_error *err);

/* The numbers that an input of classes, or of rows of a table, takes: 0 to |*count| - 1, and |*ignored| (which may be
 * NULL; INT64_MIN: none).  |*count| is 0 for an input that is no such index, or if the model does not say. */
AMP_API AMP_MUST_USE amp_status amp_model_get_index_range(const amp_model *model, int32_t index, int64_t *count,
                                                          int64_t *ignored, amp_error *err);
/* With keep_values: what the last step left.  Names are IR value names ("fc1.h") and "grad.fc1.weight" (unscaled, f32).
 * Call with data NULL for the description; |data| gets f32 for every float dtype (its value is exact), else the value's
 * own integers (bool: one byte).  Gradients have their parameter's shape; other values have the shape of the matrix
 * that they are computed as: [], [C], [N] or [rows, C].  amp_session_value_name enumerates by name; NULL past
 * the end. */
AMP_API const char *amp_session_value_name(const amp_session *session, int32_t index);
AMP_API AMP_MUST_USE amp_status amp_session_get_value(const amp_session *session, const char *name,
                                                      amp_tensor_info *info, void *data, size_t bytes, amp_error *err);

/* Has |observer| (amp/observe.h; it is copied) called after each kernel of every program that the session runs, except
 * the programs that derive copies of weights and metrics of averages; NULL: none.  Kernels then run one by one, on
 * "cuda" each is waited for unless the observer says otherwise; the bits are the same.  Waits for what was counted
 * since the last call.  A session without an observer pays nothing. */
AMP_API AMP_MUST_USE amp_status amp_session_observe(amp_session *session, const amp_observer *observer, amp_error *err);
/* Adds the numbers of a parameter, as it is after all runs so far, to |*to|, which is whole after the next
 * amp_session_observe and must be there until then.  AMP_NOT_FOUND; AMP_UNSUPPORTED on "null". */
AMP_API AMP_MUST_USE amp_status amp_session_count_param(amp_session *session, const char *name, amp_number_bins *to,
                                                        amp_error *err);

/* Bytes that the session and its params hold, by kind: exactly what was allocated for them.  On a device with memory of
 * its own the kinds are what is there; what the host keeps besides (its copy of the params, pinned memory) is in
 * |scratch|; so are versions that were published.  A session with published = 1: the version that it reads. */
typedef struct amp_memory_info {
    uint64_t params;      /* masters and buffers */
    uint64_t derived;     /* low-precision and packed copies of weights */
    uint64_t moments;     /* optimizer, counters, scaler */
    uint64_t activations; /* the planned arena: every temporary of a step */
    uint64_t outputs;     /* results */
    uint64_t scratch;     /* of products and threads */
    uint64_t total;
    uint64_t device; /* of the total, what is in memory of the device's own; 0 on "cpu" and "null" */
} amp_memory_info;
AMP_API void amp_session_get_memory(const amp_session *session, amp_memory_info *out);
/* The same of a session with these options, which is not made: on "cpu" and "null" nothing is allocated for its
 * moments, activations and results, so that more can be asked about than there is memory for.  On "cuda", and with
 * published = 1, a session is made and released.  |params| NULL: fresh ones, which are not made either.  The errors of
 * amp_session_create. */
AMP_API AMP_MUST_USE amp_status amp_session_plan(amp_model *model, amp_params *params,
                                                 const amp_session_options *options, amp_memory_info *out,
                                                 amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
