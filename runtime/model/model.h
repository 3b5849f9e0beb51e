/* model.h: a loaded model as the runtime sees it: the tables of its descriptor, every index checked. */
#ifndef AMP_RUNTIME_MODEL_MODEL_H
#define AMP_RUNTIME_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "amp/amp.h"
#include "amp/cpu.h"
#include "amp/cuda.h"
#include "amp/inspect.h"
#include "amp/train.h"

static inline bool amp_sizes_are_equal(amp_sizes a, amp_sizes b) { return a.n == b.n && a.t == b.t; }

/* What calls of a session take: n and t at most, and n * t at most, unless |tokens| is 0. */
typedef struct amp_capacity {
    amp_sizes most;
    int64_t tokens, unit; /* that t is a multiple of */
} amp_capacity;
/* The next sizes, with a larger n and a smaller t, that no other sizes of the capacity exceed in both; |*at| is zeros
 * before the first.  What never falls as n or t grows is largest at one of them. */
bool amp_capacity_next(const amp_capacity *capacity, amp_sizes *at);

/* AMP_INVALID_ARGUMENT where t is none of the model's from |least| (0 or 1) to |most|, or it has no T; |call| begins
 * the message. */
amp_status amp_length_check(const amp_model *model, int64_t t, int64_t least, int64_t most, const char *call,
                            amp_error *err);
/* AMP_INVALID_ARGUMENT where a largest n * t, or 0, is none of the model's; |options| begins the message. */
amp_status amp_tokens_check(const amp_model *model, int64_t tokens, const char *options, amp_error *err);
/* AMP_INVALID_ARGUMENT if the |program| of somebody's options is none. */
amp_status amp_program_check(const char *program, amp_error *err);

/* A program for CUDA has other kernels over the same kinds of buffers. */
static inline uint32_t amp_operand_count(const amp_program *p, int32_t kernel) {
    return p->cuda_kernels ? p->cuda_kernels[kernel].operands.count : p->kernels[kernel].operand_count;
}
static inline uint32_t amp_operand_buffer(const amp_program *p, int32_t kernel, uint32_t operand) {
    return p->cuda_kernels ? p->cuda_kernels[kernel].operands.at[operand] : p->kernels[kernel].operands[operand];
}

/* States of one collective are one block of memory, in the order of its message.  Each state's bytes are rounded up to
 * a multiple of 128, or to whole units of shares (messages.h), so nothing is between them but zeros. */
typedef struct amp_state_block {
    int32_t first; /* the state whose memory the block begins with */
    int64_t at;    /* of the state in the block, bytes; of a share less than 0: from where all of it would begin */
    size_t bytes;  /* of the block; 0: it has no memory */
} amp_state_block;

struct amp_model {
    atomic_int references;
    amp_allocator allocator;
    void *library;            /* of dlopen; NULL for a model that is part of the program */
    size_t library_bytes;     /* that it takes; 0 where there is none */
    uint8_t library_hash[32]; /* of the file that it was loaded from, and where that has it */
    size_t library_hash_at;
    amp_model_desc desc;
    amp_model *cuda;  /* the same model for CUDA: states and programs of its own; NULL where it has no such code */
    amp_model *owner; /* of a model for CUDA; NULL for any other */
    const amp_model_cuda_function *functions;
    int32_t function_count;
    int32_t state_count, program_count, decision_count;
    int32_t model_input_count, input_count; /* of the model; and of its train block */
    int32_t all_input_count;                /* and averages, which the program METRICS reads */
    const amp_model_state *states;
    int32_t counters[AMP_COUNTER_STATES_KEPT + 1]; /* what amp_model_counter answers; a step asks for many */
    const amp_model_input *inputs;
    amp_program *programs;
    const amp_model_decision *decisions;
    const amp_model_train *trains;
    const amp_model_group *groups;
    int32_t train_count, group_count;
    /* What ranks exchange in each step, in order; |states| are this model's own. */
    const amp_model_collective *collectives;
    int32_t collective_count;
    amp_state_block *blocks; /* by state; NULL where there are no collectives */
    /* NULL where the model has none.  A model whose steps accumulate has micro_step as train_step, and apply_step. */
    const amp_program *train_step, *apply_step, *eval, *infer, *eval_fp32, *infer_fp32, *figures, *metrics, *refresh,
        *statistics_step;
    int64_t accumulate;     /* micro-batches of a step */
    int64_t batch_multiple; /* every call's n must be a multiple: dimensions N * T / k are exact */
    /* AMP_ISA_*: those that its kernels have functions for. */
    int lowest_isa, largest_isa;
};

