/* cpu_kernel.h: what the files that write one CPU kernel share.
 *   cpu_kernel.c    its loops, and the CPU's spelling (codegen/emit.h) of what they hold
 *   cpu_scatter.c   what writes rows of a table
 *   cpu_sums.c      products that are added up as on a device
 *   cpu_memory.c    loads and stores of each layout; rows, pixels and elements of operands
 */
#ifndef AMP_CODEGEN_CPU_CPU_KERNEL_H
#define AMP_CODEGEN_CPU_CPU_KERNEL_H

#include "codegen/cpu/cpu.h"
#include "codegen/indirect.h"
#include "codegen/loop_nest.h"

typedef struct CpuKernel {
    Emitter e;
    Walk *w;
    bool padded;   /* the last panel has columns past the edge */
    Shape stepped; /* rank 0: none; else s0, s1, .. are the coordinates of the row along its leading dimensions */
} CpuKernel;

/* ---- cpu_sums.c -------------------------------------------------------------------------------------------------- */

/* Makes the tile's sums, where the kernel has a product that is added up as on a device. */
amp_status cpu_declare_sums(CpuKernel *ck);

/* ---- cpu_scatter.c ----------------------------------------------------------------------------------------------- */

amp_status cpu_emit_scatter(CpuKernel *ck);

/* ---- cpu_memory.c ------------------------------------------------------------------------------------------------ */

typedef struct LayoutText {
    const char *offset;          /* of the kernel's first row and column, full values */
    const char *tile;            /* of column c's tile, from there, in a row kernel */
    const char *write, *scatter; /* functions of prelude/tiles.h; NULL: plain loads and stores */
} LayoutText;

const LayoutText *cpu_layout_of(const Walk *w, int operand);
/* Where the pointer of an operand starts that is read or written as |span|. */
const char *cpu_offset(const Walk *w, int operand, Span span);
/* What declares T beside n; "" in a model without it, whose kernels keep their text. */
static inline const char *cpu_length(const Walk *w) { return w->f->module->length.most ? "t = a->t, " : ""; }
void cpu_clear_past_last_segment(CpuKernel *ck, const Sink *s);
amp_status cpu_load(CpuKernel *ck, Val v);
amp_status cpu_store(CpuKernel *ck, const Sink *s);

/* Pointers to the beginning of what is read from memory. */
void cpu_declare_memory(CpuKernel *ck);
/* The element in this row and column of an operand; W columns from there on. */
const char *cpu_element_at(const Emitter *e, const Memory *m, const char *row, const char *column);
const char *cpu_vector_at(const Emitter *e, const Memory *m, const char *row, const char *column);
void cpu_choose_memory(Emitter *e, const Memory *m, const char *number);
amp_status cpu_put_coordinates(Emitter *e, const Op *o);
/* The shape whose coordinates most of what is read from memory needs; rank 0: none. */
Shape cpu_stepped_shape(const CpuKernel *ck);
/* s0, s1, ..: of row |row|; of the next one. */
void cpu_put_steps(CpuKernel *ck, const char *row);
void cpu_step_coordinates(CpuKernel *ck);

#endif
