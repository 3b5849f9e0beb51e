/* layout.h: what passes share that decide how values are stored and in which order kernels run.
 *   masters.c, weight_copies.c, pack.c   states, and copies in the form that products read
 *   buffers.c         a buffer for every form in which a value crosses kernels
 *   pitch.c           which of them have longer rows than the value
 *   postpone.c, sequence.c, merge_columns.c, gather.c, merge_scalars.c
 *                     the order of kernels, and which become one
 *   bucket_order.c    which gradients ranks send together, in that order
 *   joined.c          which functions are one launch
 *   plan.c, parts.c   which buffers have the memory of another, or are parts of its rows
 */
#ifndef AMP_PASSES_KERNELS_LAYOUT_H
#define AMP_PASSES_KERNELS_LAYOUT_H

#include "base/arena.h"
#include "passes/kernels/kernel_list.h"
#include "passes/passes.h"
#include "targets/target.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pack.c: by value id: whether its kernel makes one number per row or column, or is attention: it cannot store tiles.
 * (Kernels with segments can.)  Of a target without tiles nobody asks. */
bool *find_lines(const KernelList *l);

/* ---- buffers.c -------------------------------------------------------------------------------------------------- */

bool form_equal(Form a, Form b);
/* The element type in memory of a value that no product reads: tf32 is stored as f32. */
Dtype plain_storage(Dtype t);
/* More than one row and more than one column. */
bool is_matrix(const Shape *s);

/* From names of the module's states to their 1-based indexes (uint32_t). */
Table number_states(const Module *m);
/* Fills Func.buffers and the reads and writes of its kernels anew. */
void make_buffers(Func *f, const Table *state_numbers);
/* A pass over all functions but exchanges: where |order| has changed the kernels, their buffers are made again. */
bool order_kernels(PassContext *c, bool (*order)(Func *f));
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
/* By buffer, from 1: its bytes at an assumed batch, where it is a temporary; else 0. */
int64_t *measure_buffers(const Func *f);
/* Whether kernel |k| reads, writes, or is skipped by what |by| writes. */
bool kernel_touches(const Func *f, const Kernel *by, const Kernel *k);
/* ---- gather.c ---------------------------------------------------------------------------------------------------- */

/* What a kernel does, but for which values: kernels of one signature are gathered.  NULL: it shares no launch. */
const char *kernel_signature(const Func *f, const Kernel *k);
/* By kernel: whether neither neighbour has its signature, so that it would have a launch of its own. */
bool *kernels_alone(const Func *f);
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
