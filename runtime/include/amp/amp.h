/* amp/amp.h: the runtime: load a compiled model, train it, evaluate it, infer with it.
 *
 *     amp_error err;
 *     amp_model *model;
 *     amp_params *params;
 *     amp_session *session;
 *     amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
 *     amp_session_options options = {.struct_size = sizeof options, .capacity = 128};
 *     if (amp_model_load("mlp.so", NULL, &model, &err) || amp_params_create(model, &seed, &params, &err) ||
 *         amp_session_create(model, params, &options, &session, &err))
 *         return fail(err.message);
 *     for (;;) amp_step(session, inputs, n, &report, &err);
 *
 * Objects.   A model is immutable.  Params hold the f32 master weights (and copies derived from them) and are shared by
 *            sessions.  A session holds memory for batches of up to |capacity| samples and, for training, moments,
 *            counters and the loss scaler.
 * Lifetime.  *_create and *_load give one reference; *_retain adds one; *_release drops one (NULL is a no-op).  A
 *            session keeps its params and model alive, params keep their model: objects can be released in any order.
 * Threads.   A model may be used by any number of threads.  Params and sessions by one thread at a time each; sessions
 *            that share params may run at the same time only while none of them trains and no thread sets or loads
 *            params.  Params live where they were used last: sessions on another device are refused (AMP_WRONG_STATE)
 *            while sessions where they live are alive, and else move them.
 *            Sessions with published = 1 read versions (amp_params_publish): those may run at any time, whatever other
 *            threads do with the params.
 *            A session works on its own threads (|threads|), which never call back, have 1 MiB of stack each, and block
 *            all signals but faults; or on those of the application (run_tasks).  Where it is faster, one thread does
 *            all the work; results are the same.  The calling thread needs 64 KiB of stack.  A dataset has a thread
 *            that calls the application.
 *            Calls compute in the default floating-point environment, whatever rounding mode or flush-to-zero the
 *            calling thread has, which it has again afterwards.
 * fork.      In a child process a session on the CPU goes on: its threads are started anew by the first call.  If the
 *            process was forked while another thread was in a call of the session: AMP_WRONG_STATE.  CUDA does not work
 *            in a child: sessions made before fork are refused (AMP_WRONG_STATE), and may be released.
 * Errors.    amp/base.h.  After a failed call every object is as it was, unless the call's comment says otherwise.
 *            After a fatal error of a CUDA device (an illegal address, say) every call that needs the device fails with
 * the first cause; what it had learned since the last save is lost, objects are released as always.
 * NULL.      A pointer that a call needs and that is NULL is refused (AMP_INVALID_ARGUMENT), or the call does nothing
 *            where it returns none.  What may be NULL is said where it is; |err| always may.
 * Tensors.   Row-major, dense, in the dtype and shape that amp_model_input_at reports, the first dimension being the n
 *            samples.  Arrays are aligned to their elements, as arrays of C are (f32 and i32: 4 bytes); others are
 *            refused.
 * Options.   Set struct_size to sizeof; zero everything else for defaults.  NULL options are all defaults.
 *
 * Loading a model is running code: load only files that you would execute.  The hash kept in a model detects damage; it
 * is not security.
 */
#ifndef AMP_AMP_H
#define AMP_AMP_H

#include "amp/base.h"
#include "amp/observe.h"
#include "amp/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_model amp_model;
typedef struct amp_params amp_params;
typedef struct amp_session amp_session;

/* The library's version, AMP_VERSION of its build.  Static storage. */
AMP_API const char *amp_version(void);

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct amp_model_options {
    size_t struct_size;
    const amp_allocator *allocator; /* copied; used for everything made from the model */
} amp_model_options;

/* Reads, checks (ELF bounds, hash, version) and loads a model.so.  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_UNSUPPORTED,
 * AMP_OUT_OF_MEMORY, AMP_IO.
 * What runs is a private copy of the bytes that were checked: the file may be replaced, overwritten or removed at any
 * time, and loading its path again gives what is there then, while models that were loaded before go on as they were.
 * The copy is in memory (memfd_create; /proc/self/maps shows "/memfd:FILE"); where the system offers none or /proc is
 * not mounted, in a temporary file, which is gone when the call returns (TMPDIR, else /tmp and others).
 * A process whose files may not be as large as the model (ulimit -f) can have no copy: it maps the model's own file,
 * which may be replaced or removed then, but not overwritten in place; models in memory are refused (AMP_IO). */
AMP_API AMP_MUST_USE amp_status amp_model_load(const char *path, const amp_model_options *options, amp_model **out,
                                               amp_error *err);
/* The same of the |size| bytes of a model.so at |bytes| (any alignment), which the caller may free afterwards.  |name|
 * names it in errors and to debuggers; NULL: "model in memory". */
AMP_API AMP_MUST_USE amp_status amp_model_load_memory(const void *bytes, size_t size, const char *name,
                                                      const amp_model_options *options, amp_model **out,
                                                      amp_error *err);
/* A model that is linked into the program (`ampc --emit c` or `--emit o`); |model| is the function of that name, which
 * AMP_STATIC_MODEL(NAME); declares at file scope.  Needs no file and no loader of the system.  The tables live as long
 * as the program.  AMP_UNSUPPORTED, AMP_BAD_FILE, AMP_OUT_OF_MEMORY. */
struct amp_model_desc;
typedef const struct amp_model_desc *(*amp_static_model)(void);
#define AMP_STATIC_MODEL(name) const struct amp_model_desc *name(void)
AMP_API AMP_MUST_USE amp_status amp_model_from_static(amp_static_model model, const amp_model_options *options,
                                                      amp_model **out, amp_error *err);
AMP_API void amp_model_retain(amp_model *model);
AMP_API void amp_model_release(amp_model *model);

