/* amp/model_abi.h: what a compiled model (model.so) and the runtime agree on.
 *
 * A model.so exports one symbol, amp_model_query, and needs none.  It is constant data plus pure functions: it
 * allocates nothing, calls nothing outside itself and keeps no state.  The runtime owns memory, threads and matrix
 * products, walks the kernel lists below and calls the model's functions on the pointers that it planned.
 *
 * A model belongs to the version of ampc that made it: libamp of another version refuses it.  The descriptor and every
 * table say how large their structs are, so that a model of another build of the same version is refused, too.
 *
 * Source of the shape of this ABI: the IREE executable library and the PJRT C API (struct_size), see
 * docs/design/model-abi.md.
 */
#ifndef AMP_MODEL_ABI_H
#define AMP_MODEL_ABI_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AMP_MODEL_MAGIC 0x4D504D41u /* "AMPM" */
#define AMP_MODEL_SYMBOL "amp_model_query"
#define AMP_MODEL_HASH_SECTION ".amp.sha256" /* 32 bytes: SHA-256 of the file with these 32 bytes zero */
/* In place of the hash, where somebody else than ampc has linked the file: it is loaded unchecked. */
#define AMP_MODEL_UNSEALED "ampc: no hash, made by hand     "
/* What machine code needs, as text: a line `FUNCTION KERNEL sm_90 registers 96 shared 24576 spills 0 stack 0` each. */
#define AMP_MODEL_CUDA_USES_SECTION ".amp.gpu.uses"
/* The module after all passes, as text that parses back, in a zlib stream.  Tools read it from the file: it is in no
 * memory of a model that is loaded. */
#define AMP_MODEL_IR_SECTION ".amp.ir"
/* The same of the kernels for CUDA, but for what both keep; absent: the model has none. */
#define AMP_MODEL_CUDA_IR_SECTION ".amp.gpu.ir"
/* In place of the stream, before the name of the model's source: it was compiled with --no-ir. */
#define AMP_MODEL_NO_IR "no IR: "
/* Where tables have addresses, as loaders of the system know it under this name (DT_RELR of the System V ABI); older
 * ones do not, and libamp reads it itself.  A file of a linker that cannot make it is larger and has none. */
#define AMP_MODEL_ADDRESSES_SECTION ".relr.dyn"

enum { AMP_MODEL_MAX_RANK = 8, AMP_MODEL_NONE = -1 };

typedef struct amp_model_table {
    uint32_t count, elem_size;
    const void *data;
} amp_model_table;

/* mul * n^of_n * t^of_t / div, a whole number at every size.  of_n and of_t are at most 2; div is 1 if both are 0. */
typedef struct amp_model_dim {
    int64_t mul;
    int32_t div;
    uint16_t of_n, of_t;
} amp_model_dim;

/* How a matrix of rows x cols is stored in memory; R and C are rows and cols rounded up to 32.  Elements past the edge
 * are zero, but in the rows of PANELS past the last one, which are never read.  ROWS is dense and row-major; its
 * allocation is rounded up to 128 bytes. */
enum {
    AMP_LAYOUT_ROWS = 0,
    AMP_LAYOUT_PANELS = 1,   /* [C/32][R][32] */
    AMP_LAYOUT_PAIRS = 2,    /* [C/32][R/2][32][2] */
    AMP_LAYOUT_PANELS_T = 3, /* [R/32][C][32] */
    AMP_LAYOUT_PAIRS_T = 4   /* [R/32][C/2][32][2] */
};

/* ---- states: what lives from call to call ------------------------------------------------------------------------ */

enum {
    AMP_STATE_PARAM = 0,   /* in amp_params; f32, bf16 or f16; saved by --save */
    AMP_STATE_BUFFER = 1,  /* in amp_params; saved by --save, not trained */
    AMP_STATE_MOMENT = 2,  /* in the training session; types as PARAM, f8m or f8v; saved by --checkpoint */
    AMP_STATE_COUNTER = 3, /* in the training session; see AMP_COUNTER_* */
    AMP_STATE_SCALER = 4,  /* in the training session; see AMP_COUNTER_* */
    AMP_STATE_DERIVED = 5, /* in amp_params; a copy of |of|, recomputed by the program REFRESH; never saved */
    /* in the training session: a sum over micro-batches (and ranks), of gradients of |of|, or an f64 number that is
     * nothing's; never saved */
    AMP_STATE_ACCUMULATOR = 6,
    AMP_STATE_STAGED = 7 /* in the training session; the next value of buffer |of|; never saved */
};

