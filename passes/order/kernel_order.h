/* kernel_order.h: the order of a function's kernels while a pass moves and merges them: gather.c, merge_columns.c.
 * Kernels keep the numbers that they had when it was opened; what they read and write must be known. */
#ifndef AMP_PASSES_ORDER_KERNEL_ORDER_H
#define AMP_PASSES_ORDER_KERNEL_ORDER_H

#include "ir/places.h"
#include "passes/fuse/kernel_list.h"
#include "passes/layout/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what all passes of the group share -------------------------------------------------------------------------- */

/* A pass over all functions but exchanges: where |order| has changed the kernels, their buffers are made again. */
bool order_kernels(PassContext *c, bool (*order)(Func *f));
/* By buffer, from 1: its bytes at an assumed batch, where it is a temporary; else 0. */
int64_t *measure_buffers(const Func *f);
/* Whether an op of |k| has an operand that the kernel |maker| makes, if only for its shape. */
bool names_value_of(const Func *f, const int *makers, const KernelOps *k, int maker);
/* gather.c: by kernel: whether neither neighbour does the same for other values, so that it would have a launch of its
 * own. */
bool *kernels_alone(const Func *f);

/* ---- kernels that move ------------------------------------------------------------------------------------------- */

typedef struct KernelOrder {
    KernelList list; /* by number: the ops of kernels */
    int first, last;
    int *next, *before;   /* by number; -1: none */
    const int64_t *bytes; /* by buffer: of a temporary; else 0 */
    int *last_reader;     /* by buffer: a kernel */
    int *maker;           /* by value id: a kernel; -1: none */
    int64_t most_kept;    /* bytes that may live longer because kernels move */
    int64_t *live;        /* by number: bytes of temporaries while it runs, at most */
    int64_t peak;         /* the most of them before any kernel moved; 0: none may be kept beside them */
    bool changed;
} KernelOrder;

KernelOrder kernel_order_open(Func *f);
const Kernel *kernel_order_at(const KernelOrder *o, int kernel);
/* The neighbour of |kernel| on the way up, or down. */
int kernel_order_toward(const KernelOrder *o, int kernel, bool up);
/* Whether |kernel| may move up to just after |end|, or down to just before it: it and the kernels that it passes do not
 * need each other.  |end| itself is not checked. */
bool kernel_order_may_move(const KernelOrder *o, int kernel, int end, bool up);
/* Bytes that live longer if |kernel| moves up to |end|, or down. */
int64_t kernel_order_keeps(const KernelOrder *o, int kernel, int end, bool up);
/* Bytes that may live longer from |kernel| to |end| without more memory at the peak. */
int64_t kernel_order_room(const KernelOrder *o, int kernel, int end, bool up);
void kernel_order_move(KernelOrder *o, int kernel, int end, bool up);
/* Appends the ops of |next|, which follows |kernel|, to |kernel|. */
void kernel_order_merge(KernelOrder *o, int kernel, int next);
/* Writes the order back, if it was changed.  Returns whether it was. */
bool kernel_order_close(KernelOrder *o);

#ifdef __cplusplus
}
#endif

#endif
