/* cuda_kernel.h: what the files that write one CUDA kernel share.
 *
 * A thread makes |vector| elements side by side, in three parts; a value is a scalar, v12 for the twelfth of the
 * kernel:
 *
 *     float x1[4];                         loads: one vector per operand
 *     load_f32(x1, b0 + at);
 *     float y2[4];
 *     for (int i = 0; i < 4; i++) {        elements: ops as scalar expressions
 *         const float v1 = x1[i];
 *         const float v2 = exp_f32(v1);
 *         y2[i] = v2;
 *     }
 *     store_f32(b2 + at, y2);              stores
 *
 * Names in the generated text: b3 operand 3; r, c row and column of an element, c0 the column of the vector's first; at
 * the number of that element in row-major order; rows, COLS the space.
 *
 * Sizes on which no instruction depends are parameters, so that kernels which differ in them alone share a function.
 */
#ifndef AMP_CODEGEN_CUDA_CUDA_KERNEL_H
#define AMP_CODEGEN_CUDA_CUDA_KERNEL_H

#include "codegen/cuda/cuda.h"
#include "codegen/indirect.h"
#include "codegen/loop_nest.h"

typedef struct CudaKernel {
    Emitter e;
    Walk *w;
    CudaBody *body;
    CudaForm form;      /* of a part `place` and `shared` are parameters */
    int part_phases;    /* of a column kernel, whose parts have blocks of their own; 0: it is not divided */
    int rows, row_step; /* of a column kernel that a thread loads together, so far from one another */
    const char *how;    /* of body->how, what is the kind's own; NULL: nothing */
    const char *types;  /* that it declares first, and in them Matrices::SHARED bytes of a block; NULL: none */
    int vector;         /* elements of a thread side by side */
    bool flat;          /* full and scalar operands alone: an element is its number */
    int64_t pitch;      /* of operands with longer rows (Buffer.pitch); 0: there are none */
    bool part;          /* the last vector may have fewer elements: |left| */
    bool by_rows;       /* so may the last one of each row; those with a pitch are zeros there */
    const char *at;     /* of the first element in a full operand */
    const char *column; /* its column */
    const char *index;  /* of an element among the thread's: "i", "0" */
    const char *slot;   /* of the vector among the thread's: "[q]", "" */
    const int *held;    /* row kernels, by operand: 1 + the bytes of a column of those before it in shared memory; 0: it
                           is not there; NULL: none is */
    int column_bytes;   /* of all of them */
    int slots;          /* vectors of a thread; known where values stay in registers */
    int *first_phase; /* by value id, from 1: of an input that stays in registers, where it is loaded; 0: it does not */
    int phase;        /* whose elements are being written */
    const char *reduce_shape; /* further arguments of the reducing template: ", 32, 8" */
    const char *segment;      /* column kernels: the number of the segment; NULL: there is one */
    const char *first_thread; /* condition under which a thread stores a value of SPAN_ONE */
    const char *line_store;   /* the same of the line's own span; NULL: always */
    const char *operands;     /* the table of their pointers; NULL: they are parameters */
    bool inlines;             /* vectors are read by ops in front of the elements, perhaps by them alone */
    bool *declared;           /* by operand: its pointer has been read from the table */
    bool late_operands;       /* the kernel declares operands where it needs them */
    const char *block;        /* the block's place in the grid: "blockIdx"; in a part "block" */
} CudaKernel;

/* ---- cuda_memory.c ----------------------------------------------------------------------------------------------- */

/* The elements that one thread makes side by side: 16 bytes of the widest full operand, 8 elements at most, so that the
 * accesses of a warp lie side by side. */
int cuda_vector_width(const Walk *w);
/* Elements of a row of operand |operand| where zeros fill it; 0: it has none. */
int64_t cuda_padded_pitch(const Walk *w, int operand);
/* Whether an operand is a part of longer rows: then elements are found by row and column. */
bool cuda_has_parts(const Walk *w);
/* From row to row of it, as text. */
const char *cuda_length_of(const CudaKernel *ck, int operand);
/* The largest access of up to 16 bytes that cuts |elements| evenly. */
int cuda_copy_bytes(int64_t elements, int element_bytes);
/* What |d| is a multiple of whatever N and T are; the largest that it can be: INT64_MAX if N decides. */
int64_t cuda_multiple(const Walk *w, Dim d);
int64_t cuda_most(const Walk *w, Dim d);
/* Up to where threads go along a row: to the end of its columns, or to where the next one begins in memory. */
Dim cuda_row_length(const CudaKernel *ck);
const char *cuda_row_end(const CudaKernel *ck);
/* |by_rows|: `left`, of the vector in this column. */
void cuda_put_left(CudaKernel *ck);
/* Whether a value of |span| has an element for each of the vector's. */
bool cuda_is_array(const CudaKernel *ck, Span span);
/* The value of an operand in front of the element loop: a vector, or the one number that all elements share. */
amp_status cuda_load(CudaKernel *ck, Val v);
/* In the element loop: what cuda_load has made a vector. */
void cuda_take_element(CudaKernel *ck, Val v);
/* A store of a value: before, in and after the element loop. */
amp_status cuda_declare_store(CudaKernel *ck, const Sink *s);
/* `looks7`, of each value that a run may look at: whether this one does.  A product has it before its sums, which are
 * longer than the memory's latency; only the host writes it, so no earlier launch is waited for. */
