/* emit.h: the ops of a kernel as C text: one variable per value, `v12` for the twelfth of the kernel.
 *
 * A value of SPAN_FULL or SPAN_COLUMN is a vector (vf for every float type, vi for i32 and bool masks), one of SPAN_ROW
 * or SPAN_ONE is a scalar (float, int32_t, int64_t, double).  Where a thread makes one element (CUDA) all are scalars,
 * of the element in row r and column c.
 *
 *     emit.c          ops as expressions, by one table; strings in C
 *     loop_nest.c     which ops, loads and stores belong in which place of the loop nest (walk.h)
 *     indirect*.c     ops that make their result from memory
 *
 * These write the text of every target.  What a target spells in its own way (loops, addresses, loads, stores) it gives
 * as its Spelling: cpu/cpu_kernel.c, cuda/cuda_kernel.c.
 */
#ifndef AMP_CODEGEN_EMIT_H
#define AMP_CODEGEN_EMIT_H

#include "codegen/walk.h"
#include "ir/draw_numbers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C types in registers. */
typedef enum Kind { KIND_F32 = 1, KIND_I32 = 2, KIND_BOOL = 4, KIND_I64 = 8, KIND_F64 = 16 } Kind;

typedef struct Storage { /* elements in memory: load_f16(..), uint16_t */
    const char *name, *element;
    int bytes;
} Storage;

/* An operand that is read from memory, as its op sees it: a matrix of its leading dimensions by its last. */
typedef struct Memory {
    int operand; /* of the kernel */
    Layout layout;
    const Storage *storage;
    Shape shape;      /* rank >= 2, or 1 where there is one row */
    const char *cols; /* a number, or in terms of n */
    const char *rows; /* rounded up to 32 */
} Memory;

typedef VEC(int64_t) Offsets;

enum { EMIT_MOST_KEYS = 8 }; /* per_thread: the most keys of random numbers that are parameters, key0, .. */

struct Spelling;

/* The first member of the target's own struct, to which its functions cast it back. */
typedef struct Emitter {
    Walk *w;
    const struct Spelling *spelling;
    Text *out;
    int indent;
    amp_error *err;
    bool per_thread;     /* one element at a time: no vectors, a bool is 0 or 1 */
    int place;           /* of the loop nest: counted up, so that each loads its values anew */
    const char *lanes;   /* vectors: those that count, "W" or "W && l < left" */
    const char *element; /* per_thread: the element's number in row-major order */
    int lane_count;      /* per_thread: elements that an op that reads memory makes at once, x12[0], ..; 0: one */
    bool lanes_of_row;   /* x12 is a row of all12, which the kernel has declared (cuda/kinds/column_kernel.c) */
    int lane_reads;      /* vectors that it has read so far, m1, .. */
    Offsets *offsets;    /* numbers that are parameters of the kernel's function: o0, o1, ..; NULL: literals */
    const char *sum;     /* what the function of a product kernel summed up; NULL: it has no products, or is given it */
} Emitter;

/* How a target writes what the shared files ask for. */
typedef struct Spelling {
    const char *name;                /* at the end of "is not supported" */
    const char *row, *column, *lane; /* of the op's element; of a vector's first element, and of its lane l */
    const char *zero, *splat;        /* 0.0f, and a float element, as a value of the kernel */

    /* ---- loop_nest.c ---- */
    amp_status (*load)(Emitter *e, Val v);
    amp_status (*store)(Emitter *e, const Sink *s);
    void (*or_flag)(Emitter *e, const Sink *s);
    /* A value that several phases need: v12 from where it is kept; where it is to be kept from v12. */
    void (*load_kept)(Emitter *e, Val v);
    void (*keep)(Emitter *e, Val v);
    void (*take_lane)(Emitter *e, Val v); /* v12 of what ValueWalk.in_lanes says is made */

    /* ---- emit.c ---- */
    bool (*is_near)(const Walk *w, const Op *o); /* calls a near function; NULL: none does */

    /* ---- indirect*.c ---- */
    /* The coordinates of the op's element along the leading dimensions of its result: i0, i1, .. */
    amp_status (*put_coordinates)(Emitter *e, const Op *o);
    /* The element in this row and column; the vector that begins there (the element, where there are none). */
    const char *(*element_at)(const Emitter *e, const Memory *m, const char *row, const char *column);
    const char *(*vector_at)(const Emitter *e, const Memory *m, const char *row, const char *column);
    /* Emitter.lane_count: loads that vector; its lane l, as an expression. */
    const char *(*load_lanes)(Emitter *e, const Memory *m, const char *row, const char *column);
    /* Says that |m| is, in this block, the operand that comes |number| after it; NULL: it cannot be said. */
    void (*choose_memory)(Emitter *e, const Memory *m, const char *number);
} Spelling;

