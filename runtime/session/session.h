/* session.h: what a session holds.
 *
 * Where states are, by state of the session's model:
 *
 *                  on the host's memory              with device memory
 *   states.held    the session's own states;         the same in |device_arena|; NULL for scalars too, which are in
 *                  NULL for the params' own          the readback's block or in the header of the inputs
 *   states.bound   held, or the params' own          all of them on the device: what programs read and write
 *   states.host    held                              scalars alone: in the readback's copies on the host
 *
 * Scalars on their way, with device memory (amp_session_readback):
 *
 *   host                                   device
 *   readback->host   <- start_readback -   readback->block:  counters, scaler | scalar results | (not copied) flags
 *   readback->header -- with inputs ---->  header of inputs: "micro", "seed"
 */
#ifndef AMP_RUNTIME_SESSION_SESSION_H
#define AMP_RUNTIME_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "runtime/device/device.h"
#include "runtime/memory/bound_program.h"
#include "runtime/memory/device_memory.h"
#include "runtime/params/params.h"
#include "runtime/ranks/ranks.h"

/* ---- what is read back ------------------------------------------------------------------------------------------- */

/* The numbers that the host reads after a run: losses, metrics, counters, the loss scaler.
 *
 * On the host's memory they are read where they are.  In device memory they are together in one block, each on
 * AMP_DEVICE_MEMORY_ALIGN bytes: counters and scaler first, then each program's scalar results, then flags.  A run that
 * somebody may ask about is followed by one copy of the block (amp_session_start_readback), without the flags of
 * programs that have none among their results; what has arrived is taken in when it is asked for
 * (amp_session_settle), oldest first, so that a step need not wait. */

typedef struct amp_readback_run { /* a run whose scalars were, or will be, copied */
    bool step;                    /* a call of amp_step */
    int64_t micro;                /* which micro-batch of it */
    bool complete;                /* it ended the step */
    bool too_few;                 /* a batch of the step had fewer samples than least_batch */
    amp_sizes sizes;              /* where its inputs were in device memory; else 0 */
    bool reported;                /* to the caller of amp_step, who waits: its report is not kept */
    bool finishes;                /* no step: metrics of averages, of the report that is kept of call |call| */
    int64_t call;
} amp_readback_run;

/* Reports of calls of amp_step that had none, for amp_session_next_report.  Calls are numbered from 0; the report of
 * call i is at i % AMP_KEPT_REPORTS.  given <= finished <= finishing <= arrived <= made where there are metrics of
 * averages and somebody asks for metrics; else |finishing| and |finished| stay as they are. */
typedef struct amp_kept_report {
    amp_step_report report;
    float scale; /* after it */
    int32_t floor_hits;
    double *losses, *metrics; /* metrics of averages: once they are finished */
} amp_kept_report;

typedef struct amp_kept_reports {
    amp_kept_report calls[AMP_KEPT_REPORTS];
    double *numbers;   /* that |losses| and |metrics| are in */
    int64_t made;      /* calls that were started */
    int64_t arrived;   /* whose scalars were taken in */
    int64_t finishing; /* whose metrics of averages were started */
    int64_t finished;  /* and have arrived */
    int64_t given;     /* that were given to the caller, or dropped */
} amp_kept_reports;

typedef struct amp_measured { /* of runs whose scalars have arrived */
    double *figures;     /* by measure of the model: of the last step or, until it is complete, its last micro-batch */
    double *losses;      /* named ones of the last step or evaluation */
    float *averages;     /* by input of the model: what the programs "figures" and "metrics" read */
    double *sums;        /* of the evaluation under way: what amp_eval_get_sums gives (evaluation.c) */
    double *work;        /* by measure and mean of the model */
    float used_scale;    /* by the last call of amp_step that is known of */
    int64_t *first_kept; /* by state of the model: kept_states.c; 0: none */
    int32_t states_kept; /* in the last step, */
    bool too_few;        /* for too few samples; */
    bool said_too_few;   /* in any */
} amp_measured;

