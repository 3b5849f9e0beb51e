/* call.h: what a call of the compiler runs in: enough stack, and the default floating-point environment. */
#ifndef AMP_COMPILER_CALL_H
#define AMP_COMPILER_CALL_H

#include "amp/base.h"

typedef amp_status (*CompilerCall)(void *ctx, amp_error *err);

/* call(ctx, err): on the caller's stack where 2 MiB of it are left, else on a thread made for it, while the caller
 * waits.  Blocks within blocks, and expressions, are walked by recursion, whose depth the language limits; threads have
 * as little stack as 128 KiB (musl's default). */
amp_status compiler_call(CompilerCall call, void *ctx, amp_error *err);

#endif