typedef struct amp_model_info {
    const char *name, *policy, *precision, *optimizer, *scaler, *source_name, *compiler_version;
    int32_t can_train;   /* 1: has a train block */
    int32_t input_count; /* model inputs first, then train inputs */
    int32_t model_input_count;
    int32_t param_count;  /* tensors: params and buffers */
    int32_t result_count; /* results of infer */
    int32_t metric_count;
    int32_t decision_count;
    int64_t param_elements;   /* trained numbers */
    int64_t accumulate;       /* micro-batches of a step: calls of amp_step; 1 unless the model says otherwise */
    int32_t loss_count;       /* losses that are reported apart: `loss NAME = ...`; else one per train block */
    int32_t has_fp32;         /* 1: amp_session_options.precision "fp32" is there */
    int32_t has_cuda;         /* 1: it can run on the device "cuda" */
    int32_t cuda_kernels;     /* functions of its CUDA code */
    const char *cuda_missing; /* where has_cuda is 0: why */
    const char *sums;         /* how the CPU adds up products of f16, bf16 and tf32: "ieee", or as tensor cores of an
                                 architecture do, "sm_80", "sm_90" (ampc --sums) */
    int64_t least_batch;      /* samples of a batch of training from which on it has what the model takes variances of:
                                 2 of a batch norm of [N, C]; 1: any number.  Of fewer, statistics stay as they are */
} amp_model_info;

enum { AMP_MAX_RANK = 8 };
typedef struct amp_tensor_info {
    const char *name;
    amp_dtype dtype;
    int32_t rank;
    int64_t dims[AMP_MAX_RANK]; /* at the n that was asked for */
} amp_tensor_info;