/* Scalars.  Checkpoints use the same names. */
enum {
    AMP_COUNTER_NONE = 0,
    AMP_COUNTER_SCALE = 1,          /* SCALER, f32 "scale" */
    AMP_COUNTER_GROWTH_TRACKER = 2, /* SCALER, i32 "growth_tracker" */
    AMP_COUNTER_FLOOR_HITS = 3,     /* SCALER, i32 "floor_hits" */
    /* COUNTER, i64 "step": updates; "step.0": the updates of a train block that skips alone */
    AMP_COUNTER_STEP = 4,
    AMP_COUNTER_ITERATION = 5, /* COUNTER, i64 "iteration": steps, skipped ones too */
    AMP_COUNTER_SEED = 6,      /* COUNTER, i64 "seed" */
    AMP_COUNTER_MICRO = 7,     /* COUNTER, i64 "micro": the micro-batch of the step */
    /* COUNTER, f64 "learning_rate", "learning_rate.0": of a train block, for the application to set.  Negative: the
     * schedule gives the rate */
    AMP_COUNTER_LEARNING_RATE = 8,
    /* COUNTER, f64 "scheduled_rate", "scheduled_rate.0": what the schedule said in the last step */
    AMP_COUNTER_SCHEDULED_RATE = 9,
    /* COUNTER, f64 "lr_scale.0": factor of a group; |counter_block| is the group's number */
    AMP_COUNTER_LR_SCALE = 10,
    /* of models that have collectives, for the session to set */
    AMP_COUNTER_RANKS = 11, /* COUNTER, f32 "ranks": how many processes train together */
    /* COUNTER, i64 "first_micro": this rank's first micro-batch of a step, of all ranks' */
    AMP_COUNTER_FIRST_MICRO = 12,
    AMP_COUNTER_FULL_BATCH = 13, /* COUNTER, i64 "full_batch": samples of a full micro-batch: the capacity */
    /* COUNTER, i64 "states_kept.0": the last iteration whose new value of a buffer was not finite, so that it kept its
     * own; |counter_block| is its number among the states of role BUFFER.  Of the session, never saved */
    AMP_COUNTER_STATES_KEPT = 14
};

typedef struct amp_model_state {
    const char *name;
    const char *slot; /* MOMENT: "m", "v", "momentum"; else NULL */
    const char *init; /* "kaiming_uniform", ...; NULL: zeros */
    uint32_t role;
    int32_t of;            /* MOMENT, DERIVED: index of the param; else AMP_MODEL_NONE */
    uint32_t counter;      /* COUNTER, SCALER: AMP_COUNTER_* */
    int32_t counter_block; /* of the train block that counts; of LR_SCALE the group; AMP_MODEL_NONE: of all */
    uint32_t dtype;        /* amp_dtype of the values */
    uint32_t storage;      /* amp_dtype of the elements in memory */
    uint32_t layout;
    /* 1: the weight of a convolution, or what goes with one: |dims| are [O, I, KH, KW], and the matrix in memory is
     * [KH * KW * I, O].  Where |dims| are [O, K], for CUDA: the weight of flattened images of this many pixels; column
     * c * pixels + p is column p * C + c in memory, C = K / pixels.  0: neither */
    uint32_t hwio;
    uint32_t rank;
    uint32_t init_arg_count;
    int64_t dims[AMP_MODEL_MAX_RANK];
    double init_args[4]; /* in the order of the language's reference */
    /* PARAM: 1 + its train block, and 1 + the groups that decide (amp_model_desc.groups); 0: none */
    uint32_t train_block, lr_scale_group, weight_decay_group, frozen_group, optimizer_group;
} amp_model_state;

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef struct amp_model_train { /* a train block */
    const char *only;            /* glob on the names of its parameters; NULL: all */
    const char *optimizer;       /* "adamw(lr = 0.001, ...)" */
} amp_model_train;

enum { AMP_GROUP_LR_SCALE = 1, AMP_GROUP_WEIGHT_DECAY = 2, AMP_GROUP_FROZEN = 4, AMP_GROUP_OPTIMIZER = 8 };
typedef struct amp_model_group { /* a group line; of all train blocks, in the order of the text */
    const char *pattern;
    uint32_t train_block; /* from 0 */
    uint32_t sets;        /* AMP_GROUP_* */
    double lr_scale, weight_decay;
    uint32_t line;         /* of the model text */
    const char *optimizer; /* NULL: the block's */
} amp_model_group;

/* ---- inputs and results of a call -------------------------------------------------------------------------------- */

/* An average is an input of the program METRICS alone: an f32 scalar by the name of a result of EVAL. */
enum { AMP_INPUT_OF_MODEL = 0, AMP_INPUT_OF_TRAINING = 1, AMP_INPUT_AVERAGE = 2 };

typedef struct amp_model_input {
    const char *name;
    uint32_t dtype, rank;
    amp_model_dim dims[AMP_MODEL_MAX_RANK];
    /* AMP_INPUT_*, in ascending order: the train block's (targets) are not read by INFER */
    uint32_t train_only;
    int64_t index_bound; /* > 0: class indices, each in [0, bound) or equal to |index_ignore| */
    int64_t index_ignore;
} amp_model_input;

/* What a result is. */
enum {
    AMP_RESULT_MODEL = 0,      /* the model's own: "logits" */
    AMP_RESULT_LOSS = 1,       /* "loss": what is reported; "loss.0": what a train block minimises */
    AMP_RESULT_NAMED_LOSS = 2, /* "loss.NAME" */
    AMP_RESULT_METRIC = 3,     /* "metric.NAME" */
    AMP_RESULT_GRADIENT = 4,   /* "grad.PARAM" */
    AMP_RESULT_OK = 5,         /* "ok": all gradients are finite; "ok.0": a train block's */
    AMP_RESULT_NORM = 6,       /* "grad_norm", "grad_norm.0": of the gradients, before clipping */
    AMP_RESULT_COUNT = 7,      /* "count.loss", f64: how many labels the result "loss" is a mean over; none: samples */
    AMP_RESULT_SUM = 8,        /* "sum.metric.hits": the result "metric.hits", which is a sum and no mean */
    AMP_RESULT_MEAN = 9        /* "mean.0": a mean, or a sum, that FIGURES reads; it has a COUNT, SUM or neither, too */
};