/* How an op becomes an expression: from a template ($0, $1, $2: operands; $t: their type, "vf", "f32", ...; $n: the
 * op), or by a function. */
typedef struct EmitEntry {
    const char *vector, *scalar;
    unsigned kinds; /* of the last operand: Kind bits; 0: any */
    const char *(*build)(Emitter *e, const Op *o, bool vector);
    bool by_walk;   /* reductions, assign: not an expression */
    bool by_memory; /* made from memory (indirect.c); a template is for where nothing moves */
} EmitEntry;
extern const EmitEntry emit_rules[OP_COUNT];
/* An op that is near: near_exp_f32. */
extern const EmitEntry emit_near;
/* A core op without a row calls the function of its name: exp_vf, exp_f32. */
extern const EmitEntry emit_function;
const EmitEntry *emit_row(Opcode code);

Kind emit_kind(Dtype t);
bool emit_is_vector(Span s);
const char *emit_type(Dtype t, bool vector);   /* "vf", "vi", "float", "int32_t", ... */
const char *emit_suffix(Dtype t, bool vector); /* "vf", "vi", "f32", "i32", "i64", "f64" */
/* A number of this type; floats are rounded to it. */
const char *emit_literal(Arena *a, Dtype t, double v);
/* A value's variable, splatted where a vector is wanted and it is a scalar. */
const char *emit_operand(const Emitter *e, Val v, bool vector);
/* `mul * n / div` in terms of the variable n. */
const char *emit_dim(Arena *a, Dim d);
const char *emit_dim_factor(Arena *a, Dim d); /* the same, to stand beside * and / */
/* The number of the first element of a row, or of the query of attention; |row|: an index, as an expression. */
const char *emit_row_number(Arena *a, const DrawNumbers *d, const char *row, bool per_thread);
/* [N] as N rows of one column. */
Shape emit_matrix_shape(const Shape *s);

const Storage *emit_storage(const Walk *w, int operand);
/* Whether elements of |storage| hold values of |t| without another rounding. */
bool emit_storage_holds(Dtype t, Dtype storage);

/* A number in which kernels of one text may differ: where along a dimension an op reads. */
const char *emit_offset(Emitter *e, int64_t offset);

/* Indented, with a newline. */
void emit_line(Emitter *e, const char *fmt, ...) AMP_PRINTF(2, 3);
void emit_open(Emitter *e, const char *fmt, ...) AMP_PRINTF(2, 3); /* "... {" */
void emit_block(Emitter *e);                                       /* "{" */
void emit_close(Emitter *e);                                       /* "}" */
/* `const vf v12 = v10 + v11;` */
amp_status emit_core_op(Emitter *e, const Op *o);

#ifdef __cplusplus
}
#endif

/* ---- strings inside generated C ---- */

/* A string literal, or 0 for NULL. */
void c_string(Text *t, const char *s);
/* One literal per line of text; `""` for nothing. */
void c_long_string(Text *t, const char *s);
/* Inside a comment: nothing in |s| ends it or breaks the line. */
void c_comment(Text *t, const char *s);
/* An identifier made of |s|. */
void c_identifier(Text *t, const char *s);

#endif
