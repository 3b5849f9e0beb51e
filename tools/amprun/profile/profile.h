/* profile.h: --profile: a few steps of a training, recorded kernel by kernel, as a table and as a trace. */
#ifndef AMP_TOOLS_AMPRUN_PROFILE_H
#define AMP_TOOLS_AMPRUN_PROFILE_H

#include <stdbool.h>

#include "amp/inspect.h"
#include "tools/amprun/amprun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- peaks.c ----------------------------------------------------------------------------------------------------- */

/* What a machine can do at most, which a profile compares with.
 *
 * On the CPU it is measured, on the threads of the session (amp_cpu_measure).  On CUDA nothing can be measured beside a
 * session, and it is what the table of GPUs (tools/roofline/gpus.c) says.
 */

enum { PEAKS_SOURCE = 256 };

typedef struct Peaks {
    double bytes;                               /* a second, read and written; 0: not known */
    double flops[AMP_INSTRUCTION_MMA_TF32 + 1]; /* a second, by AMP_INSTRUCTION_*; 0: not known */
    char source[PEAKS_SOURCE];                  /* a line for people */
} Peaks;

amp_status peaks_find(const Args *a, Peaks *out, amp_error *err);
/* Of the CPU's products alone, as amp_cpu_measure with |model|.  |source| names the kernels, and the machine's other
 * way to multiply bf16 if it has two. */
amp_status peaks_of_products(const Args *a, const amp_model *model, amp_cpu_rates *out, char source[PEAKS_SOURCE],
                             amp_error *err);

/* ---- kernel_work.c ----------------------------------------------------------------------------------------------- */

/* What a kernel has to move and to compute, from a model's tables.
 *
 * Bytes: each operand once where it is read, and once where it is written, as if nothing stayed in a cache.
 * Operations: on CUDA those that the model's tables state (amp_model_cuda_work).  The CPU's tables state none: there
 * they are those of products and attention, two for each term of a sum, and what is computed element by element is left
 * out.
 */

typedef struct KernelWork {
    double bytes, flops;
    uint32_t instruction; /* AMP_INSTRUCTION_* of its products, as if the CPU had them; PLAIN: it has none */
} KernelWork;

/* Of kernel |index| of |program|, for |n| samples.  |tables|: that the program is of.  |watched|: the session keeps
 * values, so that the kernel writes those, too. */
KernelWork kernel_work_of(const amp_tables *tables, const amp_program *program, int32_t index, amp_sizes sizes,
                          bool watched);

/* Whether the kernel writes this buffer of the program, and does not update it. */
bool kernel_writes(const amp_program *program, int32_t index, uint32_t buffer);

/* ---- recording.c: when each kernel of some steps ran ------------------------------------------------------------- */

/* Times are those of amp_nanoseconds. */
typedef struct RecordedKernel {
    const amp_program *program;
    int32_t index, call; /* of the call that ran it */
    int64_t begin, end;
    KernelWork work;
} RecordedKernel;

typedef struct RecordedCall { /* of amp_step: a step, or one of its micro-batches */
    int64_t iteration;        /* of its step, counted from 1 */
    int32_t micro;            /* from 0 */
    bool skipped;             /* its step was: its updates did not run */
    int64_t samples, begin, end;
} RecordedCall;

typedef struct Recording {
    amp_tables tables; /* for the device */
    amp_model_info model;
    bool watched; /* the session keeps values */
    RecordedKernel *kernel;
    RecordedCall *call;
    int32_t kernels, calls;
    int64_t kernel_room, call_room;
    int32_t steps, step_kernels, step_calls; /* that are complete, with all they have */
    int64_t last_end;                        /* of the kernel before, or of the observer after it */
    bool failed;                             /* memory ran out */
} Recording;

/* The observer of a session whose kernels are recorded; its |user| is the recording. */
amp_status recording_see_kernel(void *recording, const amp_observed_kernel *kernel, amp_error *err);

/* Around a call of amp_step. */
void recording_begin_call(Recording *r, int32_t micro, int64_t samples);
void recording_end_call(Recording *r, const amp_step_report *report);

/* Drops what there is of a step that did not end. */
void recording_keep_steps(Recording *r);

void recording_free(Recording *r);

/* ---- profile.c --------------------------------------------------------------------------------------------------- */

typedef struct Profile {
    const Run *run;
    const char *path;      /* of the trace; NULL: nothing is profiled */
    int64_t first, last;   /* steps of this run, from 1, that are recorded */
    int64_t step;          /* that runs */
    int32_t micro;         /* its micro-batch */
    double plain_seconds;  /* of the quickest step before */
    double began, elapsed; /* of the step that runs */
    Peaks peaks;
    Recording recording;
    bool is_on, is_done, failed;
} Profile;

/* |steps|: of this run.  |watched|: the session keeps values.  Measures the machine.  Reports and returns 1 on
 * failure; in any case profile_close frees everything. */
int profile_open(Profile *p, const Args *a, const Run *run, int64_t steps, bool watched);
void profile_close(Profile *p);

/* Before each call of amp_step, of |samples|; and after it, with its report. */
amp_status profile_before(Profile *p, int64_t samples, amp_error *err);
amp_status profile_after(Profile *p, const amp_step_report *report, amp_error *err);

/* Once the last step is recorded, or |ends|, training: writes the trace and returns the table, which the caller frees;
 * NULL: not yet, or not any more.  A trace that cannot be written is reported; |failed| says it. */
char *profile_finish(Profile *p, bool ends);

/* ---- profile_table.c: where the time of a recording went, by op -------------------------------------------------- */

/* Prints it: kernels of the same title are a row, the longest first.  |plain_seconds|: of the quickest step that was
 * not recorded; 0: there was none.  False: no memory. */
bool profile_table_print(const Recording *r, const Peaks *peaks, double plain_seconds, FILE *to);

/* ---- profile_trace.c: as JSON for ui.perfetto.dev and chrome://tracing, in the trace event format ---------------- */

/* https://perfetto.dev/docs/getting-started/other-formats.  The text by which a trace of amprun is known: the name of
 * its process begins with it (tools/outputs.c). */
#define PROFILE_TRACE_PROCESS "amprun: "

/* Replaces the file |path| as a whole. */
amp_status profile_trace_write(const Recording *r, const char *path, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