typedef struct amp_model_result {
    const char *name; /* "loss", "ok", "metric.acc", "logits", "grad.fc1.weight" */
    uint32_t kind;    /* AMP_RESULT_* */
    int32_t index;    /* GRADIENT: the state; LOSS, OK, NORM: the train block, or AMP_MODEL_NONE: all of them */
    int32_t buffer;   /* of the program */
    uint32_t dtype, rank;
    uint32_t hwio; /* as a state's */
    amp_model_dim dims[AMP_MODEL_MAX_RANK];
} amp_model_result;

/* ---- buffers of a program ---------------------------------------------------------------------------------------- */

enum {
    AMP_BUFFER_TEMP = 0,   /* planned by liveness: first_kernel..last_kernel */
    AMP_BUFFER_FLAG = 1,   /* int32, set to 0 when the program starts; kernels OR into it atomically */
    AMP_BUFFER_INPUT = 2,  /* the caller's array: index into the inputs */
    AMP_BUFFER_OUTPUT = 3, /* a result: lives in the session after the call, or is the caller's array */
    AMP_BUFFER_STATE = 4,  /* index into the states */
    AMP_BUFFER_WATCH = 5,  /* written where the session keeps values, else its pointer is NULL */
    /* what is rounded to f16, before that, as rows of f32: written in a run that is looked at, else its pointer is
     * NULL; index: the decision of its op.  In a program for CUDA: amp_model_look_counts, never NULL */
    AMP_BUFFER_LOOK = 6
};

/* What kernels on a device tell of numbers that they round to f16.  The host clears it before a run. */
typedef struct amp_model_look_counts {
    uint32_t on;             /* the run is looked at; 0: nothing is counted */
    uint32_t largest;        /* the bits of the largest that is finite, as f32 */
    uint64_t lost, infinite; /* finite ones that become zero, and infinite */
} amp_model_look_counts;

typedef struct amp_model_buffer { /* a model has one for each value of each step of its loops */
    const char *name;             /* of the IR value */
    /* |rank| of the value; their product is rows * cols.  TEMP of CUDA: rows may be longer than the value's */
    const amp_model_dim *dims;
    amp_model_dim rows, cols;
    int32_t index;                     /* INPUT, STATE: see above; else AMP_MODEL_NONE */
    int32_t first_kernel, last_kernel; /* positions in the program's kernel list */
    /* TEMP: 1 + the buffer whose memory it may take, one of the same size that lives earlier; 0: none.  LOOK, 1:
     * something is divided by it, or by its root: a zero too many is a fault */
    uint32_t place;
    /* TEMP and STATE of CUDA: of the last dimension, elements at its end that are padding: zeros, and no part of the
     * value */
    uint32_t padding;
    /* TEMP of CUDA, not 0: the elements that are no part of the value belong to other buffers of the memory, and the
     * value begins at element |part| - 1 of the last dimension */
    uint32_t part;
    uint8_t kind; /* AMP_BUFFER_* */
    uint8_t dtype, storage, layout, rank;
    /* TEMP of CUDA, 1: it is that buffer under another shape of as many elements, and has its memory in every session;
     * no kernel writes it */
    uint8_t renamed;
} amp_model_buffer;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

enum {
    AMP_KERNEL_PRODUCT = 0, /* run: called once per 32 x 32 tile of the product, with |acc| */
    AMP_KERNEL_TILE = 1,    /* run: called once per 32 x 32 tile */
    AMP_KERNEL_ROW = 2,     /* run: called per block of up to 32 rows; col0 = 0 */
    /* run: called per block of 32 columns and segment; row0 = first row of the segment, rows = its rows (all without
     * segments) */
    AMP_KERNEL_COLUMN = 3,
    AMP_KERNEL_SCALAR = 4, /* run: called once */
    /* run: called per block of 32 columns; row0 = 0, rows = all rows of the rows that are added up */
    AMP_KERNEL_SCATTER = 5,
    /* run: called with |attention| for what is no product; see amp_attention_tile */
    AMP_KERNEL_ATTENTION = 6,
    /* of MICRO_STEP and APPLY_STEP.  run: called once: copies operand 0 to operand 1, f32 vectors or scalars in ROWS
     * whose size is not of N.  Then operand 1 is added up over all ranks, which wait for each other; where there is
     * one, it is the sum.  All ranks run these kernels in the order of the program; none has a predicate.  Of CUDA: the
     * launch copies, and where ranks add up it is left out: the sum of operand 0 goes to operand 1 */
    AMP_KERNEL_COLLECTIVE = 7
};

