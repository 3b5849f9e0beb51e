/* layout.h: how what crosses kernels is stored: what the files of the group share, and what the groups order and launch
 * ask of them.
 *   masters.c, weight_copies.c, pack.c   states, and copies in the form that products read
 *   buffers.c   a buffer for every form in which a value crosses kernels
 *   pitch.c     which of them have longer rows than the value
 *   look.c      what a look at a run finds what is rounded in
 */
#ifndef AMP_PASSES_LAYOUT_LAYOUT_H
#define AMP_PASSES_LAYOUT_LAYOUT_H

#include "base/arena.h"
#include "passes/fuse/kernel_list.h"
#include "passes/passes.h"
#include "targets/target.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pack.c: by value id: whether its kernel makes one number per row or column, or is attention: it cannot store tiles.
 * (Kernels with segments can.)  Unused for a target without tiles. */
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
/* look.c: what a look at a run finds what is rounded to f16 in; make_buffers calls it. */
void add_look_buffers(Func *f);
/* pitch.c: Buffer.pitch of those that make_buffers has made. */
void choose_pitches(Func *f);
/* By value id: its kernel can write it, and all that read it can read it, with rows at any distance. */
bool *values_at_any_pitch(const Func *f);
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
