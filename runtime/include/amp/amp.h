/* amp/amp.h: load a compiled model, train it, evaluate it, infer with it.
 *
 *     #include <stdio.h>
 *     #include "amp/amp.h"
 *
 *     int main(void) {                                      // xor.amp has x: f32[N, 2], and t: i32[N] to train
 *         const float x[] = {0, 0, 0, 1, 1, 0, 1, 1};
 *         const int32_t t[] = {0, 1, 1, 0};
 *         const void *inputs[] = {x, t};
 *         amp_model *model = NULL;
 *         amp_params *params = NULL;
 *         amp_session *session = NULL;
 *         amp_session_options options = {.struct_size = sizeof options, .capacity.n = 4};
 *         amp_error err;
 *         int failed = amp_model_load("xor.so", NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
 *                      amp_session_create(model, params, &options, &session, &err);
 *         for (int i = 0; !failed && i < 1000; i++) failed = amp_step(session, inputs, options.capacity, NULL, &err);
 *         failed = failed || amp_params_save(params, "xor.safetensors", NULL, &err);
 *         puts(failed ? err.message : "trained");
 *         amp_session_release(session), amp_params_release(params), amp_model_release(model);
 *         return failed;
 *     }
 *
 * Beside it, by noun: weights.h (published weights, copies), train.h (rates, the loss scale, evaluation in batches),
 * serve.h (versions of weights), data.h (batches filled ahead), inspect.h (decisions, values, memory), cpu.h, cuda.h,
 * comm.h (ranks).
 *
 * Objects.   A model is immutable.  Params hold the f32 master weights and are shared by sessions, of several models
 *            if these have the same parameters.  A session holds memory for |capacity| samples and, for training,
 *            moments, counters and the loss scaler.
 * Lifetime.  *_create and *_load give one reference; *_retain adds one; *_release drops one (NULL is a no-op).  A
 *            session keeps its params and model alive, params keep their model: release objects in any order.
 * Names.     X_get_Y copies into |*out|; X_Y_at describes item |index|, from 0; X_Y_name is its name, or NULL past the
 *            end.  Strings of a model live as long as the model.
 * Threads.   A model may be used by any number of threads.  Params and sessions by one thread at a time each; sessions
 *            that share params may run at the same time only while none of them trains and no thread sets or loads
 *            params (but see serve.h).  Params live where they were used last: a session on another device is refused
 *            (AMP_WRONG_STATE) while sessions are alive where they are, and else moves them.
 *            A session works on its own |threads|, which never call back, have 1 MiB of stack each, and block all
 *            signals but faults; or on the application's (cpu.h).  The calling thread needs 64 KiB of stack.
 *            Calls compute in the default floating-point environment, whatever rounding mode or flush-to-zero the
 *            calling thread has, and give it back its own.
 * fork.      In a child process a session on the CPU goes on: its first call starts its threads anew.  AMP_WRONG_STATE
 *            if another thread was in a call of it during the fork, and for sessions on CUDA, which may be released.
 * Errors.    amp/base.h.  After a failed call every object is as it was, unless the call's comment says otherwise.
 *            After a fatal error of a CUDA device every call that needs the device fails with the first cause; what was
 *            learned since the last save is lost, objects are released as always.
 * NULL.      A call refuses NULL for a pointer that it needs (AMP_INVALID_ARGUMENT; without a status it does nothing).
 *            Comments say which may be NULL; |err| and |options| always may.
 * Tensors.   Row-major, dense, in the dtype and shape that amp_model_input_at reports; arrays are aligned as C's are.
 * Options.   Set struct_size to sizeof; zero everything else for defaults.
 *
 * Loading a model runs code: load only files that you would execute.  The hash in it detects damage, not malice.
 */
#ifndef AMP_AMP_H
#define AMP_AMP_H

#include "amp/base.h"
#include "amp/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_model amp_model;
typedef struct amp_params amp_params;
typedef struct amp_session amp_session;
struct amp_model_desc;
struct amp_weights_options;
struct amp_weights_report;

/* Sizes that are known at run time: a call's, and the largest ones of a session.  Of a model that declares `size T`, t
 * is the T of all arrays of a call: from 1 to the session's, a multiple of the model's unit (amp_model_info).  What the
 * shapes of the arrays are is the caller's word: a larger t than they have reads past their ends.  As a capacity, t = 0
 * is the model's largest.  Of other models t is 0. */
typedef struct amp_sizes {
    int64_t n; /* samples, at least 1 */
    int64_t t;
} amp_sizes;
AMP_API const char *amp_version(void); /* AMP_VERSION of the library that runs; static storage */