/* Instruction sets that kernels are emitted for. */
enum { AMP_ISA_PORTABLE = 0, AMP_ISA_V3 = 1, AMP_ISA_V4 = 2, AMP_ISA_COUNT = 3 };
#define AMP_ISA_WORDS                                                                                                  \
    { "portable", "v3", "v4" }

/* A tile of the scores of attention: up to 32 queries, which are columns, and |keys| keys, which are rows,
 * of one head.  The runtime makes the products; the model's function does the rest, in these steps:
 *
 *   SCORES  scores (q k^T) become weights exp(scale * score + mask - largest), zero where a key is not seen; largest[j]
 *           and sum[j] go on, and what is summed so far, |acc|, is multiplied by what the new largest makes of it;
 *           after dropout the weights are written to |weights|
 *   RESULT  |acc| divided by sum goes to |out|; log(sum) + largest to |sums|, where there is one
 *   SLOPES  scores and slopes (v dy^T) become weights exp(scale * score + mask - sums) and d scores = scale * weights *
 *           (slopes - mean): after dropout the weights go to |weights|, d scores to |slopes| or, where operands are
 *           bf16, to |slope_rows| and |slope_pairs|
 *   MEAN    mean[j] = sum over c of dy[j][c] * y[j][c], both as rows of |width|
 *
 * Weights and d scores are f32 [keys][32] in place; where operands are bf16 they are rounded: SCORES writes pairs of
 * keys, [keys / 2][32][2], SLOPES rows [keys][32] of the weights, and both of d scores.  An odd last key has zero as
 * its partner. */
enum { AMP_ATTENTION_SCORES = 0, AMP_ATTENTION_RESULT = 1, AMP_ATTENTION_SLOPES = 2, AMP_ATTENTION_MEAN = 3 };
typedef struct amp_attention_tile {
    uint32_t step;
    int64_t row;            /* the first query, counted over all heads of all samples */
    int64_t query, queries; /* its place in the head; 1 .. 32 of them */
    int64_t key, keys;      /* key % 32 == 0 */
    float *scores, *slopes; /* [keys][32] */
    const void *mask;       /* [keys][32] f32, or int32 where it chooses; NULL: none */
    void *weights, *slope_rows, *slope_pairs;
    float *largest, *sum; /* [32] */
    float *sums, *mean;   /* [32] */
    float *acc;           /* [panels][32][32]: rows are queries */
    int64_t acc_stride;   /* floats from one panel to the next */
    float *out;           /* RESULT: rows of |width|, |out_pitch| floats apart */
    int64_t width, out_pitch;
    const void *dy, *y; /* MEAN: rows of |width|, dense */
} amp_attention_tile;

typedef struct amp_kernel_args {
    void *const *buffer; /* the kernel's operands, in the order of amp_model_kernel.operands */
    const float *acc;    /* PRODUCT: [rows][32], the f32 sums of this tile; else NULL */
    int64_t n, t;        /* samples of this call, and its length */
    int64_t row0, rows;  /* row0 % 32 == 0 (except COLUMN with segments), 1 <= rows (<= 32 except COLUMN, SCATTER) */
    int64_t col0;        /* col0 % 32 == 0; the kernel knows its columns */
    const amp_attention_tile *attention; /* ATTENTION; else NULL */
} amp_kernel_args;

typedef void (*amp_kernel_fn)(const amp_kernel_args *args);

/* The product of a PRODUCT kernel: rows x cols = A[rows, k] * B[k, cols].
 * |a_transposed| 0: A is stored [rows, k] as PANELS.        1: A is stored [k, rows] as PANELS (f32) or PAIRS (bf16).
 * |b_transposed| 0: B is stored [k, cols] as PANELS (f32) or PAIRS (bf16).   1: B is stored [cols, k] as PANELS_T
 * (f32) or PAIRS_T (bf16).  In ROWS, if that has fewer than 32 columns; not B with |b_transposed|.
 * Operands are f32 in memory (f32, tf32, and f16 widened) or bf16. */
typedef struct amp_model_product {
    uint32_t operand; /* AMP_DT_F32 or AMP_DT_BF16: the elements in memory */
    uint32_t a_transposed, b_transposed;
    int32_t a, b; /* operands of the kernel (positions in |operands|) */
    amp_model_dim k;
} amp_model_product;

/* Products over windows of images, channels last.  Images of x: [N, h, w, c]; of y: [N, oh, ow, oc].  An operand that
 * is an image is stored in PANELS or, if it has fewer than 32 channels, possibly in ROWS (see its buffer): pixels are
 * rows, channels columns.  Weights are the matrix [kh * kw * k, cols] in PANELS (f32) or PAIRS (bf16; then k is even),
 * k the channels that are summed over.
 *   CONV         y = x * w:    A = x,  B = w [kh * kw * c, oc]:   result N * oh * ow rows, oc columns
 *   CONV_DATA    dx = dy * w:  A = dy, B = w [kh * kw * oc, c]:   result N * h * w rows, c columns
 *       b_transposed (c is a multiple of 32): B = w [kh * kw * c, oc] in PANELS_T or PAIRS_T
 *   CONV_WEIGHT  dw = x' dy:   A = x,  B = dy:                    result kh * kw * c rows, oc columns, summed over
 *       pixels in an order that does not depend on threads
 * With groups > 1, weights of CONV and CONV_DATA are w [kh * kw * c / groups, oc] in PANELS, of the operand's type, and
 * the result of CONV_WEIGHT has their shape.
 * a_transposed, b_transposed but for that, and k of the product are 0. */
