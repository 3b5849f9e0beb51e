/* plan_check.h: whether kernel IR that was read from a file has the buffers, the lists of reads and writes, the
 * intervals and the copies of weights that its ops need. */
#ifndef AMP_PASSES_LAUNCH_PLAN_CHECK_H
#define AMP_PASSES_LAUNCH_PLAN_CHECK_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or what is wrong, with function, kernel and buffer (in the module's arena).  The module is verified, and at
 * stage buffers or a later one.  Linear in its size. */
const char *plan_check(const Module *m);
/* Of a function at stage plan: whether what shares rows has its own columns of them.  plan_check calls it. */
const char *parts_check(const Func *f);

#ifdef __cplusplus
}
#endif

#endif