/* A call's at least; every call's are multiples of them. */
static inline amp_sizes amp_model_least_sizes(const amp_model *m) {
    return (amp_sizes){m->batch_multiple, m->desc.length_unit};
}

/* A kernel that was not emitted for an instruction set runs as the next lower one. */
static inline amp_kernel_fn amp_kernel_function(const amp_model_kernel *kernel, int isa) {
    while (isa > 0 && !kernel->run[isa]) isa--;
    return kernel->run[isa];
}

enum { AMP_BATCH_LIMIT = 1 << 24 }; /* samples of a call at most: no dimension can overflow */

/* Takes a descriptor that lives, with its tables, as long as the model, and checks it.  |where| names it in errors. */
amp_status amp_model_from_desc(const amp_model_desc *desc, const char *where, const amp_allocator *allocator,
                               amp_model **out, amp_error *err);

/* The model as a device of that type runs it.  AMP_UNSUPPORTED: it has no code for it, and why. */
amp_status amp_model_for(amp_model *model, const char *device, amp_model **out, amp_error *err);

/* Every pointer, index, size and name of the copied tables.  Fills batch_multiple. */
amp_status amp_model_check(amp_model *model, const char *where, amp_error *err);

/* It has the programs of a step. */
bool amp_model_trains(const amp_model *model);
/* It can evaluate in FP32: it was compiled for it, or knows nothing else. */
bool amp_model_has_fp32(const amp_model *model);
/* NULL where the model has none. */
const amp_program *amp_model_program_of(const amp_model *model, uint32_t kind);
bool amp_program_uses_state(const amp_program *program, int32_t state); /* NULL uses none */
/* Index of a state by name, or -1. */
int32_t amp_model_state_index(const amp_model *model, const char *name);
/* Index of the state that is this counter (AMP_COUNTER_*) of all train blocks, or -1. */
int32_t amp_model_counter(const amp_model *model, uint32_t counter);
/* Index of the result of this kind (AMP_RESULT_*) that is no train block's, or -1. */
int32_t amp_program_result(const amp_program *program, uint32_t kind);
static inline bool amp_dim_varies(const amp_model_dim *dim) { return dim->of_n || dim->of_t; }
int64_t amp_model_dim_at(const amp_model_dim *dim, amp_sizes sizes);
int64_t amp_model_state_elements(const amp_model_state *state);

/* ---- measures: what a program measures: results "loss", "loss.NAME" and "metric.NAME" of train_step and eval; and
 * metrics that the program METRICS computes from averages of those --------------------------------------------- */

/* The metrics of the model's evaluation, then the metrics that are computed from averages. */
int32_t amp_metric_count(const amp_model *model);
/* "acc"; NULL past the end. */
const char *amp_metric_name(const amp_model *model, int32_t index);
/* Named losses. */
int32_t amp_loss_count(const amp_model *model);
const char *amp_loss_name(const amp_model *model, int32_t index);
/* "loss", then the named losses, then the metrics. */
int32_t amp_measure_count(const amp_model *model);
/* And the means that FIGURES reads, after them: what an evaluation adds up. */
int32_t amp_summed_count(const amp_model *model);
/* The measure that a result or an input of this name is, or -1. */
int32_t amp_measure_named(const amp_model *model, const char *name);
/* The result of |program| that is this measure, or -1. */
int32_t amp_measure_result(const amp_model *model, const amp_program *program, int32_t measure);
/* Its result COUNT or SUM, or -1. */
int32_t amp_measure_count_result(const amp_model *model, const amp_program *program, uint32_t kind, int32_t measure);

#endif