typedef struct amp_session_readback {
    amp_measured measured;
    amp_kept_reports kept;
    /* Zeros on the host's memory: */
    char *block;                            /* on the device */
    char *host;                             /* the copy that was taken in last; then the header */
    size_t bytes, state_bytes, block_bytes; /* copied; of them states; of the whole block */
    char *header; /* counters that the host writes, "micro" and "seed": they go with the inputs of a run */
    size_t header_bytes;
    amp_readback_run pending[AMP_READBACKS]; /* oldest first */
    int pending_count;
    bool half; /* the run that updates states has begun, and its step is not complete */
    /* With inputs in device memory: */
    size_t faults_at; /* in the block: an amp_index_fault for each input of the model */
    struct {
        amp_index_fault first; /* 0: none, or its call has told of it */
        int32_t input;
        amp_sizes sizes;
    } fault;
} amp_session_readback;

/* ---- the session ------------------------------------------------------------------------------------------------- */

typedef struct amp_value { /* of a training step, kept to be read */
    const char *name;
    int32_t buffer, result; /* of |in|; |result| -1 where the value is none */
    const amp_bound_program *in;
} amp_value;

/* The programs of a session, bound or not. */
enum {
    AMP_RUN_TRAIN_STEP, /* or micro_step: what runs the model */
    AMP_RUN_APPLY_STEP, /* what ends a step of several micro-batches */
    AMP_RUN_EVAL,       /* or its FP32 form */
    AMP_RUN_INFER,      /* or its FP32 form */
    AMP_RUN_FIGURES,
    AMP_RUN_METRICS,
    AMP_RUN_REFRESH,
    AMP_RUN_STATISTICS, /* after micro-batches: what they make of buffers */
    AMP_SESSION_PROGRAMS
};

enum { AMP_LOOKS_SAID = 8 };            /* ops that a session names */
typedef struct amp_looking amp_looking; /* look.c */

/* Of the program infer, whose results need not all be wanted: session_run.c. */
typedef struct amp_selection {
    uint8_t *wanted; /* by result, as the last call had them */
    uint8_t *needed; /* by kernel: for these results */
    uint8_t *live;   /* by buffer: a kernel that is needed, or the caller, reads it */
    uint64_t hash;   /* of |needed|; 0: all results are wanted */
    void **instead;  /* by result: memory for one that is not wanted, but computed all the same; NULL: none yet */
    size_t *bytes;   /* of it */
} amp_selection;

struct amp_session {
    atomic_int references;
    bool training;
    bool sizes_only;            /* has no memory of states, temporaries and results: amp_session_plan */
    bool keeps_gradients;       /* they are readable after a step */
    amp_input_memory inputs_in; /* callers' arrays */
    amp_sizes capacity;
    int64_t tokens;   /* n * t of a call at most; 0: any */
    amp_model *model; /* as the device runs it: amp_model_for */
    amp_params *params;
    amp_params_user params_user; /* of |params| */
    bool published;              /* reads versions: */
    amp_params_version *version; /* that programs are bound to */
    amp_device *device;
    char choices[AMP_CHOICES_NAME]; /* of products, when it was made, on which bits depend; "": none */
    amp_log log;
    amp_observer observer; /* |kernel| NULL: none */
    struct {
        bool at_all;
        int64_t runs[AMP_SESSION_PROGRAMS];
        amp_looking *now;                         /* the run is looked at; NULL: it is not */
        int32_t said[AMP_LOOKS_SAID], said_count; /* decisions of ops that were named */
    } look;
    amp_counted_allocator memory; /* everything below comes from it */
    amp_session_states states;
    amp_bound_program programs[AMP_SESSION_PROGRAMS];
    struct {
        char *memory;
        size_t bytes;
    } arena; /* that the programs use in turn */
    amp_device_arena device_arena;
    amp_session_readback *readback; /* apart, because what arrives is no part of what callers see as const */
    struct {
        amp_sizes last; /* of the last step; 0: no step yet */
        int64_t micro;  /* micro-batches that were run of a step that is not complete */
        bool too_few;   /* one of them, or of the last step, had fewer samples than least_batch */
    } step;
    amp_micro_batches batches; /* the ones that statistics_step runs for */
    amp_ranks *ranks;          /* it trains with, apart as |readback|; NULL: it trains alone */
    struct {
        amp_value *list; /* by name; NULL: the session keeps none */
        int32_t count;
    } values;
    amp_selection selection;
};