enum { AMP_WINDOW_NONE = 0, AMP_WINDOW_CONV = 1, AMP_WINDOW_CONV_DATA = 2, AMP_WINDOW_CONV_WEIGHT = 3 };
typedef struct amp_model_window {
    uint32_t kind;
    int32_t h, w, c, oh, ow, oc, kh, kw;
    int32_t stride[2], padding[2], dilation[2]; /* of rows, of columns */
    int32_t groups;                             /* 0 and 1: one */
} amp_model_window;

/* Many products of one size: A[b] [m, k] * B[b] [k, n] for each b of |dims|, the last one fastest.  The
 * operands are in dense ROWS of any shape; element (i, j) of product b is element  offset + b along strides + i * pitch
 * + j  of the buffer; transposed: i and j change places.  The result is one matrix of the kernel's rows x cols: product
 * b has the rows b * m ..; in_columns: along the last of |dims| they are beside each other, and product (b, h) has the
 * rows b * m .. and the columns h * n ..  a_transposed, b_transposed and k of the product hold for each. */
enum { AMP_MODEL_BATCH_MAX_DIMS = 6 };
typedef struct amp_model_batch_operand {
    int64_t offset;
    amp_model_dim pitch, strides[AMP_MODEL_BATCH_MAX_DIMS]; /* elements; a stride of 0: all read the same */
} amp_model_batch_operand;
typedef struct amp_model_batch {
    uint32_t rank, in_columns;
    amp_model_dim dims[AMP_MODEL_BATCH_MAX_DIMS], m, n;
    amp_model_batch_operand a, b;
} amp_model_batch;

/* Attention: for each b of |dims|, the last of which are the heads of queries,
 *   y[b] = softmax(scale q[b] k[b']^T + mask[b]) v[b'],   b' the same with head / share
 * and backward its gradients.  Operands and results are rows at strides, as amp_model_batch_operand says of ones that
 * are not transposed; their last stride is from one of their own heads to the next.  q, k, v and dy are f32 or bf16 in
 * dense ROWS, results f32; y is the matrix of all heads together, in ROWS or PANELS, f32 or as the others. */
typedef struct amp_model_attention_operand {
    int32_t operand;   /* position in |operands|; AMP_MODEL_NONE: none */
    uint32_t one_step; /* mask: one number for all keys of a query */
    amp_model_batch_operand at;
} amp_model_attention_operand;
typedef struct amp_model_attention {
    uint32_t backward, causal;
    uint32_t storage; /* AMP_DT_F32 or AMP_DT_BF16: of q, k, v and dy */
    uint32_t rank;
    amp_model_dim dims[AMP_MODEL_BATCH_MAX_DIMS];
    amp_model_dim queries, keys;
    int64_t share, width, v_width;
    amp_model_attention_operand q, k, v, mask, dy;
    int32_t y;                             /* backward: the operand */
    amp_model_attention_operand sums;      /* one number for each query, dense: written forward, read backward */
    amp_model_attention_operand result[3]; /* forward: y; backward: d q, d k, d v; AMP_MODEL_NONE: it is not read */
} amp_model_attention;

typedef struct amp_model_kernel {
    const char *name, *title;
    uint32_t kind;
    int32_t predicate; /* buffer of the program (int32): run only where it is not 0; AMP_MODEL_NONE: always */
    uint32_t operand_count, update_count;
    const uint32_t *operands; /* buffers of the program */
    /* operands (positions) that the kernel reads and writes in place tile by tile: weights, moments */
    const uint32_t *updates;
    amp_model_dim rows, cols; /* what is walked */
    amp_kernel_fn run[AMP_ISA_COUNT];
    uint32_t line;                        /* of the model text */
    amp_model_dim segment;                /* COLUMN: rows of a segment; all 0: all rows are one */
    amp_model_product product;            /* PRODUCT only */
    amp_model_window window;              /* PRODUCT; kind NONE: a matrix product */
    const amp_model_batch *batch;         /* PRODUCT of kind NONE; NULL: one product */
    const amp_model_attention *attention; /* ATTENTION */
} amp_model_kernel;

enum {
    AMP_PROGRAM_OTHER = 0, /* none that the runtime runs */
    AMP_PROGRAM_TRAIN_STEP = 1,
    /* where accumulate > 1, or there are collectives, in place of TRAIN_STEP: once for each micro-batch, */
    AMP_PROGRAM_MICRO_STEP = 2,
    AMP_PROGRAM_APPLY_STEP = 3, /* then this one */
    AMP_PROGRAM_EVAL = 4,
    AMP_PROGRAM_INFER = 5,
    AMP_PROGRAM_EVAL_FP32 = 6,
    AMP_PROGRAM_INFER_FP32 = 7,
    AMP_PROGRAM_METRICS = 8, /* of averages */
    AMP_PROGRAM_REFRESH = 9, /* of derived states */
    /* between MICRO_STEP and APPLY_STEP, for each micro-batch of all ranks in their order, with the number of
     * the micro-batch in "micro" and what it left in the states of GATHER_BATCHES */
    AMP_PROGRAM_STATISTICS_STEP = 10,
    AMP_PROGRAM_FIGURES = 11 /* of the results MEAN over all batches: losses and metrics that are no mean themselves */
};

