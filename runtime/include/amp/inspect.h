/* amp/inspect.h: what is inside: why ops have their dtypes, values of a step, kernels as they run, memory; the tables
 * of a model, the messages of its ranks, and what this machine has to run it.
 *
 *     amp_tables tables;
 *     if (amp_model_get_tables(model, "cpu", &tables, &err)) return fail(err.message);
 *     for (int32_t i = 0; i < tables.infer->kernel_count; i++) puts(tables.infer->kernels[i].name);
 *
 * Tables.    Defined by amp/model_abi.h, for this version alone: a program that reads them is compiled for the libamp
 *            that it is linked with.  They live as long as the model.
 * Units.     Bytes; floating-point operations and bytes a second; samples of a call, |n|.
 * Threads.   Calls without a session: any number at a time, also with one model.
 * Objects, errors and options as in amp/amp.h; after an error |*out| is zeros, unless the comment says otherwise.
 */
#ifndef AMP_INSPECT_H
#define AMP_INSPECT_H

#include "amp/amp.h"
#include "amp/model_abi.h"
#include "amp/observe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_inspect_options { /* of amp_session_options.inspect */
    size_t struct_size;
    int32_t keep_values;      /* 1: gradients and intermediates stay readable after a step (amp_session_get_value) */
    int32_t grad_norm;        /* 1: gradients are kept after a step, for amp_session_get_grad_norm (amp/train.h), which
                                 says what it costs */
    int32_t looks_at_all;     /* 1: each step and evaluation is looked at for AMP_LOG_NUMBERS */
    int32_t separate_buffers; /* 1: each planned buffer is an allocation of its own: sanitizers see overruns, and on
                                 "cuda" reads after the end of a buffer's life */
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
 * own integers (bool: one byte).  Gradients have their parameter's shape, but of a lazy table a row for each place that
 * reads it; other values have the shape of the matrix that they are computed as: [], [C], [N] or [rows, C].
 * amp_session_value_name enumerates by name; NULL past the end. */
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
    uint64_t moments;     /* optimizer, averages, counters, scaler */
    uint64_t activations; /* the planned arena: every temporary of a step */
    uint64_t outputs;     /* results */
    uint64_t scratch;     /* of products and threads */
    uint64_t total;
    uint64_t device; /* of the total, what is in memory of the device's own; 0 on "cpu" and "null" */
    uint64_t model;  /* code and tables of the model, which all its sessions share: not of the total; 0: linked in */
} amp_memory_info;
AMP_API void amp_session_get_memory(const amp_session *session, amp_memory_info *out);
/* The same of a session with these options, which is not made: on "cpu" and "null" nothing is allocated for its
 * moments, activations and results, so that more can be asked about than there is memory for.  On "cuda", and with
 * published = 1, a session is made and released.  |params| NULL: fresh ones, which are not made either.  The errors of
 * amp_session_create. */
AMP_API AMP_MUST_USE amp_status amp_session_plan(amp_model *model, amp_params *params,
                                                 const amp_session_options *options, amp_memory_info *out,
                                                 amp_error *err);

/* Who makes the products of a launch on "cuda" (amp/cuda.h). */
typedef struct amp_product_choice {
    const char *program, *kernel, *title; /* "train_step", "k07", "fc2: linear + bias" */
    int64_t n;
    int32_t products;        /* of the launch, */
    int32_t algorithm;       /* and cuBLASLt's number of its algorithm for the first; -1: they are ampc's */
    int64_t rows, cols, k;   /* of the first */
    double own, library;     /* microseconds of each, as they were measured; 0: not known */
    int32_t measured;        /* 1: at this n; 0: not yet, and it is ampc's, or as at another n */
    int32_t library_version; /* 13010 for 13.1 */
} amp_product_choice;
/* Choice |index|, from 0 on in the order in which launches were looked at; it grows when programs run for the first
 * time.  Strings live as long as the model.  AMP_NOT_FOUND: there are no more, as on other devices. */
AMP_API AMP_MUST_USE amp_status amp_session_choice_at(const amp_session *session, int32_t index,
                                                      amp_product_choice *out, amp_error *err);

/* ---- the tables of a model --------------------------------------------------------------------------------------- */

typedef struct amp_program {
    const char *name;
    uint32_t kind; /* AMP_PROGRAM_* */
    int32_t buffer_count, kernel_count, result_count;
    const amp_model_buffer *buffers;
    const amp_model_kernel *kernels;           /* NULL for "cuda" */
    const amp_model_cuda_kernel *cuda_kernels; /* NULL for all others */
    const amp_model_result *results;
    int32_t input_end; /* no buffer from here on is an input */
} amp_program;