/* All strings below live as long as the model.  Index out of range: AMP_INVALID_ARGUMENT. */
AMP_API void amp_model_get_info(const amp_model *model, amp_model_info *out);
AMP_API AMP_MUST_USE amp_status amp_model_input_at(const amp_model *model, int32_t index, int64_t n,
                                                   amp_tensor_info *out, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_model_result_at(const amp_model *model, int32_t index, int64_t n,
                                                    amp_tensor_info *out, amp_error *err);
/* The numbers that an input of classes, or of rows of a table, takes: 0 to |*count| - 1, and |*ignored| (which may be
 * NULL; INT64_MIN: none).  |*count| is 0 for an input that is no such index, or if the model does not say. */
AMP_API AMP_MUST_USE amp_status amp_model_index_range(const amp_model *model, int32_t index, int64_t *count,
                                                      int64_t *ignored, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_model_param_at(const amp_model *model, int32_t index, amp_tensor_info *out,
                                                   amp_error *err);
/* Whether this is the model that the program was written for: its inputs, then its train block's inputs, and its
 * results, as in the model's text:
 *     amp_model_expect(model, "x: f32[N, 24], targets: i32[N] -> logits: f32[N, 2]", &err)
 * Arrays carry no sizes, so a program with another model's arrays would read and write past them.  A
 * program that only infers may leave out the train inputs; names, and the arrow with what follows, may be left out.
 * Floats of results are f32.  AMP_INVALID_ARGUMENT: the first difference, with both sides. */
AMP_API AMP_MUST_USE amp_status amp_model_expect(const amp_model *model, const char *signature, amp_error *err);
/* How a parameter is trained, by what the model's text says; |index| as in amp_model_param_at. */
typedef struct amp_param_training {
    int32_t trained;       /* 1: a train block updates it; 0: none is for it, a group freezes it, or it is a buffer */
    int32_t block;         /* the train block that is for it, numbered from 0; -1: none */
    const char *only;      /* the parameters of that block: of `train m for "gen.*"`, "gen.*"; NULL: all */
    const char *optimizer; /* of that block: "adamw(lr = 0.001, ...)"; NULL: no block */
    /* The groups that decide, as amp_model_group_at numbers them; -1: none, so that the optimizer's rate and decay
     * hold. */
    int32_t lr_scale_group, weight_decay_group, frozen_group;
    int32_t reserved;
} amp_param_training;
AMP_API AMP_MUST_USE amp_status amp_model_param_training(const amp_model *model, int32_t index, amp_param_training *out,
                                                         amp_error *err);
/* A `group` line.  They are numbered from 0 over all train blocks, in the order of the text, as
 * amp_session_set_lr_scale does.  Index out of range (and any, of a model that does not say): AMP_INVALID_ARGUMENT. */
typedef struct amp_group_info {
    const char *pattern; /* "*.bias" */
    int32_t block;       /* its train block */
    int32_t sets_lr_scale, sets_weight_decay, frozen;
    double lr_scale, weight_decay; /* 1 and 0 where it does not set them */
    int32_t line;                  /* of the model's text; 0: not known */
    int32_t reserved;
} amp_group_info;
AMP_API AMP_MUST_USE amp_status amp_model_group_at(const amp_model *model, int32_t index, amp_group_info *out,
                                                   amp_error *err);
AMP_API const char *amp_model_metric_at(const amp_model *model, int32_t index); /* "acc"; NULL out of range */
AMP_API const char *amp_model_loss_at(const amp_model *model, int32_t index);   /* "NAME"; NULL out of range */
/* The instruction sets that the CPU's kernels were compiled for, from the smallest on: "portable", "v3", "v4"; NULL out
 * of range.  A processor that lacks the first cannot run them: amp_session_create says so (ampc --isa native). */
AMP_API const char *amp_model_isa_at(const amp_model *model, int32_t index);

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

/* ---- params ------------------------------------------------------------------------------------------------------ */

typedef struct amp_params_options {
    size_t struct_size;
    uint64_t seed; /* of the initialisers: the same seed gives the same weights on every machine */
    int32_t zeros; /* 1: no initialising, everything is 0: for params that are loaded, copied or set next */
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
/* safetensors: exactly the model's params and buffers by name and shape (f32, f16, bf16 and f64 are converted); all or
 * nothing.  amp_params_load_weights without options. */
AMP_API AMP_MUST_USE amp_status amp_params_load(amp_params *params, const char *path, amp_error *err);
/* The same file; one that is there already is replaced, whatever it holds, once the new one is whole. */
AMP_API AMP_MUST_USE amp_status amp_params_save(const amp_params *params, const char *path, amp_error *err);
/* The same of the |size| bytes of a file at |bytes|, which are only read, during the call.  |name| names them in
 * errors; NULL: "params in memory". */
AMP_API AMP_MUST_USE amp_status amp_params_load_memory(amp_params *params, const void *bytes, size_t size,
                                                       const char *name, amp_error *err);

/* ---- loading what fits: for weights of another model, or under other names ---- */

typedef enum amp_partial_outcome {
    AMP_PARTIAL_LOADED = 0,
    AMP_PARTIAL_MISSING = 1, /* the file has no such tensor: the parameter is as it was */
    AMP_PARTIAL_MISFIT = 2,  /* another shape or type: the parameter is as it was */
    AMP_PARTIAL_UNKNOWN = 3  /* a tensor of the file that no parameter takes */
} amp_partial_outcome;

typedef struct amp_partial_options {
    size_t struct_size;
    void *user; /* for the functions below, which are called during the call, in the order of names */
    /* The tensor that the parameter or buffer |name| takes; NULL: none.  NULL instead of a function: its own name.
     * Called once for each. */
    const char *(*name_in_file)(void *user, const char *name);
    /* Once for each parameter and buffer, and for each tensor that none takes.  |why|: of LOADED the tensor's name,
     * else the reason; it lives during the call. */
    void (*tensor)(void *user, const char *name, amp_partial_outcome outcome, const char *why);
} amp_partial_options;

typedef struct amp_partial_report {
    int32_t loaded, missing, misfits, unknown; /* tensors; see amp_partial_outcome */
} amp_partial_report;

/* Takes every tensor of a safetensors file that fits.  AMP_OK however few those are: |report| (or NULL) says it.
 * A file that cannot be read changes nothing. */
AMP_API AMP_MUST_USE amp_status amp_params_load_partial(amp_params *params, const char *path,
                                                        const amp_partial_options *options, amp_partial_report *report,
                                                        amp_error *err);

/* ---- published weights: exact, from files whose names or layout are others ---- */

typedef enum amp_weights_difference {
    AMP_WEIGHTS_MISSING = 0, /* a parameter or buffer that the file does not have */
    AMP_WEIGHTS_EXTRA = 1,   /* a tensor of the file that the model does not have */
    AMP_WEIGHTS_MISFIT = 2,  /* another shape, or a type that is not taken */
    AMP_WEIGHTS_TWICE = 3    /* two tensors of the file for one parameter, with different numbers */
} amp_weights_difference;

/* Lists of strings end with NULL; NULL instead of a list is an empty one.  A glob's * matches any characters, dots
 * included.  The options of amprun of the same names are these. */
typedef struct amp_weights_options {
    size_t struct_size;
    const char *const *ignore; /* globs: tensors of the file that are not wanted */
    /* "FROM=TO": tensors of the file whose name FROM matches are taken as TO, where each * is what the * of the same
     * number in FROM matched: "transformer.*=*".  Applied to what is not ignored, one after the other, each to what the
     * ones before made. */
    const char *const *rename;
    /* globs: parameters of two dimensions, by their names in the model, that the file has the other way round, as
     * GPT-2's Conv1D has the weights of linear layers. */
    const char *const *transpose;
    const char *const *fresh; /* globs: parameters and buffers that keep their values, whatever the file has */
    void *user;
    /* Called during the call for each difference, before it fails: |name| is the model's of MISSING and MISFIT, else
     * the file's; |why| is in words, and lives during the call. */
    void (*difference)(void *user, const char *name, amp_weights_difference kind, const char *why);
} amp_weights_options;

typedef struct amp_weights_report {
    int32_t loaded;     /* parameters and buffers that were taken from the file */
    int32_t fresh;      /* that kept their values */
    int32_t transposed; /* of those loaded */
    int32_t rounded;    /* of those loaded: F64 in the file, rounded to f32 */
    int32_t ignored;    /* tensors of the file */
    int32_t reserved;
} amp_weights_report;

/* Takes every parameter and buffer from a safetensors file, or from the shards of an index (a path that ends in .json:
 * model.safetensors.index.json, in Hugging Face's format; shards are in its folder, or below it).  Strict: each has to
 * be there by name and shape, and nothing besides.  F32, F16, BF16 and F64 are taken for f32, integers for themselves
 * (I64 for num_batches_tracked).  A weight that the file stores twice (a tied head) may be renamed to one parameter
 * twice.  |options| and |report| may be NULL.
 * AMP_MISMATCH: the message has all differences, counted, with names that differ in a number alone as one (h.*.bias),
 * and where it finds one the rename or transpose that mends them; so does a rule that matches nothing.
 * AMP_INVALID_ARGUMENT: a rule that is none.  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_IO: the file.
 * AMP_BAD_FILE also where a tensor is not as it was saved, by a sum that the file has (docs/checkpoint.md).
 * All or nothing; but of more than 32 MiB a tensor that is not as it was saved, a disk that fails, or a file that is
 * cut or written to while its data is read (AMP_IO), leaves the params partly of it.
 * Memory.  Files of up to 32 MiB are read first.  Of larger ones data goes piece by piece to the params, with next to
 * nothing held besides. */
AMP_API AMP_MUST_USE amp_status amp_params_load_weights(amp_params *params, const char *path,
                                                        const amp_weights_options *options, amp_weights_report *report,
                                                        amp_error *err);
/* Writes the params as one file with the names and the layout of the weights at |like| (a file or an index), which the
 * same |options| map to the model's: what PyTorch's load_state_dict takes with strict=True.  Values are F32 and
 * integers.  Tensors that are ignored are copied from |like|; parameters that are fresh are written as the params have
 * them, under the file's name, or their own where it has none.  AMP_MISMATCH as above; also where a tensor that is
 * ignored has the numbers of one that is taken (a tied weight would be saved as it was before training: rename it).
 * |path| may be |like|. */
AMP_API AMP_MUST_USE amp_status amp_params_save_weights(const amp_params *params, const char *path, const char *like,
                                                        const amp_weights_options *options, amp_error *err);

/* ---- copies ---- */

/* Every parameter and buffer of |to| becomes what it is in |from|, which may be of another model (a newer version of
 * it, say) that has them all, by name, shape and type; else AMP_MISMATCH. */
AMP_API AMP_MUST_USE amp_status amp_params_copy(amp_params *to, const amp_params *from, amp_error *err);
/* New params of the same model with the values of now: one reference, the caller's. */
AMP_API AMP_MUST_USE amp_status amp_params_snapshot(const amp_params *params, amp_params **out, amp_error *err);

/* How many numbers of the parameters and buffers are NaN or infinite, and the name of the first tensor with one (NULL
 * where there is none; |first| may be NULL; it lives as long as the model).
 * Where nothing is scaled (bf16, tf32, fp32), a batch with one infinite value makes all weights NaN, as it does in
 * PyTorch, and amp_step answers AMP_OK: report->loss is NaN from then on, and this says whether the weights still are
 * numbers, before a save replaces good ones.  It reads all of them. */
AMP_API AMP_MUST_USE amp_status amp_params_count_nonfinite(const amp_params *params, int64_t *count, const char **first,
                                                           amp_error *err);

/* Hand-over while serving: training writes the params, inference reads a version of them.
 *
 * Publishes the values that the params have now: they become the newest version, which sessions with published = 1 read
 * from their next call on, each call exactly one version.  A version holds what evaluation and inference read (weights
 * in the types that products read, no masters besides) and never changes.  Tensors that have the bytes of the version
 * before are shared with it, only the others are copied.
 * Threads.  To be called by the thread that uses the params, between its other calls; other threads may meanwhile make,
 * use and release sessions with published = 1.  A call of such a session costs one more atomic load, and where there
 * is a new version a lock that is held for a few instructions.  Copying holds no lock.
 * Memory.  A version is freed with the last session that reads it: when that takes a newer one or is released (so the
 * model's allocator must be usable by the threads of all of them).  At most one version per session is alive, and the
 * newest.  A session that is not called keeps the version that it read last.
 * |report| may be NULL.  AMP_UNSUPPORTED: the params live in the memory of a device "cuda".  AMP_OUT_OF_MEMORY: the
 * version before stays the newest. */
typedef struct amp_publish_report {
    uint64_t version;       /* 1 for the first */
    uint64_t copied_bytes;  /* of tensors that changed */
    uint64_t shared_bytes;  /* of those that did not */
    uint64_t bytes_alive;   /* that all versions take which are alive */
    int32_t versions_alive; /* this one included */
    int32_t reserved;
} amp_publish_report;
AMP_API AMP_MUST_USE amp_status amp_params_publish(amp_params *params, amp_publish_report *report, amp_error *err);
/* For programs that only infer: frees the f32 masters, so that weights are in memory once, as the version that was
 * published has them.  From then on only sessions with published = 1 use the params; every call that reads or writes
 * values answers AMP_WRONG_STATE, as this one does while a session without published is alive, and where nothing was
 * published.  A second call does nothing. */
AMP_API AMP_MUST_USE amp_status amp_params_drop_masters(amp_params *params, amp_error *err);

/* ---- session ----------------------------------------------------------------------------------------------------- */

/* A piece of a session's work: index i of those that run_tasks was given. */
typedef void (*amp_task)(void *ctx, int32_t i);

/* How much a message of amp_session_options.log matters. */
typedef enum amp_log_level {
    AMP_LOG_PROGRESS = 0, /* "compiled 3 of 20 CUDA kernels for sm_90": of something that takes a while */
    AMP_LOG_INFO = 1,     /* what was chosen, found or done: threads, instruction set, a skipped step, the cache */
    AMP_LOG_WARNING = 2,  /* slower than it could be, or likely not meant: the scale's floor, more threads than cores */
    AMP_LOG_NUMBERS = 3   /* an op makes infinities in f16, or loses everything to zero, though losses may be finite:
                             of a session that trains, by its path; steps and evaluations 1, 2, 4 .. 256 and each 500th
                             are looked at where somebody listens */
} amp_log_level;

typedef struct amp_comm amp_comm; /* amp/comm.h */

typedef struct amp_session_options {
    size_t struct_size;
    int64_t capacity;         /* samples per call at most; 0: 1 */
    const char *device;       /* "cpu" (default), "cuda", or "null" (plans memory, runs nothing) */
    int32_t threads;          /* 0: one per processor */
    int32_t inference;        /* 1: no training state and memory, though the model could train */
    uint64_t seed;            /* of dropout */
    const char *isa;          /* "portable", "v3", "v4"; NULL: the best of this machine */
    int32_t separate_buffers; /* 1: each planned buffer its own allocation, so that sanitizers see overruns, and on
                                 cuda reads after the end of a buffer's life */
    int32_t keep_values;      /* 1: gradients and intermediates stay readable after a step (amp_session_value) */
    const char *precision;    /* of amp_eval and amp_infer: NULL: as compiled; "fp32": the FP32 forms that
                                 ampc --eval-precision fp32 adds; without them AMP_UNSUPPORTED */
    int32_t cuda_device;      /* "cuda": which device, from 0, where cuda_stream is NULL */
    void *cuda_stream;        /* "cuda": a CUstream (or cudaStream_t) of the application, on which everything runs; it
                                 and its context must outlive the session and its params.  NULL: a stream of its own in
                                 the device's primary context.  Calls leave the caller's current context as it is */
    int32_t published;        /* 1: evaluates and infers with the newest version of amp_params_publish; no training.
                                 AMP_WRONG_STATE before the first; AMP_UNSUPPORTED on "cuda" */
    /* "cpu": the application's own pool in place of threads of the session (NULL: those).  Called many times within a
     * call of the session, from its thread: task(ctx, i) has to be called exactly once for each i below |count|, on
     * any threads, at once or one after the other.  run_tasks returns when all have returned; what a task wrote is
     * then visible to the caller, as with any join.  Tasks wait for nothing and need 64 KiB of stack.  |count| is at
     * most |threads| (0: one per processor); with |threads| = 1 it is not called.  The bits are the same for any number
     * of threads.  It must not call the session, throw or jump out. */
    void (*run_tasks)(void *user, amp_task task, void *ctx, int32_t count);
    void *run_user;
    int32_t grad_norm; /* 1: gradients are kept after a step, for amp_session_grad_norm, which says what that costs */
    /* What the library would like to say; NULL: it says nothing.  |text| is one line without a newline, UTF-8, which
     * lives during the call; its words may differ from version to version.  Called by the thread that called the
     * library, within amp_session_create and calls of the session, never by threads of the library and never after
     * amp_session_release has returned.  It may do anything but call this session or its params, release them, throw
     * or jump out; on the device "cuda" another CUDA context may be current. */
    void (*log)(void *user, amp_log_level level, const char *text);
    void *log_user;
    int32_t device_inputs; /* 1: arrays that calls of the session take are in the device's memory: below */
    int32_t pinned_inputs; /* 1: they are in page-locked memory of the host: below */
    amp_comm *comm;        /* the ranks to train with: below; NULL: alone */
    int32_t looks_at_all;  /* 1: each step and evaluation is looked at for AMP_LOG_NUMBERS */
} amp_session_options;

/* Training on several ranks (comm, of amp/comm.h, which outlives the session): a model that was compiled with
 * `ampc --distribute data`.  Each rank is a process with a session of its own and samples of its own; a step equals the
 * step of one rank with the micro-batches of all, and weights, moments, counters and the loss scale stay the same on
 * all.  amp_session_create, each amp_step and amp_checkpoint_load are called by all ranks, in the same order; the first
 * and the last give all ranks what rank 0 has.  Losses and metrics of a complete step cover all ranks;
 * amp_eval's cover the rank's own samples.  A step waits for the slowest rank; AMP_PEER_FAILED: a rank has died, hangs
 * or disagrees, and no call of the session trains any more.  AMP_MISMATCH at creation: a rank has another model,
 * policy, version or option.  AMP_INVALID_ARGUMENT: the model was compiled to train alone.  On "cuda" what ranks
 * exchange goes by the host's memory.  Sessions that do not train ignore it.
 *
 * Of a model of `ampc --distribute zero1` each rank has a share of the moments alone, and updates that share of the
 * weights: after each step all ranks have all weights, as ever.  Besides, all ranks call amp_checkpoint_save, and
 * amp_session_get and _set of moments, in the same order.  Once a call has failed with AMP_PEER_FAILED the weights may
 * be of no whole step, and moments cannot be saved: go on from the last checkpoint.  AMP_UNSUPPORTED at creation:
 * keep_values or grad_norm is set, which need whole gradients.  On the device "cpu" alone.  If the model reads copies
 * of weights, a rank also has only a share of their masters: between steps params are whole as ever, within one
 * (accumulate) reading or setting them is AMP_WRONG_STATE, as is creating another session on them, but for published
 * ones; where one is alive already, masters stay whole. */

/* Inputs in device memory ("cuda", device_inputs = 1): each array given to amp_step, amp_eval and amp_infer is an
 * address that cuMemAlloc, cudaMalloc or an allocator over them gave (also of managed memory), on the session's device.
 * Nothing but a few counters comes from the host.  Results are written to arrays of the host as ever.
 * Order.    The session's stream copies the arrays within the device, after all that is on it when the call is made:
 *           what makes them is to be on |cuda_stream|, ordered before by an event that it waits for, or done.  What the
 *           application puts on |cuda_stream| after the call may write them; other work, and a session with a stream of
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

AMP_API AMP_MUST_USE amp_status amp_session_create(amp_model *model, amp_params *params,
                                                   const amp_session_options *options, amp_session **out,
                                                   amp_error *err);
AMP_API void amp_session_retain(amp_session *session);
AMP_API void amp_session_release(amp_session *session);

/* Page-locked memory of the host, with any content, for inputs of this session and of others on "cuda".  It is given
 * back before the session is released; that waits for copies of this session that read it.  AMP_UNSUPPORTED on "cpu"
 * and "null", whose sessions read any memory.  By the session's thread; giving NULL back does nothing. */
AMP_API AMP_MUST_USE amp_status amp_session_alloc_pinned(amp_session *session, size_t bytes, void **out,
                                                         amp_error *err);
AMP_API void amp_session_free_pinned(amp_session *session, void *memory);

/* The version that the last amp_infer or amp_eval of a session with published = 1 read, or that it was created with; 0
 * for any other session.  By the session's thread. */
AMP_API uint64_t amp_session_version(const amp_session *session);

typedef struct amp_step_report {
    double loss;       /* before the update, unscaled; the micro-batch's alone if |complete| is 0; NaN once
                          weights or data are (amp_params_count_nonfinite) */
    float scale;       /* that this step used; 1 where the model trains unscaled */
    int32_t skipped;   /* train blocks that were not updated because a gradient of theirs was not finite: 0 or 1 where
                          the model has one block */
    int64_t step;      /* updates applied so far, this one included */
    int64_t iteration; /* steps attempted so far, this one included */
    int32_t at_floor;  /* 1 from the first skip at the scale's floor on */
    int32_t complete;  /* 1: this call ended a step; 0: it was one of its micro-batches before the last */
    double grad_norm;  /* of all gradients, unscaled, before clipping; NaN where the model does not compute it (a train
                          block without clip_norm; amp_session_grad_norm) and in a call that ends no step */
    int32_t states_kept; /* states of the model (running statistics, `state` of its text) whose new value was not finite
                            in a step that was not skipped, so that they kept theirs; amp_session_kept_state */
    int32_t too_few;     /* 1: that is because a batch had fewer samples than amp_model_info.least_batch */
} amp_step_report;

/* One training step on n <= capacity samples; |inputs| has all inputs in order.  The caller's arrays are only read,
 * during the call (amp_session_options.device_inputs, pinned_inputs: after it too).
 * On the device "cuda" a step is started and, with |report| NULL, not waited for; it waits at most for the inputs of
 * two calls before.  An error of the device is then told by a later call, and AMP_SCALE_AT_FLOOR as soon as it is
 * known; amp_session_next_report gives the report.
 * A model that accumulates (amp_model_info.accumulate = k > 1) takes one micro-batch a call: k calls make a step, and
 * the last of them updates (report->complete).  Its loss and gradients equal the ones of one batch of all their
 * samples, whatever each has of them and however many labels it ignores; a gradient that is not finite in
 * any of them skips the whole step, running statistics included.
 * AMP_SCALE_AT_FLOOR: this step or an earlier one was skipped at the scale's floor; every later step says so too, until
 * amp_session_set_scaler or amp_checkpoint_load.  The step's work is done and the report is filled all the same. */
AMP_API AMP_MUST_USE amp_status amp_step(amp_session *session, const void *const *inputs, int64_t n,
                                         amp_step_report *report, amp_error *err);

/* The states that kept their value in some step of the session that is known of, because the new one was not finite,
 * and not for too few samples; the log says so of each once.  |*iteration| (or NULL): the first such.  NULL past the
 * end. */
AMP_API const char *amp_session_kept_state(const amp_session *session, int32_t index, int64_t *iteration);

/* Reports of the calls of amp_step that had |report| NULL and did what they were asked to, one a call, in their order,
 * each once; so that an application shows one step while the device computes the next:
 *
 *     amp_step(session, inputs, n, NULL, &err);
 *     while (!amp_session_next_report(session, 0, &report, losses, metrics, &there, &err) && there) show(&report);
 *
 * |*there|: 1: the report was given, with the named losses (or NULL) and the metrics (or NULL) that amp_session_losses
 * and amp_session_metrics would have given after that call; all have the bits that waiting for each step gives.  0: no
 * call has a report left; or, unless |wait|, the device is not done with the oldest, and nothing was waited for.
 * |wait| waits for that one, not for what was started after it.
 * The last AMP_KEPT_REPORTS calls are kept, given ones not counted; of more the oldest are dropped, so who asks once
 * for each call before it makes the next misses none: with |wait| once AMP_KEPT_REPORTS are left.  Evaluating, saving,
 * loading and setting leave them as they are.  On "cpu" and "null" a report is there when amp_step returns.
 * Metrics of averages (`metric ppl = exp(loss)`) are computed when |metrics| asks, by a run of their own after what
 * was started before it: on "cuda" such a report is there a step later.
 * AMP_SCALE_AT_FLOOR: the report, which was given, says at_floor; amp_step says so for the call that it makes, as soon
 * as it is known, too.  An error of the device: no report was given; those that had arrived before it are. */
enum { AMP_KEPT_REPORTS = 8 };
AMP_API AMP_MUST_USE amp_status amp_session_next_report(amp_session *session, int32_t wait, amp_step_report *report,
                                                        double *losses, double *metrics, int32_t *there,
                                                        amp_error *err);

/* Loss and metrics of n samples in evaluation mode; |inputs| has all inputs.  |loss| (or NULL); |metrics| (or NULL):
 * one double each. */
AMP_API AMP_MUST_USE amp_status amp_eval(amp_session *session, const void *const *inputs, int64_t n, double *loss,
                                         double *metrics, amp_error *err);
/* Loss and metrics of samples that come in several batches, of any sizes, as if all were one batch.  No average of the
 * batches' figures equals them: a loss may count labels, a metric may be a sum, or a function of such
 * (docs/language.md).
 *
 *     amp_eval_begin(session, &err);
 *     for (each batch) amp_eval(session, inputs, n, NULL, NULL, &err);
 *     amp_eval_end(session, &loss, metrics, &err);       named losses: amp_session_losses
 *
 * amp_eval_begin forgets the batches so far; without it the first batch is the first since the session was made.
 * amp_eval_end changes nothing: more batches may follow.  AMP_WRONG_STATE: there was no batch.
 * An evaluation of several sessions, threads or ranks: amp_eval_sums writes amp_eval_sums_count doubles, which may be
 * added up element by element, and amp_eval_add adds them to what a session of the same model has. */
AMP_API AMP_MUST_USE amp_status amp_eval_begin(amp_session *session, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_eval_end(amp_session *session, double *loss, double *metrics, amp_error *err);
AMP_API int32_t amp_eval_sums_count(const amp_session *session);
AMP_API AMP_MUST_USE amp_status amp_eval_sums(const amp_session *session, double *sums, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_eval_add(amp_session *session, const double *sums, amp_error *err);
/* |inputs|: the model inputs; |outputs|: one caller's array per result, written in full. */
AMP_API AMP_MUST_USE amp_status amp_infer(amp_session *session, const void *const *inputs, int64_t n,
                                          void *const *outputs, amp_error *err);

/* Metrics of the last step or, where a step has several micro-batches and is not complete, of its last one: one double
 * per metric, in the order of amp_model_metric_at. */
AMP_API AMP_MUST_USE amp_status amp_session_metrics(const amp_session *session, double *metrics, amp_error *err);
/* Named losses of the last amp_step (as metrics), amp_eval or amp_eval_end, whichever came last, in the order of
 * amp_model_loss_at. */
AMP_API AMP_MUST_USE amp_status amp_session_losses(const amp_session *session, double *losses, amp_error *err);

/* Has |observer| (amp/observe.h; it is copied) called after each kernel of every program that the session runs, except
 * the programs that derive copies of weights and metrics of averages; NULL: none.  Kernels then run one by one, on
 * "cuda" each is waited for unless the observer says otherwise; the bits are the same.  Waits for what was counted
 * since the last call.  A session without an observer pays nothing. */
AMP_API AMP_MUST_USE amp_status amp_session_observe(amp_session *session, const amp_observer *observer, amp_error *err);
/* Adds the numbers of a parameter, as it is after all runs so far, to |*to|, which is whole after the next
 * amp_session_observe and must be there until then.  AMP_NOT_FOUND; AMP_UNSUPPORTED on "null". */
AMP_API AMP_MUST_USE amp_status amp_session_count_param(amp_session *session, const char *name, amp_number_bins *to,
                                                        amp_error *err);

/* With keep_values: what the last step left.  Names are IR value names ("fc1.h") and "grad.fc1.weight" (unscaled, f32).
 * Call with data NULL for the description; |data| gets f32 for every float dtype (its value is exact), else the value's
 * own integers (bool: one byte).  Gradients have their parameter's shape; other values have the shape of the matrix
 * that they are computed as: [], [C], [N] or [rows, C].  amp_session_value_name enumerates by name; NULL past
 * the end. */
AMP_API const char *amp_session_value_name(const amp_session *session, int32_t index);
AMP_API AMP_MUST_USE amp_status amp_session_value(const amp_session *session, const char *name, amp_tensor_info *info,
                                                  void *data, size_t bytes, amp_error *err);

/* The loss scaler and the counters. */
typedef struct amp_scaler_state {
    float scale;            /* 2^-126 to 2^126: elsewhere 1 / scale is infinite or loses bits */
    int32_t growth_tracker; /* 0 to 2^30, as floor_hits */
    int32_t floor_hits;
    int32_t reserved;
    int64_t step, iteration; /* 0 to 2^53 */
} amp_scaler_state;
AMP_API AMP_MUST_USE amp_status amp_session_get_scaler(const amp_session *session, amp_scaler_state *out,
                                                       amp_error *err);
/* Micro-batches that were run of a step that is not complete are dropped. */
AMP_API AMP_MUST_USE amp_status amp_session_set_scaler(amp_session *session, const amp_scaler_state *state,
                                                       amp_error *err);

/* ---- is the loss scale as it should be ---- */

/* What the reports of steps say together; docs/seeing-precision.md, "The loss scale". */
typedef enum amp_scale_health {
    AMP_SCALE_UNSCALED = 0, /* nothing to watch: bf16, tf32, fp32, or loss_scale = none */
    AMP_SCALE_SETTLING = 1, /* ordinary: it has not grown yet, nor seen as many steps as it takes to grow */
    AMP_SCALE_STEADY = 2,   /* ordinary: it grew, or there was no overflow since; or it is static */
    AMP_SCALE_CEILING = 3,  /* ordinary: overflows took back what it grew, and it will grow again */
    AMP_SCALE_FALLING = 4,  /* more overflows than take back two growths, and no growth between them */
    AMP_SCALE_STALLED = 5   /* at its floor, or too many steps in a row were skipped for it to be the cause */
} amp_scale_health;

/* A plain value, the application's: copy it, keep it in a checkpoint.  Only read it. */
typedef struct amp_scale_monitor {
    amp_scale_health health;
    int32_t dynamic;          /* 0: static, or unscaled */
    double growth, backoff;   /* factors, of the model's loss_scale */
    int64_t interval;         /* steps without an overflow after which it grows */
    int32_t falling_after;    /* overflows without a growth between; from growth and backoff */
    int32_t stalled_after;    /* steps skipped in a row */
    float scale;              /* of the last step */
    float lowest, highest;    /* of all steps */
    int32_t skipped_in_a_row; /* up to the last step */
    int32_t falls;            /* overflows since it last grew, or settled */
    int64_t steps, skipped;   /* that were reported; of those, skipped ones */
    int64_t growths;
    int64_t since_overflow;    /* steps after the last one that was skipped; -1: there was none */
    int64_t between_overflows; /* from the last but one to the last; -1: there were no two */
} amp_scale_monitor;

/* Zeros, and what the model's loss_scale says: at the start of a training, or where one goes on. */
AMP_API void amp_scale_monitor_start(amp_scale_monitor *monitor, const amp_model *model);
/* Takes in the report of an amp_step; micro-batches that end no step count for nothing.  True: |health| has changed.
 * It computes with the report alone and costs the device nothing. */
AMP_API int32_t amp_scale_monitor_step(amp_scale_monitor *monitor, const amp_step_report *report);
AMP_API const char *amp_scale_health_name(amp_scale_health health); /* "settling"; "" for UNSCALED */

/* The learning rate of a train block (numbered from 0, in the order of the text), for the next amp_step and all after
 * it; groups multiply it by their factors.  At least 0, finite as an f32; AMP_LR_OF_MODEL: back to what the text says.
 * Where the text has a schedule, a rate that was set replaces it, and the schedule goes on counting: after
 * AMP_LR_OF_MODEL the rate is what it would have been.  amp_session_get_lr then gives the rate of the last step (0
 * before the session's first); else it gives the next step's rate.
 * Checkpoints hold a rate that is not the text's, so that training that goes on is the same; where they hold none, the
 * rate becomes the text's.  A rate that is never set changes no bit. */
#define AMP_LR_OF_MODEL (-1.0)
AMP_API AMP_MUST_USE amp_status amp_session_get_lr(const amp_session *session, int32_t block, double *lr,
                                                   amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set_lr(amp_session *session, int32_t block, double lr, amp_error *err);
/* The factor of a group: of `group "*.bias": lr_scale = 0.1`, 0.1 until it is set.  Groups are numbered from 0 over all
 * train blocks, in the order of the text; those without lr_scale count, but have no factor (AMP_INVALID_ARGUMENT; so
 * has one whose parameters are all frozen or taken by later groups).  Values and checkpoints as above. */
AMP_API AMP_MUST_USE amp_status amp_session_get_lr_scale(const amp_session *session, int32_t group, double *scale,
                                                         amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set_lr_scale(amp_session *session, int32_t group, double scale,
                                                         amp_error *err);

/* The norm of all gradients of the last complete step, as torch.nn.utils.clip_grad_norm_ reports it: unscaled, before
 * clipping; infinite or NaN where they are.
 * With grad_norm = 1 or keep_values: of the gradients that the session keeps, in double.  Each call reads all of them,
 * by one thread, and on the device "cuda" copies them to the host; a step writes them where it would not (memory: an
 * f32 a trained number), and the memory of training is not shared with evaluation's.
 * Else of a model that computes it in each step (clip_norm; `clip_norm = inf` clips nothing), in f32 by the device, at
 * no cost for the call: a report's grad_norm.
 * Sessions and models that ask for neither pay nothing: AMP_WRONG_STATE, as before the first step. */
AMP_API AMP_MUST_USE amp_status amp_session_grad_norm(const amp_session *session, double *norm, amp_error *err);

/* Optimizer state by "fc1.weight/m", ...: as amp_params_get and _set. */
AMP_API AMP_MUST_USE amp_status amp_session_get(const amp_session *session, const char *name, float *data, size_t count,
                                                amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set(amp_session *session, const char *name, const float *data, size_t count,
                                                amp_error *err);

/* Whether each rank has a share of the moments alone (above); 0 also for one rank. */
AMP_API int32_t amp_session_has_shares(const amp_session *session);

/* Everything that training goes on from: params, buffers, moments, counters, scaler.  Bit-exact.  |extra| (may be NULL)
 * is a string that the application gets back: its position in the data, say.  Loading is all or nothing.  Of ranks
 * with shares of the moments all save: rank 0 gets the others' and writes the file, and the others write none; whether
 * it could, rank 0 alone knows.  Moments come and go one at a time, so that no rank needs memory for more than its
 * share and the largest one; where reading fails half-way (AMP_IO, AMP_PEER_FAILED, AMP_BAD_FILE of one that is not as
 * it was saved, by its sum), the ranks have to load again.
 * Between the micro-batches of a step saving is refused (AMP_WRONG_STATE); loading drops those that were run. */
AMP_API AMP_MUST_USE amp_status amp_checkpoint_save(const amp_session *session, const char *path, const char *extra,
                                                    amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_checkpoint_load(amp_session *session, const char *path, char *extra,
                                                    size_t extra_size, amp_error *err);

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
AMP_API void amp_session_memory(const amp_session *session, amp_memory_info *out);
/* The same of a session with these options, which is not made: on "cpu" and "null" nothing is allocated for its
 * moments, activations and results, so that more can be asked about than there is memory for.  On "cuda", and with
 * published = 1, a session is made and released.  |params| NULL: fresh ones, which are not made either.  The errors of
 * amp_session_create. */
AMP_API AMP_MUST_USE amp_status amp_session_plan(amp_model *model, amp_params *params,
                                                 const amp_session_options *options, amp_memory_info *out,
                                                 amp_error *err);

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Batches of the application's own data, filled ahead by a thread while the model computes:
 *
 *     static amp_status fill(void *user, int64_t index, void *const *arrays, int64_t capacity, int64_t *n,
 *                            amp_error *err) {
 *         *n = read_batch(user, index, arrays[0], arrays[1], capacity);
 *         return AMP_OK;
 *     }
 *     amp_dataset_options data = {.struct_size = sizeof data, .fill = fill, .user = file, .capacity = 128};
 *     if (amp_dataset_create(model, &data, &dataset, &err)) return fail(err.message);
 *     while (!(status = amp_dataset_next(dataset, &inputs, &n, &err)) && n)
 *         status = amp_step(session, inputs, n, &report, &err);
 *
 * Threads.   One at a time uses a dataset.  Its thread, which the first amp_dataset_next starts, calls fill and nothing
 *            else of the application's; it blocks all signals but faults, has 8 MiB of stack, and sleeps where there is
 *            nothing to fill.  With ahead = -1 there is none, and amp_dataset_next calls fill itself.
 * Memory.    (ahead + 1) * capacity samples, of the model's allocator, taken when the dataset is made.
 * fork.      In a child process the first amp_dataset_next starts a thread anew, and fill is called again for the
 *            batches that had been filled but not given: what it reads from must bear that.  AMP_WRONG_STATE where
 *            the process was forked while another thread was in a call of the dataset.
 */
typedef struct amp_dataset amp_dataset;

/* Fills batch |index|: the first |*n| samples of the arrays, one for each input of the model in order, which have room
 * for |capacity| samples in the dtype and shape of amp_model_input_at.  They are aligned to 64 bytes and hold what an
 * earlier batch left.  |*n| is |capacity| before; 0: the data end before this batch.
 * A failure is what amp_dataset_next answers: its status, and "batch INDEX: " with the text in |err| (never NULL).
 * Called for one batch at a time, in order, from |first| on; again from an earlier or later one after
 * amp_dataset_seek, and again for one that failed.  It must not call the dataset, throw or jump out. */
typedef amp_status (*amp_fill_batch)(void *user, int64_t index, void *const *arrays, int64_t capacity, int64_t *n,
                                     amp_error *err);

typedef struct amp_dataset_options {
    size_t struct_size;
    amp_fill_batch fill;
    void *user;
    int64_t capacity;  /* samples of a batch at most; 0: 1 */
    int64_t first;     /* the batch that amp_dataset_next gives first: where a checkpoint goes on, say */
    int32_t ahead;     /* batches that are filled before they are asked for, at most; 0: 2; -1: none, and no thread */
    int32_t inference; /* 1: the model's own inputs, without its train block's */
} amp_dataset_options;

AMP_API AMP_MUST_USE amp_status amp_dataset_create(amp_model *model, const amp_dataset_options *options,
                                                   amp_dataset **out, amp_error *err);
AMP_API void amp_dataset_retain(amp_dataset *dataset);
/* Waits for a call of fill that is under way; none follows. */
AMP_API void amp_dataset_release(amp_dataset *dataset);

/* The next batch: |*inputs| for amp_step, amp_eval or amp_infer, and its |*n| samples; NULL and 0 where the data end.
 * The arrays hold until the next call of the dataset.  After an error, and at the end, the next call asks fill for the
 * same batch again. */
AMP_API AMP_MUST_USE amp_status amp_dataset_next(amp_dataset *dataset, const void *const **inputs, int64_t *n,
                                                 amp_error *err);
/* Goes on with batch |index| (0 or more); waits for a call of fill that is under way. */
AMP_API AMP_MUST_USE amp_status amp_dataset_seek(amp_dataset *dataset, int64_t index, amp_error *err);
/* The batch that the next amp_dataset_next gives. */
AMP_API int64_t amp_dataset_position(const amp_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
