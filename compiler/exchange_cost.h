/* exchange_cost.h: what ranks that train together send in a step, by the function reduce_step. */
#ifndef AMP_COMPILER_EXCHANGE_COST_H
#define AMP_COMPILER_EXCHANGE_COST_H

#include "base/json.h"
#include "ir/ir.h"

typedef struct ExchangeCost {
    int messages;    /* all of them; 0: the model trains alone */
    int gradients;   /* tensors */
    int64_t numbers; /* of gradients */
    Dtype dtype;     /* that they travel in */
} ExchangeCost;

ExchangeCost exchange_cost(const Module *m);
/* Of gradients, in such a type; without padding. */
int64_t exchange_bytes(const ExchangeCost *x, Dtype dtype);

/* |cuda|: the model for CUDA, which has messages of its own; NULL: there is none. */
void exchange_cost_tell(Text *t, const Module *m, const Module *cuda); /* nothing where the model trains alone */
void exchange_cost_put(amp_json_writer *w, const Module *m, const Module *cuda); /* an object "exchange", or null */

#endif
