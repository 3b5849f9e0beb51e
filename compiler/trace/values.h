/* values.h: what the values of a running program held, as an observer saw them. */
#ifndef AMP_COMPILER_TRACE_VALUES_H
#define AMP_COMPILER_TRACE_VALUES_H

#include "amp/trace.h"
#include "ir/ir.h"

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

#endif