typedef struct amp_model_options {
    size_t struct_size;
    const amp_allocator *allocator; /* copied; of everything that is made from the model */
    const void *bytes;              /* a model.so in memory, any alignment, which the call copies; NULL: a file */
    size_t size;
    /* A model that is loaded: if the bytes are those that it was loaded from, |out| is that model once more, which then
     * serves with its own allocator; else nothing is shared.  NULL: none */
    amp_model *like;
} amp_model_options;

/* Checks (ELF bounds, hash, version) and loads a model.so: the file |path|, or |options->bytes|, which |path| then
 * names in errors and to debuggers (NULL: "model in memory").  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_UNSUPPORTED,
 * AMP_OUT_OF_MEMORY, AMP_IO.
 * What runs is a private copy of the bytes that were checked: the file may be replaced, overwritten or removed at any
 * time.  The copy is in memory (memfd_create), or if the system has none or /proc is not mounted, in a temporary file
 * that is gone when the call returns (TMPDIR, /tmp).  If `ulimit -f` allows no copy, the file itself is mapped, which
 * may be replaced or removed then, but not overwritten in place; models in memory are refused (AMP_IO). */
AMP_API AMP_MUST_USE amp_status amp_model_load(const char *path, const amp_model_options *options, amp_model **out,
                                               amp_error *err);
/* A model that is linked into the program (`ampc --emit c` or `--emit o`): |model| is the function of that name, which
 * AMP_STATIC_MODEL(NAME); declares at file scope.  Needs no file and no loader of the system.  The tables live as long
 * as the program.  AMP_UNSUPPORTED, AMP_BAD_FILE, AMP_OUT_OF_MEMORY. */
typedef const struct amp_model_desc *(*amp_static_model)(void);
#define AMP_STATIC_MODEL(name) const struct amp_model_desc *name(void)
AMP_API AMP_MUST_USE amp_status amp_model_from_static(amp_static_model model, const amp_model_options *options,
                                                      amp_model **out, amp_error *err);
AMP_API void amp_model_retain(amp_model *model);
AMP_API void amp_model_release(amp_model *model);

typedef struct amp_model_info {
    const char *name, *policy, *precision, *optimizer, *scaler, *source_name, *compiler_version;
    int32_t can_train;                              /* 1: has a train block */
    int32_t input_count, model_input_count;         /* all, the model's first, then the train block's; the model's */
    int32_t result_count, metric_count, loss_count; /* named losses, `loss NAME = ...`; else one per train block */
    int32_t param_count, decision_count;            /* params and buffers; ops whose dtype was decided */
    int64_t param_elements;                         /* trained numbers */
    int64_t accumulate;       /* micro-batches of a step: calls of amp_step; 1 unless the model says otherwise */
    int64_t least_batch;      /* samples that running statistics need in a batch; fewer leave them as they are */
    int32_t has_fp32;         /* 1: has the FP32 forms that amp_session_options.precision chooses */
    int32_t has_cuda;         /* 1: it can run on the device "cuda" */
    int32_t cuda_kernels;     /* functions of its CUDA code */
    const char *cuda_missing; /* why has_cuda is 0 */
    const char *sums;         /* how the CPU adds up products of 16 bits: "ieee", or as "sm_80" or "sm_90" does */
    int64_t length_most;      /* the largest T, of a model that declares one; else 0 */
    int64_t length_unit;      /* every T is a multiple of it */
} amp_model_info;