void cuda_declare_looks(CudaKernel *ck);
/* Of the rows of a column kernel, or runs of a product, that a thread loads together: `float all1[4][2]` of |count|; x1
 * or v1 of number |which|. */
void cuda_declare_rows(CudaKernel *ck, Val v, const char *count);
void cuda_recall_row(CudaKernel *ck, Val v, const char *which);
void cuda_store_element(CudaKernel *ck, const Sink *s);
void cuda_store_vector(CudaKernel *ck, const Sink *s);
/* A store of a value that all elements of the thread share. */
amp_status cuda_store_one(CudaKernel *ck, const Sink *s);
/* An operand that an op reads from memory: where the element in this row and column is, and the element. */
const char *cuda_place_of(const Emitter *e, const Memory *m, const char *row, const char *column);
const char *cuda_element_at(const Emitter *e, const Memory *m, const char *row, const char *column);
amp_status cuda_put_coordinates(Emitter *e, const Op *o);

/* ---- kernel_function.c ------------------------------------------------------------------------------------------- */

/* A parameter |name|, int64_t, of the function that is opened next. */
void cuda_add_size(CudaKernel *ck, const char *name, Dim size);
/* `const int64_t batch0 = .., batch1 = ..`: where |number|, which counts all of |dims|, is along each of them. */
void cuda_declare_places(CudaKernel *ck, const Dim *dims, int rank, const char *number);
/* The space's columns, COLS; in the function that is open. */
void cuda_declare_columns(CudaKernel *ck);
/* `extern "C" __global__ void ..(..) {`, or of a part `struct @_part0 { .. static INLINE void run(const PlaceInGrid
 * &place, char *shared, ..) {`; the test of the predicate; |threads| of a block. */
amp_status cuda_open_function(CudaKernel *ck, int threads);
/* `__launch_bounds__(256, HAS_ASYNC_COPIES ? 2 : 1)`, of a body's |min_blocks|. */
void cuda_put_bounds(Text *t, int threads, const CudaBody *body);
void cuda_close_function(CudaKernel *ck);
/* In place of all that: what else the body says of a kernel that is planned alone. */
amp_status cuda_plan_function(CudaKernel *ck, int threads);
/* The pointer of an operand, or of each that has none yet, where they come out of a table. */
void cuda_declare_operand(CudaKernel *ck, int i);
void cuda_declare_operands(CudaKernel *ck);
/* That pointer as an expression, declared or not. */
const char *cuda_operand(const CudaKernel *ck, int i);

/* ---- cuda_kernel.c ----------------------------------------------------------------------------------------------- */

extern const Spelling cuda_spelling;

/* Values of SPAN_ONE: loaded and computed by every thread. */
amp_status cuda_emit_once(CudaKernel *ck);
void cuda_store_flags(CudaKernel *ck);
/* These, and stores of SPAN_ONE. */
amp_status cuda_finish_once(CudaKernel *ck);
/* Values of the line's own span that stand before phase |level| (-1: of any level), and their stores. */
amp_status cuda_load_line(CudaKernel *ck);
amp_status cuda_emit_line_ops(CudaKernel *ck, int level);
amp_status cuda_store_line(CudaKernel *ck);
/* The three parts above, of phase |p| (walk_phase); tile and product kernels have one. */
amp_status cuda_emit_elements(CudaKernel *ck, int p);
/* The same after the loads. */
amp_status cuda_emit_loaded(CudaKernel *ck, int p);
/* All of |rows| rows, from `row` on: first what is loaded of all of them. */
amp_status cuda_emit_rows_of_elements(CudaKernel *ck, int p);
/* `float x5[4]` of v5, a number of a column, for the thread's own columns. */
void cuda_spread_columns(CudaKernel *ck, int p);
/* A full result may lie in the place of a full operand (docs/design/cuda.md): it is stored in the last phase that loads
 * one, at the earliest. */
void cuda_delay_stores(CudaKernel *ck);
/* `KeptSum s12 = KeptSum{0.0f, 0.0f};`; `const float v12 = sum_kept(warp_reduce<Plus>(s12));`, where |reduce| is
 * "warp_reduce".  Down columns `KeptSum a12 = column_reduce<Plus, 32, 32>(s12);`, from which the kernel makes v12. */
amp_status cuda_open_reductions(CudaKernel *ck, int p);
void cuda_close_reductions(CudaKernel *ck, int p, const char *reduce);
/* The type of a reduction's partial results; their first value; the result of |sum|, which is all of them. */
const char *cuda_sum_type(const Walk *w, const Sink *s);
const char *cuda_sum_start(const CudaKernel *ck, const Sink *s);
const char *cuda_reduced(const CudaKernel *ck, const Sink *s, const char *sum);
/* Whether some element needs its row or column. */
bool cuda_needs_coordinates(const CudaKernel *ck);

/* near.c: fills Walk.asked; whether |o| then takes its function from prelude/near.cuh. */
void cuda_find_exactness(Walk *w);
bool cuda_is_near(const Walk *w, const Op *o);

/* ---- the kinds --------------------------------------------------------------------------------------------------- */

/* cuda_emit_tile and so on, one for each: each in kinds/ or in the file of its name. */
#define KERNEL(id, word, ...) amp_status cuda_emit_##word(CudaKernel *ck);
#include "base/kernels.def"
#undef KERNEL

#endif