/* Its device has device memory: session_device_memory.c. */
bool amp_session_has_device_memory(const amp_session *session);
/* The session's own state, not one of the params. */
bool amp_session_holds(const amp_session *session, int32_t state);

/* Pointers to scalar states on the host (after amp_session_settle), NULL where the model or the session has none. */
float *amp_session_scale(const amp_session *session);
int32_t *amp_session_growth_tracker(const amp_session *session);
int32_t *amp_session_floor_hits(const amp_session *session);
int64_t *amp_session_step(const amp_session *session);
int64_t *amp_session_iteration(const amp_session *session);
int64_t *amp_session_seed(const amp_session *session);
int64_t *amp_session_micro(const amp_session *session);

/* A learning rate, or a group's factor, that was set or loaded: a step computes with it as an f32. */
static inline bool amp_rate_is_usable(double rate) { return rate >= 0 && (float)rate <= 0x1.fffffep127f; }
#define AMP_RATE_RANGE "it must be at least 0, and finite as an f32: at most 3.4e38"

/* A counter of steps that was set or loaded: what is computed with it in doubles is exact, and adding to it and
 * multiplying it by micro-batches stays far from overflow. */
static inline bool amp_count_is_usable(int64_t count) { return count >= 0 && count <= (int64_t)1 << 53; }
/* The same of the scaler's, which are 32 bits wide. */
static inline bool amp_short_count_is_usable(int32_t count) { return count >= 0 && count <= 1 << 30; }

/* AMP_WRONG_STATE where the session does not train; |call| is the function's name. */
amp_status amp_session_check_training(const amp_session *session, const char *call, amp_error *err);

/* The one that ends a step: it has the gradients, "ok" and the norm. */
const amp_bound_program *amp_session_last_program(const amp_session *session);

/* What the session is at from now on: ranks that wait for this one are told. */
void amp_session_does(const amp_session *session, amp_rank_does what);
/* The number of this rank's first micro-batch among all ranks' micro-batches of a step. */
static inline int64_t amp_session_first_micro(const amp_session *s) {
    return s->ranks ? s->ranks->comm->rank * s->model->accumulate : 0;
}

/* ---- session_run.c ----------------------------------------------------------------------------------------------- */

/* By the device: of amp_readback_run. */
static inline amp_sizes amp_session_sizes_to_check(const amp_session *s, amp_sizes sizes) {
    return s->inputs_in == AMP_INPUTS_DEVICE ? sizes : (amp_sizes){0};
}

amp_status amp_session_make_selection(amp_session *session, amp_error *err);
void amp_session_free_selection(amp_session *session);
/* Runs a bound program. */
amp_status amp_session_run_bound(const amp_session *session, const amp_bound_program *bound, amp_sizes sizes,
                                 amp_error *err);
/* Whether a call may have these. */
amp_status amp_session_check_sizes(const amp_session *session, amp_sizes sizes, amp_error *err);
/* When the session is made, after its ranks have met: fills |choices|. */
amp_status amp_session_agree_on_choices(amp_session *session, amp_error *err);
/* Recomputes derived states where params were set. */
amp_status amp_session_refresh(amp_session *session, amp_error *err);
/* Checks the sizes and the inputs that the program reads; refreshes derived states or takes the newest version; runs.
 */
