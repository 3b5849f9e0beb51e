/* simplify.h: rewriting that looks at more than one op and what made its operand. */
#ifndef AMP_PASSES_SIMPLIFY_SIMPLIFY_H
#define AMP_PASSES_SIMPLIFY_SIMPLIFY_H

#include "ir/ir.h"

/* simplify_pool.c */
void simplify_pooled_relus(Func *f);

#endif
