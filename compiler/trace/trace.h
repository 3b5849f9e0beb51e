/* trace.h: what the files of amp_trace share.
 *   trace.c   the calls
 *   values.c  what the values of a running program held, as an observer saw them
 *   origin.c  the first op, input or state that made what is not finite
 *   fault.c   what an origin is told as: its op, its dtype and why, what it read, and what went wrong there
 */
#ifndef AMP_COMPILER_TRACE_TRACE_H
#define AMP_COMPILER_TRACE_TRACE_H

#include "amp/trace.h"
#include "ir/ir.h"

/* ---- values.c ---------------------------------------------------------------------------------------------------- */

/* Of one function of the module. */
typedef struct TraceValues {
    const Func *f;
    const char *const *names; /* by value: as the model's tables have them */
    Table by_name;            /* names */
    amp_trace_range *range;   /* by value; name NULL: it was not in memory */
    bool *is_written;         /* by value: a kernel of the last run made it */
} TraceValues;

/* In the arena of the module. */
TraceValues trace_values_new(const Func *f);
void trace_values_clear(TraceValues *v);
/* After a kernel: what it wrote, and what it read that was not known.  AMP_OUT_OF_MEMORY; a device's errors. */
amp_status trace_values_note(TraceValues *v, const amp_observed_kernel *kernel, const amp_allocator *allocator,
                             amp_error *err);

bool trace_is_known(const TraceValues *v, Val value);
bool trace_is_finite(const TraceValues *v, Val value); /* of a known one */

/* ---- origin.c ---------------------------------------------------------------------------------------------------- */

typedef struct TraceSearch { /* scratch of one function, in the arena of its module */
    int *place;              /* by op: in the body */
    bool *visited, *passed;  /* by op: its result was looked at; it was passed through on the way from one reader */
    bool *queued;            /* by value: it is, or was, in |pending| */
    Val *pending, *passing;  /* stacks with room for every operand */
} TraceSearch;

TraceSearch trace_search_new(const Func *f);

/* The origin of the loss, gradients and results that are not finite, or of the states that they would leave: the value,
 * an input, a state or the result of an op.  NO_VAL: all are finite. */
Val trace_origin(const TraceValues *v, const TraceSearch *search);
/* Whether the loss, or what a model gives, is computed from |value|. */
bool trace_is_forward(const TraceValues *v, const TraceSearch *search, Val value);

/* ---- fault.c ----------------------------------------------------------------------------------------------------- */

/* The reasons as text, by decision, in the module's arena. */
const char *const *trace_reasons_new(const Module *m);
/* |origin|: of trace_origin, not NO_VAL.  All fields but |program| and |struct_size|. */
void trace_describe(const TraceValues *v, const TraceSearch *search, const char *const *reasons, Val origin,
                    amp_trace_finding *out);
/* The op of the graph that ends with the core op at |place| of the body.  false: none does that was decided, or its
 * result is in no memory. */
bool trace_describe_op(const TraceValues *v, const TraceSearch *search, int place, amp_trace_op *out);

#endif