typedef struct amp_tables {
    const amp_program *programs;
    const amp_model_state *states;
    const amp_model_cuda_function *functions; /* for "cuda" */
    int32_t program_count, state_count, function_count;
    /* Of the programs; NULL: it has none.  A step whose micro-batches are a program, or that ranks share, is
     * |train_step| for each micro-batch, then |apply_step|. */
    const amp_program *train_step, *apply_step, *infer;
    int64_t batch_multiple, batch_most; /* |n| of a call is a multiple of the first, and at most the second */
    int64_t length_unit, length_most;   /* the same of |t|; 0: the model has no T */
} amp_tables;

/* The model as a device runs it, "cpu" (or NULL) or "cuda", after the checks of loading.  AMP_UNSUPPORTED: it has no
 * code for that device, and why. */
AMP_API AMP_MUST_USE amp_status amp_model_get_tables(const amp_model *model, const char *device, amp_tables *out,
                                                     amp_error *err);

/* What is launched at |sizes| on a device with |multiprocessors| whose blocks may have |shared_bytes| of shared
 * memory: of the choices that it can launch the one whose products take the least time by the model of
 * docs/design/cuda.md, of equals the first with the most blocks.  Its number among the kernel's choices, and the blocks
 * along each axis; a launch of several parts has INT64_MAX along the first if CUDA allows no such number.  NULL: zeros.
 */
typedef struct amp_cuda_used {
    const amp_model_cuda_choice *choice;
    uint32_t index;
    int64_t grid[3];
} amp_cuda_used;
AMP_API amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *kernel, amp_sizes sizes,
                                             int32_t multiprocessors, int32_t shared_bytes);

/* Of that model: the share of the rate of |instruction| (AMP_INSTRUCTION_*, no PLAIN) that a product in such tiles
 * reaches for |n| samples, less what they have beyond the edges; and the share of all multiprocessors' time that
 * |blocks| equal blocks fill, whose last wave is seldom full.  NULL: 0.  No blocks or no multiprocessors: 1. */
AMP_API double amp_cuda_tile_share(const amp_model_cuda_grid *tiles, amp_sizes sizes, uint32_t instruction);
AMP_API double amp_cuda_filled(int64_t blocks, int32_t multiprocessors);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The memory of a program's buffers for |n| samples.  |*temporaries|: the size of the block that holds all temporaries,
 * as a session plans it; NULL: it is not planned, which takes much longer than the sizes.  bytes[buffer_count]: the
 * size of each buffer, rounded up as a session does; may be NULL.  AMP_INVALID_ARGUMENT: more than memory can address,
 * or no |n| of a call; AMP_OUT_OF_MEMORY. */
AMP_API AMP_MUST_USE amp_status amp_program_plan(const amp_program *program, amp_sizes sizes, uint64_t *temporaries,
                                                 uint64_t *bytes, amp_error *err);

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef enum amp_message_kind {
    AMP_MESSAGE_GRADIENTS = 0,
    AMP_MESSAGE_STATISTICS = 1, /* of batches */
    AMP_MESSAGE_BUFFERS = 2,
    AMP_MESSAGE_MEASURES = 3,  /* losses and metrics */
    AMP_MESSAGE_AGREEMENT = 4, /* what ranks have in common, compared */
    AMP_MESSAGE_WEIGHTS = 5,   /* after apply_step; the others are before it */
    AMP_MESSAGE_KINDS = 6
} amp_message_kind;

typedef enum amp_message_op {
    AMP_MESSAGE_ALL_REDUCE = 0, /* every rank gets the sum */
    AMP_MESSAGE_REDUCE_SCATTER = 1,
    AMP_MESSAGE_ALL_GATHER = 2
} amp_message_op;

typedef struct amp_rank_message {
    amp_message_kind kind;
    amp_message_op op;
    amp_dtype dtype;
    const char *what;    /* "2 of 6 gradients, 20.5 KB" */
    uint64_t bytes;      /* of the message */
    uint64_t memory;     /* that a session has for it besides its states, in the host's memory; 0: it is alone */
    int32_t complete;    /* once this kernel of |train_step| has run; -1: from the start.  WEIGHTS: the update's end */
    int32_t state_count; /* that it holds, */
    const int32_t *states; /* in its order, numbered as in the tables */
} amp_rank_message;

/* What a rank of |ranks| sends in a step, message |index| from 0, in the order of sending.  AMP_INVALID_ARGUMENT: there
 * is no such message, as of a model that trains alone. */
AMP_API AMP_MUST_USE amp_status amp_model_message_at(const amp_model *model, const char *device, int32_t ranks,
                                                     int32_t index, amp_rank_message *out, amp_error *err);

typedef struct amp_rank_state {
    uint64_t bytes; /* of all of it, in memory */
    uint64_t held;  /* by this rank while a step runs: its share, or all; of a moment without padding at its end */
} amp_rank_state;