amp_status amp_session_run(amp_session *session, amp_bound_program *bound, const void *const *inputs, amp_sizes sizes,
                           amp_error *err);

/* ---- session_step.c ---------------------------------------------------------------------------------------------- */

/* After a step, or when states were loaded. */
void amp_session_is_whole(amp_session *session);

/* ---- look.c ------------------------------------------------------------------------------------------------------ */

/* Before and after a run: where it is one of those that are looked at. */
void amp_session_begin_look(amp_session *session, amp_bound_program *bound, amp_sizes sizes);
void amp_session_end_look(amp_session *session, amp_sizes sizes, amp_status status);
/* What kernels of |bound| count in, on a device; before the first run. */
amp_status amp_session_make_looks(const amp_session *session, const amp_bound_program *bound, amp_error *err);
/* Whether this run is looked at after each of its kernels: on the host.  A device counts meanwhile. */
bool amp_session_looks_at_kernels(const amp_session *session);
/* After a kernel of such a run. */
void amp_session_look(const amp_session *session, const amp_bound_program *bound, int32_t kernel, amp_sizes sizes);

/* ---- step_report.c ----------------------------------------------------------------------------------------------- */

/* Train blocks that the last step did not update, because a gradient of theirs was not finite. */
int32_t amp_session_skipped_blocks(const amp_session *session);
/* No train block was updated. */
bool amp_session_skips_all(const amp_session *session);
/* Of a complete step whose scalars have arrived: kept_states.c. */
void amp_session_note_kept(const amp_session *session, bool too_few);
/* Where iterations begin again at others. */
void amp_session_forget_kept(const amp_session *session);
/* Of the step whose scalars were taken in last; |complete|: that call ended it. */
void amp_session_fill_report(const amp_session *session, bool complete, amp_step_report *report);
/* AMP_SCALE_AT_FLOOR, with its message: after |iteration| steps, at |scale|. */
amp_status amp_session_at_floor(const amp_session *session, int64_t iteration, float scale, int32_t hits,
                                amp_error *err);
/* The same of the step whose scalars were taken in last, where it is. */
amp_status amp_session_check_floor(const amp_session *session, amp_error *err);

/* ---- device_inputs.c --------------------------------------------------------------------------------------------- */

/* An index of an input that is out of range, wherever it was found. */
amp_status amp_session_bad_index(const amp_model_input *input, int64_t sample, int32_t index, amp_error *err);

/* Where the arrays are that the run of |bound| reads. */
amp_input_memory amp_session_inputs_of(const amp_session *session, const amp_bound_program *bound);
/* The array of a buffer that is an input is in the memory that the session's options name. */
amp_status amp_session_check_memory(const amp_session *session, const amp_model_buffer *buffer, const void *array,
                                    amp_sizes sizes, amp_error *err);
/* Keeps the first index that was out of range in a run that was taken in, ... */
void amp_session_note_fault(const amp_session *session, const amp_readback_run *run);
/* ... and reports it, once. */
amp_status amp_session_tell_fault(const amp_session *session, amp_error *err);

/* ---- observe.c --------------------------------------------------------------------------------------------------- */

typedef struct amp_observed_run {
    const amp_session *session;
    const amp_bound_program *bound;
    amp_sizes sizes;
} amp_observed_run;

/* After a kernel of |watcher|, an amp_observed_run: looks at what it has rounded, and calls the session's observer. */
amp_status amp_session_observe_kernel(const void *watcher, int32_t kernel, amp_error *err);

/* Starts to count; |name| is for errors (amp/observe.h, count_numbers). */
amp_status amp_session_count(const amp_session *session, const char *name, const amp_counted *what, amp_number_bins *to,
                             amp_error *err);

/* ---- published_session.c ---------------------------------------------------------------------------------------- */

