/* emit.h: the ops of a kernel as C text: one variable per value, `v12` for the twelfth of the kernel.
 *
 * A value of SPAN_FULL or SPAN_COLUMN is a vector (vf for every float type, vi for i32 and bool masks), one of SPAN_ROW
 * or SPAN_ONE is a scalar (float, int32_t, int64_t, double).  Where a thread makes one element (CUDA) all are scalars, of
 * the element in row r and column c.  Where each op stands, and how values are loaded and stored, is the target's
 * (codegen/cpu/kernel.c, codegen/cuda/kernel.c).
 */
#ifndef AMP_CODEGEN_EMIT_H
#define AMP_CODEGEN_EMIT_H

#include "codegen/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C types in registers. */
typedef enum Kind { KIND_F32 = 1, KIND_I32 = 2, KIND_BOOL = 4, KIND_I64 = 8, KIND_F64 = 16 } Kind;

typedef struct Emitter {
    Walk *w;
    Text *out;
    int indent;
    amp_error *err;
    bool per_thread;     /* one element at a time: no vectors, a bool is 0 or 1 */
    const char *element; /* per_thread: the element's number in row-major order */
    const char *sum;     /* per_thread: what a product kernel summed up for the element; NULL: it has no products */
} Emitter;

/* How an op becomes an expression: from a template ($0, $1, $2: operands; $t: their type, "vf", "f32", ...; $n: the
 * op), or by a function. */
typedef struct EmitEntry {
    const char *vector, *scalar;
    unsigned kinds; /* of the last operand: Kind bits; 0: any */
    const char *(*build)(Emitter *e, const Op *o, bool vector);
    bool by_walk;   /* reductions, assign: not an expression */
    bool by_memory; /* made from memory: the target's (codegen/cpu/indirect.c); a template is for where nothing moves */
} EmitEntry;
extern const EmitEntry emit_rules[OP_COUNT];
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
/* [N] as N rows of one column. */
Shape emit_matrix_shape(const Shape *s);

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

#endif
