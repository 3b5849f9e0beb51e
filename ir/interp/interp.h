/* interp.h: the float64 reference interpreter: one function of a module, op by op, slow and obviously right.
 *
 * It runs functions of all three levels (kernels are walked through, buffers ignored), so that the result of a pass
 * can be compared with what it started from.  All numbers are doubles; integers are exact to 2^53.  A state keeps its
 * old value until the function ends; then the assigns whose predicate holds are written.  Randomness: the states
 * "seed", "iteration" and "micro" where they are given, else 0.
 */
#ifndef AMP_IR_INTERP_INTERP_H
#define AMP_IR_INTERP_INTERP_H

#include "base/error.h"
#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct InterpTensor {
    const char *name; /* of the input, state or result */
    int rank;
    int64_t dims[MAX_RANK];
    int64_t count; /* of elements: the product of dims */
    double *data;  /* row-major; bool: 0 or 1 */
} InterpTensor;

typedef struct InterpOptions {
    /* Round every value to its dtype, as the backends do; else exact reals as far as doubles go,
     * also through casts between floats. */
    bool round;
    /* Makes sum_ranks of what this rank has, in place, in the order of the ops; NULL: there is one rank. */
    void (*sum_ranks)(void *user, double *data, int64_t count);
    void *user;
} InterpOptions;

/* A zeroed tensor of a shape. */
InterpTensor interp_tensor(Arena *a, const char *name, const Shape *shape, Sizes at);

/* Runs |f|.  |given|: every input and state of the function, by name, with its evaluated shape;
 * others are left alone.
 * States that the function assigns are written in place.  |results|: f->results.len tensors, filled with data from the
 * function's arena.
 * AMP_INVALID_ARGUMENT where an input is missing or has another shape, or an op is malformed; then nothing is written.
 * The caller has set the arena's out_of_memory. */
amp_status interp_run(const Func *f, Sizes at, const InterpOptions *options, InterpTensor *given, int given_count,
                      InterpTensor *results, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