typedef struct amp_model_program {
    const char *name;        /* "train_step", "micro_step", ...: its kind in small letters */
    amp_model_table buffers; /* amp_model_buffer */
    amp_model_table kernels; /* amp_model_kernel, in order */
    amp_model_table results; /* amp_model_result */
    uint32_t kind;           /* AMP_PROGRAM_* */
} amp_model_program;

/* ---- why each op has its dtype ----------------------------------------------------------------------------------- */

typedef struct amp_model_reason { /* that decisions share */
    const char *rule;             /* class word */
    const char *text;             /* "{follow, torch-fp16:9, input fc1.linear}" */
    const char *policy_text;      /* the line as written */
    const char *because;          /* the model's own words; NULL */
} amp_model_reason;

typedef struct amp_model_decision {
    const char *path, *op;
    const char *file;
    const amp_model_reason *reason;
    uint32_t out; /* amp_dtype */
    int32_t line, column;
} amp_model_decision;

/* ---- CUDA -------------------------------------------------------------------------------------------------------- */

typedef struct amp_model_cuda_image { /* compiled when the model was */
    uint32_t arch, suffix;            /* 80 for sm_80; 'a' for sm_90a, else 0 */
    uint32_t is_cubin;
    const void *data; /* PTX ends with a NUL that |size| counts */
    uint64_t size;
    int32_t registers, shared_bytes, spill_bytes, stack_bytes; /* as ptxas said; -1: not known */
} amp_model_cuda_image;

/* What a row has several of: no table, because their size is fixed in this library. */
#define AMP_MODEL_LIST(type)                                                                                           \
    struct {                                                                                                           \
        const type *at;                                                                                                \
        uint32_t count;                                                                                                \
    }

typedef struct amp_model_cuda_range { /* of a text */
    uint32_t at, size;
} amp_model_cuda_range;

/* One __global__ function.  Its text is |prelude|, then |source|: CUDA C without includes, for every architecture from
 * |min_arch| on.  Kernels of equal bodies share one. */
typedef struct amp_model_cuda_function {
    const char *entry; /* extern "C" name */
    const char *source;
    /* of amp_model_cuda's what |source| needs, which compiles faster; |at| NULL: all of it */
    AMP_MODEL_LIST(amp_model_cuda_range) prelude;
    uint32_t min_arch;
    /* compiled for this architecture or a later one, each thread executes griddepcontrol.wait before it reads
     * what other launches write, and before it writes: it may begin before the launch before it has ended.  0: none */
    uint32_t waits_from;
    amp_model_table images; /* amp_model_cuda_image */
} amp_model_cuda_function;

/* Shared memory besides the dynamic one that functions have which take as much of it as a device has. */
enum { AMP_CUDA_FIXED_SHARED = 512 };

/* A function that computes what the launch is for. */
typedef struct amp_model_cuda_choice {
    uint32_t function; /* index into the functions */
    uint32_t block[3];
    uint32_t shared_bytes; /* dynamic */
} amp_model_cuda_choice;

/* Blocks along each axis: ceil(extent at n / per), at least 1; per 0: 1 block. */
typedef struct amp_model_cuda_grid {
    amp_model_dim extent[3];
    int64_t per[3];
} amp_model_cuda_grid;

/* A kernel of the launch, or a batch of kernels that differ in their operands alone. */
typedef struct amp_model_cuda_part {
    uint32_t kind; /* AMP_KERNEL_*; COLLECTIVE has a launch of its own */
    uint32_t members;
    uint32_t operand_count, work_count; /* of the launch's, after the ones of the parts before it; members one by one */
    uint32_t superstep;                 /* 0: it waits for nothing; else it waits for all parts of smaller ones */
    const amp_model_cuda_grid *grids;   /* by choice: the blocks that it would have alone */
} amp_model_cuda_part;

/* What a kernel computes, for models of its time: parts, each of operations * elements * terms floating-point
 * operations by one instruction.  A product has |elements| in all, of each of its batch, which are sums of
 * |terms|, with 2 operations for each term.  PLAIN: as many instructions; a function such as exp counts as what it
 * takes. */
enum {
    AMP_INSTRUCTION_PLAIN = 0,
    AMP_INSTRUCTION_FMA = 1, /* fused multiply-adds in f32 */
    AMP_INSTRUCTION_MMA_F16 = 2,
    AMP_INSTRUCTION_MMA_BF16 = 3,
    AMP_INSTRUCTION_MMA_TF32 = 4
};
typedef struct amp_model_cuda_work {
    uint32_t instruction; /* AMP_INSTRUCTION_* */
    uint32_t operations;
    amp_model_dim elements, terms;
} amp_model_cuda_work;

/* AGAIN times how many more times each element is read if the choice's dynamic shared memory does not hold it.  That
 * holds the rows of all such operands, the first columns of each if not all fit. */
