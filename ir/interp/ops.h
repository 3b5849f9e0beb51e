/* ops.h: what the interpreter and its op functions share. */
#ifndef AMP_IR_INTERP_OPS_H
#define AMP_IR_INTERP_OPS_H

#include <math.h>

#include "ir/draw_numbers.h"
#include "ir/interp/interp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One op being run: operands and results have their shapes, results are to be filled. */
typedef struct Running {
    const Func *f;
    const Op *op;
    const InterpTensor *const *in;
    InterpTensor *const *out;
    bool round;
    uint64_t seed, iteration, micro, full_batch; /* for dropout, whose states appear when it is lowered */
    Arena *a;
    const InterpOptions *options; /* or NULL */
    Sizes at;
} Running;

typedef void InterpFn(Running *r);

/* What an op computes is the function of its name: interp_op_relu. */
#define OP(name, ...) InterpFn interp_op_##name;
#include "ir/ops.def"

/* The op |name| computes what |other| does. */
#define INTERP_ALIKE(name, other)                                                                                      \
    void interp_op_##name(Running *r) { interp_op_##other(r); }

extern InterpFn *const interp_ops[OP_COUNT]; /* interp.c */

/* ---- tensor.c -------------------------------------------------------------------------------- */

/* Zeros that live as long as the function's module. */
double *interp_scratch(const Running *r, int64_t count);
/* The coordinates of element |i| of |t|, and back. */
void interp_coordinates(const InterpTensor *t, int64_t i, int64_t *at);
int64_t interp_offset(const InterpTensor *t, const int64_t *at);
/* |x| rounded to |t|, where values are rounded. */
double interp_round(bool round, Dtype t, double x);
/* The element of |t| at row-major index |i| of |like|, by NumPy's broadcasting. */
double interp_at(const InterpTensor *t, const InterpTensor *like, int64_t i);
/* For a tensor and the dims that are folded (count 0: all): where element |i| goes in the folded tensor. */
int64_t interp_folded_index(const InterpTensor *t, const Dims *dims, int64_t i);
/* How many elements fold into one. */
int64_t interp_folded_count(const InterpTensor *t, const Dims *dims);
/* A tensor as lines along one dim: line l has elements base + j * stride, j < length. */
typedef struct Line {
    int64_t base, stride, length;
} Line;
int64_t interp_line_count(const InterpTensor *t, int64_t dim);
Line interp_line(const InterpTensor *t, int64_t dim, int64_t l);

/* What dropout multiplies element |element| by: the mask and the factor are f32 numbers in every backend. */
typedef struct Dropout {
    uint64_t seed;
    uint32_t key, iteration, micro;
    DrawNumbers numbers;
    int64_t first; /* the number of the tensor's first element */
    double p;
} Dropout;
/* Of the op's p and key, with the counters of the run, for a tensor of shape |s|.  Samples are counted over
 * all micro-batches and ranks. */
Dropout interp_dropout(const Running *r, const Shape *s);
double interp_kept(const Running *r, const Dropout *d, int64_t element);

/* ---- elements ---------------------------------------------------------------------------------------------------- */

#define FOR_EACH(r, i) for (int64_t i = 0; i < (r)->out[0]->count; i++)

static inline double *result(const Running *r) { return r->out[0]->data; }
static inline double in(const Running *r, int operand, int64_t i) { return interp_at(r->in[operand], r->out[0], i); }
static inline const Dims *dims_of(const Running *r) { return &ir_attr(r->op, "dims")->dims; }

/* For each element of |x|: the element of the folded tensor |y| that it goes to. */
#define FOR_FOLDED(r, x, i, to)                                                                                        \
    for (int64_t i = 0, to; i < (x)->count && (to = interp_folded_index(x, dims_of(r), i), true); i++)

static inline double interp_add(double a, double b) { return a + b; }
static inline double interp_larger(double a, double b) { return isnan(a) ? a : isnan(b) || b > a ? b : a; }
static inline double interp_smaller(double a, double b) { return isnan(a) ? a : isnan(b) || b < a ? b : a; }
static inline double interp_either(double a, double b) { return a != 0 || b != 0; }

/* ---- attributes ------------------------------------------------------------------------------ */

double interp_float(const Running *r, const char *name);
int64_t interp_int(const Running *r, const char *name);
bool interp_bool(const Running *r, const char *name);

#ifdef __cplusplus
}
#endif

#endif