/* State |index| of the tables on rank |rank| of |ranks| that exchange in memory of the device; 1: it is alone. */
AMP_API AMP_MUST_USE amp_status amp_model_rank_state(const amp_model *model, const char *device, int32_t index,
                                                     int32_t rank, int32_t ranks, amp_rank_state *out, amp_error *err);

/* amp_session_plan of a session on rank |rank| of |ranks|, without the others; |options->comm| is not read.
 * AMP_UNSUPPORTED: a device with memory of its own. */
AMP_API AMP_MUST_USE amp_status amp_session_plan_rank(amp_model *model, const amp_session_options *options,
                                                      int32_t rank, int32_t ranks, amp_memory_info *out,
                                                      amp_error *err);

/* ---- the processor ----------------------------------------------------------------------------------------------- */

typedef struct amp_measure_options {
    size_t struct_size;
    const amp_model *model; /* whose kernels have to run here; NULL: any */
    const char *isa;        /* as amp_cpu_options.isa */
    int32_t threads;        /* as amp_session_options.threads */
    int32_t memory;         /* 1: measure memory, too */
} amp_measure_options;

/* Each rate is the best of some tries, on all threads together. */
typedef struct amp_cpu_rates {
    const char *level;            /* what kernels run as: "v4"; NULL: unknown */
    int32_t processors;           /* that this process may use */
    int32_t threads;              /* that were measured */
    const char *f32_by, *bf16_by; /* the kernels of products: "avx512" */
    double f32, bf16;             /* operations a second of a session's products, operands in the cache */
    const char *other_by;         /* the machine's other way to multiply bf16; NULL: it has one way */
    double other;                 /* by that */
    double bytes;                 /* a second, read and written, of a copy of 128 MiB; 0: not measured */
} amp_cpu_rates;

/* Measures this machine, which takes tenths of a second.  AMP_UNSUPPORTED: the processor cannot run the instruction set
 * or the model; AMP_NOT_FOUND: there is no such instruction set; then |level|, if it is known, and |processors| are
 * set.  AMP_OUT_OF_MEMORY. */
AMP_API AMP_MUST_USE amp_status amp_cpu_measure(const amp_measure_options *options, amp_cpu_rates *out, amp_error *err);

/* ---- CUDA -------------------------------------------------------------------------------------------------------- */

typedef enum amp_cuda_software {
    AMP_CUDA_DRIVER = 0,
    AMP_CUDA_NVRTC = 1,   /* which compiles kernels */
    AMP_CUDA_CACHE = 2,   /* of compiled kernels, on disk */
    AMP_CUDA_CUBLASLT = 3 /* NVIDIA's matrix products; sessions do without them */
} amp_cuda_software;

typedef struct amp_cuda_found {
    char path[4096];               /* of the library, or the cache's folder */
    int32_t version;               /* 13000 for 13.0: of the library, of the driver's CUDA; 0 of the cache */
    int32_t devices;               /* of the driver: how many it has */
    int32_t least_arch, most_arch; /* of NVRTC: compiles for sm_75 to sm_120, say */
} amp_cuda_found;

/* What a session would find and use.  AMP_NOT_FOUND, AMP_UNSUPPORTED, AMP_BAD_FILE: with the remedy. */
AMP_API AMP_MUST_USE amp_status amp_cuda_find(amp_cuda_software what, amp_cuda_found *out, amp_error *err);

typedef struct amp_gpu_info {
    char name[96];
    int32_t index; /* amp_cuda_options.index */
    int32_t arch;  /* 90 for sm_90 */
    int32_t multiprocessors, reserved;
    uint64_t memory;
} amp_gpu_info;

/* AMP_NOT_FOUND: no driver, or no such device; AMP_UNSUPPORTED: one that is too old. */
AMP_API AMP_MUST_USE amp_status amp_gpu_at(int32_t index, amp_gpu_info *out, amp_error *err);

/* AMP_UNSUPPORTED: the device's tensor cores lack the types of the model's products, and the remedy. */
AMP_API AMP_MUST_USE amp_status amp_model_check_gpu(const amp_model *model, const amp_gpu_info *gpu, amp_error *err);

/* Where a session takes the model's functions for CUDA from, by their number. */
typedef struct amp_kernel_sources {
    int32_t model;     /* as it was compiled with them */
    int32_t model_ptx; /* of these: PTX, which the driver compiles in every process */
    int32_t cache, nvrtc;
} amp_kernel_sources;

/* For a session on |gpu|, which leaves out functions for newer devices; |ptx_alone|: its driver takes no machine code.
 * Compiles nothing.  AMP_UNSUPPORTED, AMP_NOT_FOUND: there is no way to get a function that the session needs, and the
 * remedy. */
AMP_API AMP_MUST_USE amp_status amp_model_kernel_sources(const amp_model *model, const amp_gpu_info *gpu,
                                                         int32_t ptx_alone, amp_kernel_sources *out, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
