/* kernel_check.h: whether a function's kernels are what docs/design/kernels.md allows, beyond what ir_verify checks. */
#ifndef AMP_PASSES_FUSE_KERNEL_CHECK_H
#define AMP_PASSES_FUSE_KERNEL_CHECK_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or what is wrong, with kernel and op (in the module's arena).  From stage fuse on. */
const char *kernel_check(const Func *f);

#ifdef __cplusplus
}
#endif

#endif
