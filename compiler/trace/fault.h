/* fault.h: what an origin is told as: its op, its dtype and why, what it read, and what went wrong there. */
#ifndef AMP_COMPILER_TRACE_FAULT_H
#define AMP_COMPILER_TRACE_FAULT_H

#include "compiler/trace/origin.h"

/* The reasons as text, by decision, in the module's arena. */
const char *const *trace_reasons_new(const Module *m);
/* |origin|: of trace_origin, not NO_VAL.  All fields but |program| and |struct_size|. */
void trace_describe(const TraceValues *v, const TraceSearch *search, const char *const *reasons, Val origin,
                    amp_trace_finding *out);
/* The op of the graph that ends with the core op at |place| of the body.  false: none does that was decided, or its
 * result is in no memory. */
bool trace_describe_op(const TraceValues *v, const TraceSearch *search, int place, amp_trace_op *out);

#endif
