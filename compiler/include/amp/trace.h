/* amp/trace.h: where a number that is not finite came from: the op, its line, its dtype and why, what it read.
 *
 *     amp_compile_options from = {.struct_size = sizeof from, .name = "model.so"};
 *     amp_trace *trace;
 *     amp_trace_finding finding = {.struct_size = sizeof finding};
 *     amp_trace_create(&from, "cpu", &trace, &err);
 *     amp_session_observe(session, amp_trace_observer(trace), &err);
 *     amp_step(session, inputs, n, &report, &err);
 *     amp_trace_find(trace, &finding, &err);
 *     if (finding.fault) printf("%s:%d: %s\n", finding.file, finding.line, finding.path);
 *
 * A trace looks at what the kernels of a session leave in memory (amp/observe.h).  Where kernels are fused it can name
 * a kernel's ops only together; a model that is compiled without fusion (no_fuse) computes the same bits and has every
 * value in memory, so that the op is exact.  A model.so can be compiled again so (amp/compile.h).
 *
 * Threads: one at a time uses a trace.  It keeps no reference to the session: take the observer away from it
 * (amp_session_observe with NULL) before the trace is released.
 */
#ifndef AMP_TRACE_H
#define AMP_TRACE_H

#include "amp/compile.h"
#include "amp/observe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_trace amp_trace;

typedef enum amp_trace_fault {
    AMP_TRACE_NONE = 0,     /* the loss and all gradients are finite; of eval and infer: loss and results */
    AMP_TRACE_DATA = 1,     /* an input is not */
    AMP_TRACE_STATE = 2,    /* a parameter, a buffer or an optimizer's moment is not */
    AMP_TRACE_OVERFLOW = 3, /* an op read finite numbers, and its result is too large for its type */
    AMP_TRACE_UNDEFINED = 4 /* an op read finite numbers for which it has no finite result: log(0), 1/0, sqrt(-1) */
} amp_trace_fault;

/* "none", "data", "state", "overflow", "undefined"; NULL: no such fault.  Static storage. */
AMP_API const char *amp_trace_fault_name(amp_trace_fault fault);

/* What a value held. */
typedef struct amp_trace_range {
    const char *name; /* as in the model's IR; NULL: there is none */
    amp_dtype dtype;
    int32_t reserved;
    int64_t count, infinities, nans, zeros; /* elements */
    int64_t flushed;                        /* that are not zero and become zero in f16 */
    double least, largest;                  /* of those that are finite; NaN where none is */
    const char *decided; /* of what an op read: the op whose dtype was decided that made it; NULL: none did */
} amp_trace_range;

enum { AMP_TRACE_INPUTS = 8, AMP_TRACE_READERS = 6 };

typedef struct amp_trace_finding {
    size_t struct_size;
    amp_trace_fault fault;
    int32_t is_gradient;   /* 1: the op is of the backward pass or an update, and the loss does not depend on it */
    const char *program;   /* in which it was met: "train_step" */
    const char *path, *op; /* of the op: "h.0.attn.matmul", "matmul"; of an input or state: its name, and "" */
    const char *layer;     /* the layer that the op is a part of, "cross_entropy"; NULL */
    const char *decided;   /* path of the op whose dtype was decided: of a gradient its forward op's; NULL: none */
    /* The same of the ops that read the result, that read what these make, and so on; NULL: no more. */
    const char *read_by[AMP_TRACE_READERS];
    const char *reason;                /* "{lower, min-cast:7}"; NULL */
    const char *policy_text, *because; /* the policy's line; the model's own words; NULL */
    const char *file;                  /* of the model's text; NULL: not known */
    int32_t line, column;
    amp_trace_range result; /* of what is not finite */
    amp_trace_range exact;  /* OVERFLOW by rounding: the result before it; else name is NULL */
    int32_t input_count, reserved;
    amp_trace_range inputs[AMP_TRACE_INPUTS]; /* what the op read */
} amp_trace_finding;

/* Of the model that sessions are made of: |options| with |name|, a model.so, or the bytes of one in |text|.  |device|:
 * where the session runs, "cpu" or "cuda"; NULL: "cpu".  The strings of findings live as long as the trace.
 * AMP_BAD_FILE, AMP_NOT_FOUND, AMP_IO, AMP_OUT_OF_MEMORY, AMP_INVALID_ARGUMENT. */
AMP_API AMP_MUST_USE amp_status amp_trace_create(const amp_compile_options *options, const char *device,
                                                 amp_trace **out, amp_error *err);
AMP_API const amp_observer *amp_trace_observer(const amp_trace *trace); /* lives as long as the trace; NULL of NULL */
/* What the last run of a program left: after amp_step, amp_eval or amp_infer.  Of a step of several micro-batches,
 * after each of its calls.  AMP_WRONG_STATE: nothing ran. */
AMP_API AMP_MUST_USE amp_status amp_trace_find(const amp_trace *trace, amp_trace_finding *out, amp_error *err);

/* What an op of the forward graph read and made in that run, for all whose results are in memory. */
typedef struct amp_trace_op {
    size_t struct_size;
    const char *path, *op; /* as a decision of the model has them (amp_model_decision_at) */
    amp_trace_range result;
    int32_t input_count, reserved;
    amp_trace_range inputs[AMP_TRACE_INPUTS];
} amp_trace_op;
/* The op |index|, in the order of execution.  AMP_NOT_FOUND past the end; AMP_WRONG_STATE: nothing ran. */
AMP_API AMP_MUST_USE amp_status amp_trace_op_at(const amp_trace *trace, int32_t index, amp_trace_op *out,
                                                amp_error *err);
AMP_API void amp_trace_release(amp_trace *trace); /* NULL is a no-op */

#ifdef __cplusplus
}
#endif
#endif