enum { AMP_ACCESS_READ = 1, AMP_ACCESS_WRITE = 2, AMP_ACCESS_AGAIN = 4 };

/* How blocks of a launch wait for one another; all 0: they do not. */
typedef struct amp_model_cuda_waits {
    uint32_t tickets;       /* counters of blocks */
    uint32_t partial_bytes; /* of each block, for numbers that others read */
    uint32_t depth;         /* of supersteps, for tools: the most kernels that wait for one another */
} amp_model_cuda_waits;

/* A product that a library may make in place of the function: rows x cols sums of k terms, with a bias of the result's
 * type added, rounded once to that type.  An element of A is at row * pitch + k in memory or, if A is turned, at
 * k * pitch + row; of B at k * pitch + column or, turned, at column * pitch + k.  Several parts: as many results, one
 * after the other, each of k / parts terms; a library makes them if that is a multiple of AMP_PRODUCT_PART.  Lines
 * begin at multiples of 16 bytes.
 *
 * One call makes |batch| products of these sizes.  In the memory of A, B and the result the first begins at element
 * |first|, and each other |stride| elements after the one before (A and B: 0 if all have the same); both are multiples
 * of 16 bytes.  Results do not overlap.  |batch| or |parts| is 1. */
enum { AMP_PRODUCT_PART = 64, AMP_PRODUCTS_MOST = 128 /* calls in place of a launch */ };
typedef struct amp_model_cuda_product {
    uint32_t a, b, result; /* operands of the launch */
    uint32_t bias;         /* the same and 1; 0: none */
    uint32_t a_turned, b_turned;
    uint32_t instruction; /* AMP_INSTRUCTION_* */
    uint32_t parts;
    uint32_t filled,
        reserved; /* |filled| 1: zeros fill the result's lines from |cols| on, and the runtime writes them */
    int64_t cols;
    amp_model_dim rows, k, pitch[3]; /* of A, B and the result */
    amp_model_dim batch, stride[3], first[3];
} amp_model_cuda_product;

/* A launch: one function, which computes one kernel of the module or several.  Example: both gradients of a linear
 * layer, products that do not need each other, in tiles of 128 x 128 where these are done sooner:
 *
 *   .name = "k07+k08", .title = "fc1: matmul; fc1: matmul", .line = 12,
 *   .choices = {{function 5, 256 threads}, {function 4, 128 threads}}
 *   .parts = {{PRODUCT, 1 member, 3 operands, 1 work, superstep 0, grids {n / 128 x 784 / 128}, {n / 64 x 784 / 64}},
 *             {PRODUCT, 1 member, 3 operands, 1 work, superstep 0, grids {512 / 128 x 784 / 128}, ..}}
 *   .operands = {12, 3, 14, 12, 2, 15}, .access = {R, R, W, R, R, W}, .sizes = {n, 784, 512, 512, 784, n}
 *   .work = {{MMA_F16, 2 operations, n * 784 elements, 512 terms}, {MMA_F16, 2, 512 * 784, n}}
 *
 * Of the choices whose shared memory the device has, and the last one, which is right everywhere, the one is launched
 * whose products are done first by |work| and the device's multiprocessors (amp_cuda_launch_choose).  One part
 * that is in no superstep has its own grid.  Otherwise the blocks of all parts follow one another along the first axis.
 *
 * Parameters of the function, in order: a pointer for each operand, or with |operand_table| one to an array of them in
 * device memory; int64 n; an int64 for each of |sizes|; with |elements| a pointer to an array of them, int64 in device
 * memory; with |tickets| a pointer to this many uint32 in device memory, 0 before and after a launch; with
 * |partial_bytes| a pointer to a uint32 for each block of the launch, 0 before and after it, and one to |partial_bytes|
 * for each block, which other launches may use before and after; and where blocks of parts follow one another, three
 * int64 for each part: the number of its first block, its blocks along the first axis and along the second.
 *
 * A kernel with a predicate tests it itself: the predicate's buffer is its last operand. */
typedef struct amp_model_cuda_kernel {
    const char *name, *title;
    uint32_t line; /* of the model text */
    /* 1: a TILE kernel of APPLY_STEP, each of whose operands is a number or a matrix that goes by element, as memory
     * has them, and which runs for the elements in a rank's share.  In place of its first two sizes, each of which
     * is all elements, it is given where they end and begin; of a batch |elements| is how many, and the array has after
     * them where each member begins */
    uint32_t shares;
    AMP_MODEL_LIST(amp_model_cuda_choice) choices;
    AMP_MODEL_LIST(amp_model_cuda_part) parts;
    AMP_MODEL_LIST(uint32_t) operands; /* buffers of the program */
    const uint8_t *access;             /* AMP_ACCESS_* of each operand, for tools; NULL: not known */
    uint32_t operand_table;            /* 1: they are too many for parameters, or a batch's */
    AMP_MODEL_LIST(amp_model_dim) sizes;
    AMP_MODEL_LIST(amp_model_dim) elements;   /* of each member of all parts, where there is a batch */
    AMP_MODEL_LIST(amp_model_cuda_work) work; /* for tools, and the choice among tiles */
    amp_model_cuda_waits waits;
    /* In place of the launch a library may make all of the products, in any order; then |then| is launched, which reads
     * what they wrote and may write over it.  NULL: nothing is left to do.  |then| itself has neither */
    AMP_MODEL_LIST(amp_model_cuda_product) products;
    const struct amp_model_cuda_kernel *then;
    const char *no_call; /* why it has products, and none that a library may make, for tools; NULL: it is not so */
} amp_model_cuda_kernel;

