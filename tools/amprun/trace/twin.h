/* twin.h: the model of a training, compiled again so that every value of a step can be looked at. */
#ifndef AMP_TOOLS_AMPRUN_TRACE_TWIN_H
#define AMP_TOOLS_AMPRUN_TRACE_TWIN_H

#include "amp/trace.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/trace/batches.h"

typedef struct TwinSource { /* of what, and where it runs */
    const Args *args;
    const char *bytes; /* of the model.so */
    size_t size;
    int64_t capacity;
    uint64_t seed;
} TwinSource;

typedef struct TwinForm {
    const char *policy; /* NULL: the model's */
    const amp_override *overrides;
    size_t override_count;
} TwinForm;

typedef struct Twin {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_trace *trace;
} Twin;

/* In either case twin_close frees everything. */
amp_status twin_open(Twin *twin, const TwinSource *source, const TwinForm *form, amp_error *err);
void twin_close(Twin *twin);

/* What a step left. */
typedef struct TwinStep {
    amp_trace_finding finding;
    amp_step_report report;
    int micro; /* the micro-batch in which it was found */
} TwinStep;

/* Where a step begins. */
typedef struct TwinState {
    const char *checkpoint; /* a file: everything, for a twin whose states are the model's */
    const char *params;  /* a file: parameters and buffers, for a twin of another policy, whose scaler may be another;
                               the moments come after the gradients and are left out */
    amp_scaler_state at; /* steps and iterations so far, for those */
    double scale;        /* of the loss; 0: that of the checkpoint */
} TwinState;

amp_status twin_step(Twin *twin, const TwinState *state, const StepBatch *batch, TwinStep *out, amp_error *err);

#endif
