/* origin.h: the first op, input or state that made what is not finite. */
#ifndef AMP_COMPILER_TRACE_ORIGIN_H
#define AMP_COMPILER_TRACE_ORIGIN_H

#include "compiler/trace/values.h"

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

#endif