typedef struct amp_model_cuda_program {
    const char *name; /* as amp_model_program */
    /* amp_model_buffer: every layout is ROWS; |storage| is the dtype's own (tf32: f32; bool: one int32) */
    amp_model_table buffers;
    amp_model_table kernels; /* amp_model_cuda_kernel, in order */
    amp_model_table results; /* amp_model_result */
    uint32_t kind;           /* as amp_model_program */
} amp_model_cuda_program;

typedef struct amp_model_cuda {
    uint32_t struct_size;
    const char *prelude;
    /* amp_model_state: the model's states by name, in another layout; derived ones are CUDA's own */
    amp_model_table states;
    amp_model_table functions; /* amp_model_cuda_function */
    amp_model_table programs;  /* amp_model_cuda_program */
    /* amp_model_collective: the model's, with gradients in the order in which these programs complete them, and
     * in buckets of another size.  None: the model's own */
    amp_model_table collectives;
} amp_model_cuda;

/* ---- collectives: what ranks exchange between MICRO_STEP and APPLY_STEP ------------------------------------------ */

enum {
    AMP_EXCHANGE_ALL_REDUCE = 0,     /* each state holds the sum of all ranks' values of it */
    AMP_EXCHANGE_GATHER_BATCHES = 1, /* what each micro-batch of all ranks left in the states, for STATISTICS_STEP */
    /* ALL_REDUCE whose sums, where they have an order, are added as a balanced tree: (0 + 1) + (2 + 3).  The
     * model adds its micro-batches so. */
    AMP_EXCHANGE_ALL_REDUCE_TREE = 2,
    /* The rank's share of the states holds the sum of all ranks' values of it, and the rest zeros.  Kernels
     * with a MOMENT of a PARAM whose gradient is such a state are TILE kernels, and run for the rank's share of it: it
     * has no more of the MOMENT.  ALL_GATHER has those PARAMs. */
    AMP_EXCHANGE_REDUCE_SCATTER = 3,
    AMP_EXCHANGE_REDUCE_SCATTER_TREE = 4,
    /* After APPLY_STEP: each state, a PARAM, holds every rank's share of it.  The states are those whose
     * gradients are in a REDUCE_SCATTER, in its order. */
    AMP_EXCHANGE_ALL_GATHER = 5
};

/* All ranks, which run one type of device, make them in this order.  A state is in one of them at most, and is an
 * ACCUMULATOR or STAGED, or a PARAM of ALL_GATHER. */
typedef struct amp_model_collective {
    uint32_t op, bucket; /* of one bucket: one message */
    uint32_t dtype;      /* of all its states' elements in memory */
    uint32_t state_count;
    const int32_t *states; /* in the order of the message */
    const char *what;      /* "2 of 6 gradients, 20.5 KB", for messages */
} amp_model_collective;

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

enum { AMP_MODEL_VERSION_SIZE = 16 };

typedef struct amp_model_desc {
    uint32_t magic, struct_size;
    char version[AMP_MODEL_VERSION_SIZE]; /* AMP_VERSION of the ampc that made it; these three stay where they are */
    /* Its own address; another one: the system's loader has left all addresses as they are in the file */
    const struct amp_model_desc *self;
    const char *name, *target, *source_name;
    const char *policy, *precision; /* "torch-fp16", "fp16" */
    const char *low;                /* "f16" */
    const char *sums;               /* "sm_90", whose tensor cores the CPU's products follow; NULL: "ieee" */
    const char *optimizer;          /* "adamw(lr = 0.001, ...)"; NULL: inference only */
    const char *scaler;             /* "dynamic(init = 65536.0, ...)"; NULL: unscaled */
    uint8_t source_sha256[32], policy_sha256[32];
    uint8_t ir_sha256[32]; /* of the text in AMP_MODEL_IR_SECTION, also where it is left out */
    int64_t graph_ops;
    int64_t accumulate;               /* micro-batches in a step; 0 reads as 1 */
    int64_t least_batch;              /* samples that each variance over a training batch needs; 0 reads as 1 */
    int64_t length_most, length_unit; /* the largest T, and what every T is a multiple of; 0: the model has no T */
    amp_model_table states, inputs, programs, decisions;
    amp_model_table trains, groups; /* amp_model_train, amp_model_group */
    amp_model_table collectives;    /* amp_model_collective; none: the model trains alone */
    const amp_model_cuda *cuda;     /* NULL: the model has no CUDA code */
    /* where |cuda| is NULL: why ("--target cpu", or the op that has no CUDA code yet); else NULL */
    const char *cuda_missing;
} amp_model_desc;

/* The one exported symbol. */
typedef const amp_model_desc *(*amp_model_query_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