enum { AMP_MAX_RANK = 8 };
typedef struct amp_tensor_info {
    const char *name;
    amp_dtype dtype;
    int32_t rank;
    int64_t dims[AMP_MAX_RANK]; /* at the sizes that were asked for */
} amp_tensor_info;
AMP_API void amp_model_get_info(const amp_model *model, amp_model_info *out);
/* Index out of range: AMP_INVALID_ARGUMENT. */
AMP_API AMP_MUST_USE amp_status amp_model_input_at(const amp_model *model, int32_t index, amp_sizes sizes,
                                                   amp_tensor_info *out, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_model_result_at(const amp_model *model, int32_t index, amp_sizes sizes,
                                                    amp_tensor_info *out, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_model_param_at(const amp_model *model, int32_t index, amp_tensor_info *out,
                                                   amp_error *err);
AMP_API const char *amp_model_metric_name(const amp_model *model, int32_t index); /* "acc" */
/* Checks that this is the model that the program was written for (arrays carry no sizes): its inputs, its train block's
 * inputs, which a program that only infers may leave out, and its results, whose floats are f32:
 *     amp_model_expect(model, "x: f32[N, 24], targets: i32[N] -> logits: f32[N, 2]", &err)
 * Names, and the arrow with what follows, are optional.  AMP_INVALID_ARGUMENT: the first difference. */
AMP_API AMP_MUST_USE amp_status amp_model_expect(const amp_model *model, const char *signature, amp_error *err);

typedef struct amp_params_options {
    size_t struct_size;
    uint64_t seed; /* of the initialisers: the same seed gives the same weights on every machine */
    int32_t zeros; /* 1: everything is 0 instead: for params that are loaded, copied or set next */
} amp_params_options;

AMP_API AMP_MUST_USE amp_status amp_params_create(amp_model *model, const amp_params_options *options, amp_params **out,
                                                  amp_error *err);
AMP_API void amp_params_retain(amp_params *params);
AMP_API void amp_params_release(amp_params *params);

/* f32, row-major; |count| must be the tensor's number of elements.  Names are published names: "fc1.weight". */
AMP_API AMP_MUST_USE amp_status amp_params_get(const amp_params *params, const char *name, float *data, size_t count,
                                               amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_params_set(amp_params *params, const char *name, const float *data, size_t count,
                                               amp_error *err);
/* Takes every parameter and buffer from a safetensors file or an index of shards (a path that ends in .json): exactly
 * the model's tensors by name and shape.  |options| (amp/weights.h) rename, leave out and transpose, take what fits, or
 * read memory; |report| may be NULL.  AMP_MISMATCH: the message has all differences. */
AMP_API AMP_MUST_USE amp_status amp_params_load(amp_params *params, const char *path,
                                                const struct amp_weights_options *options,
                                                struct amp_weights_report *report, amp_error *err);
/* Writes such a file; one that is there already is replaced, whatever it holds, once the new one is whole. */
AMP_API AMP_MUST_USE amp_status amp_params_save(const amp_params *params, const char *path,
                                                const struct amp_weights_options *options, amp_error *err);

typedef enum amp_log_level {
    AMP_LOG_PROGRESS = 0, /* "compiled 3 of 20 CUDA kernels for sm_90": of something that takes a while */
    AMP_LOG_INFO = 1,     /* what was chosen, found or done: threads, instruction set, a skipped step, the cache */
    AMP_LOG_WARNING = 2,  /* slower than it could be, or likely not meant: the scale's floor, more threads than cores */
    AMP_LOG_NUMBERS = 3   /* an op's numbers overflow or vanish in f16: of runs 1, 2, 4 .. 256 and each 500th */
} amp_log_level;

typedef struct amp_session_options {
    size_t struct_size;
    amp_sizes capacity;    /* of a call at most; 0: 1 */
    const char *device;    /* "cpu" (NULL), "cuda", or "null" (plans memory, runs nothing) */
    const char *program;   /* NULL: all that the model has; "infer": evaluates and infers, without training's memory */
    const char *precision; /* of amp_eval and amp_infer: NULL: as compiled; "fp32": the forms of ampc --eval-precision
                              fp32; AMP_UNSUPPORTED if the model has none */
    int32_t threads;       /* 0: one per processor */
    int32_t published;     /* 1: reads published versions of the params, and trains nothing (amp/serve.h) */
    uint64_t seed;         /* of dropout */
    /* Messages, or NULL.  |text| is a line of UTF-8 without a newline, which lives during the call; its words may
     * change.  Called by the thread that called the library, within calls of the session.  It may do anything but call
     * this session or its params, release them, throw or jump out; on "cuda" another context may be current. */
    void (*log)(void *user, amp_log_level level, const char *text);
    void *log_user;
    const struct amp_cpu_options *cpu;         /* amp/cpu.h */
    const struct amp_cuda_options *cuda;       /* amp/cuda.h */
    const struct amp_inspect_options *inspect; /* amp/inspect.h */
    struct amp_comm *comm;                     /* amp/comm.h: the ranks to train with; NULL: alone */
    /* n * t of a call at most, beside n and t at most: short texts make large batches, and memory is planned for this
     * product.  0: capacity.n * capacity.t */
    int64_t tokens;
} amp_session_options;

/* |params| may be of another model with the same parameters and buffers, by name, shape and type: the same text with
 * another `const` or policy, or without its train block.  Sessions of all of them read and train the same masters; low
 * copies are there once for each model that derives others.  AMP_MISMATCH says what differs; AMP_UNSUPPORTED: the model
 * stores a parameter in another layout, as those do that update a table by rows (lazy). */
AMP_API AMP_MUST_USE amp_status amp_session_create(amp_model *model, amp_params *params,
                                                   const amp_session_options *options, amp_session **out,
                                                   amp_error *err);
AMP_API void amp_session_retain(amp_session *session);
AMP_API void amp_session_release(amp_session *session);

typedef struct amp_step_report {
    double loss;         /* before the update, unscaled; if |complete| is 0 the micro-batch's alone */
    float scale;         /* that this step used; 1: unscaled */
    int32_t skipped;     /* train blocks that were not updated because a gradient of theirs was not finite */
    int64_t step;        /* updates applied so far, this one included */
    int64_t iteration;   /* steps attempted so far, this one included */
    int32_t at_floor;    /* 1 from the first skip at the scale's floor on */
    int32_t complete;    /* 1: this call ended a step; 0: it was one of its micro-batches before the last */
    double grad_norm;    /* of all gradients, unscaled, before clipping; NaN without clip_norm in a train block, and in
                            a call that ends no step (amp_session_get_grad_norm) */
    int32_t states_kept; /* states that kept their value in a step that was not skipped: the new one was not finite
                            (amp_session_kept_state_name), */
    int32_t too_few;     /* or, if 1, a batch had fewer samples than least_batch */
} amp_step_report;

/* One training step on sizes.n <= capacity samples; |inputs| has all inputs in order, which the call only reads (with
 * options of amp/cuda.h: later work too).
 * On "cuda" a step is started and, with |report| NULL, not waited for; it waits at most for the inputs of two calls
 * before.  A later call reports an error of the device, and AMP_SCALE_AT_FLOOR as soon as it is known;
 * amp_session_next_report (amp/train.h) gives the report.
 * A model that accumulates (accumulate = k > 1) takes one micro-batch a call: k calls make a step, and the last of them
 * updates (report->complete).  Loss and gradients equal those of one batch of all samples; a gradient in any of them
 * that is not finite skips the whole step, running statistics included.
 * AMP_SCALE_AT_FLOOR: this step or an earlier one was skipped at the scale's floor; every later step says so, until
 * amp_session_set_scaler or amp_checkpoint_load.  The step is done and the report filled all the same.
 * A step that fails when its update has begun on a device leaves params of no whole step: what reads or saves them
 * returns AMP_WRONG_STATE, until another step is complete or amp_checkpoint_load. */
AMP_API AMP_MUST_USE amp_status amp_step(amp_session *session, const void *const *inputs, amp_sizes sizes,
                                         amp_step_report *report, amp_error *err);
/* Loss and metrics in evaluation mode; |inputs| has all inputs.  |loss| and |metrics| (one double each) may be NULL.
 * Several batches as if they were one: amp_eval_begin (amp/train.h). */
AMP_API AMP_MUST_USE amp_status amp_eval(amp_session *session, const void *const *inputs, amp_sizes sizes, double *loss,
                                         double *metrics, amp_error *err);
/* |inputs|: the model inputs; |outputs|: one array per result, written in full, or NULL: that result is not wanted, and
 * what only it needs is not computed; the bits of the others are the same. */
AMP_API AMP_MUST_USE amp_status amp_infer(amp_session *session, const void *const *inputs, amp_sizes sizes,
                                          void *const *outputs, amp_error *err);

/* Everything that training goes on from, bit for bit, and |extra|, a string of the application (or NULL): its position
 * in the data, say.  Loading is all or nothing.  Between the micro-batches of a step saving is refused
 * (AMP_WRONG_STATE), and loading drops those that were run. */
AMP_API AMP_MUST_USE amp_status amp_checkpoint_save(const amp_session *session, const char *path, const char *extra,
                                                    amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_checkpoint_load(amp_session *session, const char *path, char *extra,
                                                    size_t extra_size, amp_error *err);
/* The same without a file: |to| goes on where |from| is, bit for bit, with weights, moments, counters and loss scale.
 * Their models may be two with the same parameters and the same optimizer, such as one text compiled for two lengths;
 * AMP_MISMATCH says what differs.  Weights are copied unless both have the same params.  Each session keeps memory of
 * its own for moments.  AMP_WRONG_STATE: |from| is between the micro-batches of a step; of |to| those that were run are
 * dropped.  After an error of a device |to| may have some of them.  Of ranks with shares all call it. */
AMP_API AMP_MUST_USE amp_status amp_checkpoint_copy(amp_session *to, const amp_session *from, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
