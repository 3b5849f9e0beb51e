/* kernel.h: what the files that write one CPU kernel share.
 *   kernel.c            its loops, and what stands where in them
 *   memory.c            loads and stores of each layout
 *   indirect.c          ops that make their result from memory: rows, pixels and elements of operands
 *   indirect_move.c     reshape, permute, slice, pad, concat, expand, gather
 *   indirect_window.c   window_*
 *   indirect_product.c  batch_contract, convolutions in groups
 *   scatter.c           scatter, a kernel of its own
 */
#ifndef AMP_CODEGEN_CPU_KERNEL_H
#define AMP_CODEGEN_CPU_KERNEL_H

#include "codegen/cpu/cpu.h"

typedef struct CpuKernel {
    Emitter e;
    Walk *w;
    bool padded; /* the last panel has columns past the edge */
    int place;   /* of the loop nest: counted up, so that each loads its values anew */
    int64_t padded_cols;
    Shape stepped; /* rank 0: none; else s0, s1, .. are the coordinates of the row along its leading dimensions */
} CpuKernel;

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

typedef struct LayoutText {
    const char *offset;          /* of the kernel's first row and column, full values */
    const char *tile;            /* of column c's tile, from there, in a row kernel */
    const char *write, *scatter; /* functions of prelude/tiles.h; NULL: plain loads and stores */
} LayoutText;

typedef struct StorageText {
    const char *name, *element;
    int bytes;
} StorageText;

const StorageText *cpu_storage_of(const Walk *w, int operand);
const LayoutText *cpu_layout_of(const Walk *w, int operand);
/* Where the pointer of an operand starts that is read or written as |span|. */
const char *cpu_offset(const Walk *w, int operand, Span span);
void cpu_clear_past_last_segment(CpuKernel *k, const Sink *s);
amp_status cpu_load(CpuKernel *k, Val v);
amp_status cpu_store(CpuKernel *k, const Sink *s);

/* ---- indirect*.c ------------------------------------------------------------------------------------------------- */

/* An operand that is read from memory, as its op sees it: a matrix of its leading dimensions by its last. */
typedef struct Memory {
    int operand; /* of the kernel: the pointer m<operand> is its beginning */
    Layout layout;
    const StorageText *storage;
    Dtype dtype;      /* as the op sees it */
    Shape shape;      /* rank >= 2, or 1 where there is one row */
    const char *cols; /* a number, or in terms of n */
    const char *rows; /* rounded up to 32 */
} Memory;

/* Pointers to the beginning of what is read from memory. */
void cpu_declare_memory(CpuKernel *k);
Memory cpu_memory(const CpuKernel *k, const Op *o, int n);
/* The address of an element; W columns from it on; the element itself. */
const char *cpu_at(const CpuKernel *k, const Memory *m, const char *row, const char *column);
const char *cpu_vector_at(const CpuKernel *k, const Memory *m, const char *row, const char *column);
const char *cpu_element_at(const CpuKernel *k, const Memory *m, const char *row, const char *column);
/* v = W elements, lane by lane: |element| in terms of l. */
void cpu_fill_lanes(CpuKernel *k, Val v, const char *element);
/* The lanes that count: "W", or "W && l < left". */
const char *cpu_lanes(const CpuKernel *k);
/* `const int64_t i0 = ..., i1 = ...`: the coordinates of row |row| along the leading dimensions of |s|; |name|: 'i', or 's' for those
 * that step from row to row. */
void cpu_put_coordinates(CpuKernel *k, const Shape *s, const char *row, char name);
/* s0, s1, .. of the next row. */
void cpu_step_coordinates(CpuKernel *k);
/* The shape whose coordinates most of what is read from memory needs; rank 0: none. */
Shape cpu_stepped_shape(const CpuKernel *k);

/* v = an inlined value (codegen/walk.h) at this row and column of its matrix. */
amp_status cpu_emit_inlined(CpuKernel *k, Val v, const char *row, const char *column);

amp_status cpu_emit_indirect(CpuKernel *k, const Op *o);
amp_status cpu_emit_move(CpuKernel *k, const Op *o);
amp_status cpu_emit_window(CpuKernel *k, const Op *o);
amp_status cpu_emit_sums(CpuKernel *k, const Op *o);
amp_status cpu_emit_scatter(CpuKernel *k);

#endif
