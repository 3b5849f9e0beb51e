/* layout.h: what the files of the layout pass share.
 *   layout.c          the pass: masters, packing copies, then the two below
 *   weight_copies.c   copies of weights in the form that products read, written by the optimizer
 *   plan.c            a buffer for every form in which a value crosses kernels
 *   pitch.c           which of them have longer rows than the value
 *   parts.c           and which are parts of the rows of others
 *   joined.c          which functions are one launch
 *   postpone.c, sequence.c, merge_columns.c, gather.c, merge_scalars.c
 *                     the order of kernels, and which become one
 *   bucket_order.c    which gradients ranks send together, in that order
 */
#ifndef AMP_PASSES_KERNELS_LAYOUT_H
#define AMP_PASSES_KERNELS_LAYOUT_H

#include "base/arena.h"
#include "passes/kernels/kernel_list.h"
#include "targets/target.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weight_copies.c -------------------------------------------------------------------------------------------- */

/* Rewrites every read of a rounded or repacked weight to a derived state; |lists| are the open kernel lists of all
 * functions.  Adds the function "refresh". */
void derive_weight_copies(Module *m, KernelList *lists);

/* ---- plan.c ----------------------------------------------------------------------------------------------------- */

bool form_equal(Form a, Form b);
/* The element type in memory of a value that no product reads: tf32 is stored as f32. */
Dtype plain_storage(Dtype t);
/* More than one row and more than one column. */
bool is_matrix(const Shape *s);

/* From names of the module's states to their 1-based indexes (uint32_t). */
Table number_states(const Module *m);
/* Fills Func.buffers and the reads and writes of its kernels. */
void make_buffers(Func *f, const Table *state_numbers, bool panels);
/* look.c: what a look at a run finds what is rounded to f16 in; make_buffers calls it. */
void add_look_buffers(Func *f);
/* pitch.c: Buffer.pitch of those that make_buffers has made. */
void choose_pitches(Func *f);
/* By value id: its kernel can write it, and all that read it can read it, with rows at any distance. */
bool *values_at_any_pitch(const Func *f);
/* parts.c: lets values whose rows are parts of the rows of others have their memory; |named|, by buffer from 1: those
 * that have several names, which are added to. */
void share_rows(Func *f, bool *named);
/* joined.c: whether all kernels of |f| are small enough for one launch. */
bool may_be_joined(const Func *f);
/* When each buffer is live, and which takes the memory of another. */
void plan_buffers(Func *f);
/* postpone.c: lets kernels wait that read no temporary.  True: some have, and the buffers are to be made again. */
bool postpone_kernels(Func *f);
/* sequence.c: puts neighbouring kernels into the order that needs less memory.  True: some have changed places, and the
 * buffers are to be made again. */
bool sequence_kernels(Func *f);
/* By buffer, from 1: its bytes at an assumed batch, where it is a temporary; else 0. */
int64_t *measure_buffers(const Func *f);
/* Whether kernel |k| reads, writes, or is skipped by what |by| writes. */
bool kernel_touches(const Func *f, const Kernel *by, const Kernel *k);
/* merge_columns.c: makes one of column kernels that share an operand, or of which one needs the other; |any|: of any
 * that would have a launch each.  True: the same. */
bool merge_columns(Func *f, bool any);
/* gather.c: puts kernels that may share a launch side by side.  True: the same. */
bool gather_kernels(Func *f);
/* The same of sums of columns, and of sums of parts.  True: the same. */
bool gather_sums(Func *f);
/* The same: products that add to what an equal one has made stand behind it (codegen/cuda/kernel_chain.c). */
bool gather_chains(Func *f);
/* What a kernel does, but for which values: kernels of one signature are gathered.  NULL: it shares no launch. */
const char *kernel_signature(const Func *f, const Kernel *k);
/* By kernel: whether neither neighbour has its signature, so that it would have a launch of its own. */
bool *kernels_alone(const Func *f);
/* merge_scalars.c: makes one of scalar kernels that follow one another.  True: the same. */
bool merge_scalars(Func *f);
/* bucket_order.c: fills the buckets of reduce_step anew, in the order of micro_step's kernels, where the target asks
 * for it; buffers of reduce_step are made after it. */
void order_buckets(Module *m);
/* By value id: the index of the kernel that makes it, -1 for inputs and states. */
int *kernel_makers(const Func *f);
/* The form in which the runtime reads operand |n| of a product or of attention; false: it is none that has one. */
bool reads_form(const Func *f, const Op *o, int n, Form *form);
/* What is in memory of the operand |v| of the product or attention of kernel |kernel|: itself, or what its kernel reads
 * at strides. */
Val product_source(const Func *f, Val v, const int *maker, int kernel);

#ifdef __cplusplus
}
#endif

#endif
