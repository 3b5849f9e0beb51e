/* kernel_list.h: a function's kernels as lists of ops, so that a pass can insert and move ops and kernels.
 * Between open and close, the function's body and the first/count of its kernels are out of date. */
#ifndef AMP_PASSES_FUSE_KERNEL_LIST_H
#define AMP_PASSES_FUSE_KERNEL_LIST_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one kernel: the C compiler's time and memory, and fuse's, grow faster than a kernel does.  The kernels of
 * ordinary models have less than 200. */
enum { KERNEL_MAX_OPS = 512 };

typedef struct KernelOps {
    Kernel *kernel;
    VEC(OpId) ops;
} KernelOps;

typedef struct KernelList {
    Func *f;
    VEC(KernelOps) at; /* in order of execution */
} KernelList;

KernelList kernel_list_open(Func *f);
/* A new, empty kernel before position |index|; at.len appends. */
KernelOps *kernel_list_insert(KernelList *l, int index, KernelKind kind, const char *title, Pos pos);
/* A new op with one result like |like| but of dtype |t|, at |position| of a kernel. */
Op *kernel_list_unary(KernelList *l, KernelOps *k, int position, Opcode code, Val in, Dtype t, const char *hint);
/* assign(state, value) if pred, at |position| of a kernel. */
Op *kernel_list_assign(KernelList *l, KernelOps *k, int position, Val state, Val value, Val pred);
/* By value id: the position of the kernel that makes it, -1 for inputs and states. */
int *kernel_list_makers(const KernelList *l);
/* Writes body and kernels back and names the kernels k00, k01, ... */
void kernel_list_close(KernelList *l);

#ifdef __cplusplus
}
#endif

#endif
