/* step_cost.h: what a step of a model costs: kernels, memory, and on a GPU launches, bytes and a modelled time. */
#ifndef AMP_TOOLS_AMPC_STEP_COST_H
#define AMP_TOOLS_AMPC_STEP_COST_H

#include <stdbool.h>

#include "amp/compile.h"
#include "base/json.h"
#include "tools/roofline/gpus.h"

enum { STEP_NAME = 64, STEP_REASON = 512 };

typedef struct StepCost {
    char program
        [STEP_NAME];       /* "train_step"; of a model that accumulates "micro_step", of one without training "infer" */
    int64_t micro_batches; /* of a step, all of which are counted */
    double cpu_kernels;
    double cpu_temporaries;                /* bytes that values of one program take at once, at most */
    char no_cuda[STEP_REASON];             /* why there is nothing to tell of a GPU; "": there is */
    double launches;                       /* on a GPU */
    double temporaries, bytes;             /* of device memory; that kernels read and write, each operand once */
    char no_time[STEP_REASON];             /* why the GPU's time is not known; "": it is, and so are the bytes */
    double microseconds, microseconds_f32; /* in the types that it has, and as if in f32 */
} StepCost;

/* Compiles the model of |options| for one instruction set and loads it; a model.so is loaded as it is, which runs its
 * initialisers.  For |batch| samples a call.  AMP_INVALID_ARGUMENT: the model does not take that batch; else the errors
 * of amp_compile and amp_model_load. */
amp_status step_cost(const amp_compile_options *options, const Gpu *gpu, int64_t batch, StepCost *out, amp_error *err);

/* Whether it is a model.so, of which costs are known without a C compiler. */
bool step_is_compiled(const amp_compile_options *options);

/* The modelled time of each kernel of a step, as one object: the part "times" of a report (docs/explain.md). */
amp_status step_put_times(amp_json_writer *w, const amp_compile_options *options, const Gpu *gpu, int64_t batch,
                          amp_error *err);

/* ---- step_report.c: what a step costs on both sides of a comparison, for people and for tools -------------------- */

typedef struct StepPair {
    const Gpu *gpu;
    int64_t batch;
    StepCost before, after;
    amp_error missing; /* why steps are not compared; an empty message: they are */
} StepPair;

void step_report_print(const StepPair *p); /* to standard output */
void step_report_put(amp_json_writer *w, const char *key, const StepPair *p);

#endif