/* A session of |model| that reads versions can be made: AMP_WRONG_STATE before the first; AMP_UNSUPPORTED on such a
 * device, and if they lack what the model reads. */
amp_status amp_session_check_published(const amp_params *params, const amp_model *model, const amp_device_type *type,
                                       amp_error *err);
/* Binds the newest version. */
void amp_session_read_newest(amp_session *session);

/* ---- session_results.c ------------------------------------------------------------------------------------------- */

amp_status amp_session_list_values(amp_session *session, amp_error *err);
void amp_session_free_values(amp_session *session);

amp_status amp_session_make_readback(amp_session *session, amp_error *err);
void amp_session_free_readback(amp_session *session);

/* After a run; on the host's memory it is taken in at once. */
amp_status amp_session_start_readback(const amp_session *session, const amp_readback_run *run, amp_error *err);
/* Takes in what has arrived; |wait|: everything. */
amp_status amp_session_settle(const amp_session *session, bool wait, amp_error *err);
/* Waits for the oldest copy that is under way, and takes it in. */
amp_status amp_session_take_in_oldest(const amp_session *session, amp_error *err);
/* Starts to compute the metrics of averages of call |call|, whose report is kept with the averages themselves. */
amp_status amp_session_start_metrics(const amp_session *session, int64_t call, amp_error *err);
/* Runs FIGURES or METRICS, and puts what it computes into |figures|, by measure and mean of the model. */
amp_status amp_session_compute_figures(const amp_session *session, int program, double *figures, amp_error *err);
/* Doubles of an evaluation: samples, then the sum and the count of each measure and mean. */
size_t amp_session_sums_count(const amp_session *session);
/* Counters or the scaler were changed on the host (settle before): the device gets them. */
amp_status amp_session_write_scalars(const amp_session *session, amp_error *err);

/* ---- session_create.c -------------------------------------------------------------------------------------------- */

/* The device with the name |name|, which NULL leaves at "cpu"; AMP_NOT_FOUND: this build has none. */
amp_status amp_device_type_find(const char *name, const amp_device_type **out, amp_error *err);

/* ---- computed_norm.c --------------------------------------------------------------------------------------------- */

/* The norm of all gradients, as the program that ends a step left it; NaN where the model computes none. */
double amp_computed_norm(const amp_model *model, const amp_bound_program *last);
bool amp_computes_norm(const amp_model *model, const amp_program *last);

/* ---- session_device_memory.c ------------------------------------------------------------------------------------- */

/* Places states, scalars and every buffer of the planned programs, and gives the session's states their first values.
 */
amp_status amp_session_make_device_memory(amp_session *session, uint64_t seed, bool separate, amp_error *err);

/* ---- session_states.c -------------------------------------------------------------------------------------------- */

/* Row-major f32 of a state that is no scalar, wherever it is. */
amp_status amp_session_get_state(const amp_session *session, int32_t state, float *to, amp_error *err);
amp_status amp_session_set_state(amp_session *session, int32_t state, const float *from, amp_error *err);

/* By state of the session's model, on the host: on the host's memory the states themselves, else copies, which |read|
 * fills. */
amp_status amp_session_host_states(const amp_session *session, bool read, void ***out, amp_error *err);
/* Copies back what |states| (of amp_session_host_states) have now. */
amp_status amp_session_take_states(amp_session *session, void *const *states, amp_error *err);
void amp_session_drop_host_states(const amp_session *session, void **states);
/* What ranks change of them: amp_ranked_session. */
amp_status amp_session_change_states(amp_session *session, amp_states_change *change, void *user, amp_error *err);

/* ---- read_buffer.c ----------------------------------------------------------------------------------------------- */

/* A buffer of the last run with |n|, row-major, as amp_readable_dtype. */
amp_status amp_session_read_buffer(const amp_session *session, const amp_bound_program *bound, int32_t buffer,
                                   amp_sizes sizes, void *to, amp_error *err);

#endif
