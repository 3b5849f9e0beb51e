/* launch.h: what the files of the group share. */
#ifndef AMP_PASSES_LAUNCH_LAUNCH_H
#define AMP_PASSES_LAUNCH_LAUNCH_H

#include "passes/layout/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* join.c: whether all kernels of |f| are small enough for one launch. */
bool may_be_joined(const Func *f);
/* parts.c: lets values whose rows are parts of the rows of others have their memory; |named|, by buffer from 1: those
 * that have several names, which are added to. */
void share_rows(Func *f, bool *named);
/* plan.c: when each buffer is live, and which takes the memory of another. */
void plan_buffers(Func *f);

#ifdef __cplusplus
}
#endif

#endif
