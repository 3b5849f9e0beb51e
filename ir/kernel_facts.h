/* kernel_facts.h: what code generation says of a kernel before it writes any code, for the passes that let kernels
 * share a launch (passes/launch). */
#ifndef AMP_IR_KERNEL_FACTS_H
#define AMP_IR_KERNEL_FACTS_H

#include "base/error.h"
#include "ir/ir.h"

/* How the kernels of a batch share its blocks. */
typedef enum BatchForm {
    BATCH_NONE,         /* it is in none */
    BATCH_IN_TURN,      /* the blocks of one follow the blocks of another: their elements may differ in number */
    BATCH_SIDE_BY_SIDE, /* each has a row of blocks, along the grid's second dimension */
    BATCH_IN_LAYERS     /* each has two dimensions of blocks, along the grid's third: products */
} BatchForm;

typedef struct BlockGrid { /* blocks along an axis: extent at n / per; 1 where |per| is 0 */
    Dim extent[3];
    int64_t per[3];
} BlockGrid;

enum {
    LAUNCH_OPERANDS = 64, /* parameters of a function: more operands come by a table */
    LAUNCH_SIZES = 32,    /* that the runtime takes */
    LAUNCH_ROWS = 64      /* of a block of PART_ROWS */
};

enum { KERNEL_FORMS = 4 }; /* of a kernel: its function, which serves any number of blocks, and those for many */

typedef struct KernelFacts {
    const char *code; /* all that its function follows from: kernels of equal code differ in operands; NULL: alone */
    BatchForm batch;
    Dim elements;              /* of a batch in turn: its own */
    Dim rows, cols;            /* the space it goes over; rows of a sum by segments are the segments */
    int operands;              /* with its predicate */
    int sizes;                 /* parameters */
    bool bundles;              /* kernels of other code may be beside it */
    bool sums_grow;            /* with n: the terms of a product's sums */
    int choices;               /* functions for many blocks, or launches with more shared memory */
    int threads[KERNEL_FORMS]; /* of a block in each form; 0: as many as beside it */
    bool widens[KERNEL_FORMS]; /* 256 threads of a block can make the same */
    int vector;                /* elements of a thread side by side */
    bool joins;                /* it may be a part of a launch of a whole function, with blocks as |grid| says */
    BlockGrid grid;
} KernelFacts;

/* Fills the facts of each kernel of |f|, which is planned.  Its text lives in the module's arena.  AMP_UNSUPPORTED: a
 * kernel has no code. */
typedef amp_status (*DescribeKernels)(const Func *f, KernelFacts *out, amp_error *err);

#endif
