/* cuda.h: what the files of the CUDA target share.  docs/design/cuda.md says what the kernels are; codegen/README.md
 * what each file does.  Rooms, each using only those below it:
 *
 *   launch/    launches and their functions, tables, machine code
 *   kinds/     which thread makes what, a file a kind; product/ of products
 *   .          the elements of a thread, loads and stores, the function around them
 */
#ifndef AMP_CODEGEN_CUDA_CUDA_H
#define AMP_CODEGEN_CUDA_CUDA_H

#include "codegen/codegen.h"
#include "codegen/cuda/prelude_parts.h"
#include "codegen/emit.h"
#include "ir/kernel_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions that generated kernels call, as CUDA C text (prelude/, embedded by the build). */
extern const char cuda_prelude[];

enum {
    CUDA_PART_OPERANDS = 12, /* more than that a part of a bundle reads out of the table where it needs them */
    CUDA_STAGE_THREADS = 256 /* of a block of a launch of several stages */
};

typedef struct CudaLaunch { /* amp_model_cuda_grid, and the block of amp_model_cuda_choice */
    Dim extent[3];
    int64_t per[3];
    int block[3];
    int shared_bytes;
} CudaLaunch;

typedef VEC(Dim) CudaSizes;
typedef VEC(const char *) CudaWords;

/* The grid's dimension that members are along, which no kernel of the batch has blocks along. */
static inline int cuda_batch_axis(BatchForm batch) {
    return batch == BATCH_IN_LAYERS ? 2 : batch == BATCH_SIDE_BY_SIDE ? 1 : 0;
}

/* A block of columns keeps up to this number of sums for the block that adds up (prelude/partial.cuh): 32 columns each,
 * 8 bytes a column. */
enum { CUDA_MOST_PARTIALS = 4, CUDA_PARTIAL_BYTES = CUDA_MOST_PARTIALS * 32 * 8 };

typedef struct CudaBody { /* what writing a kernel gives */
    /* `extern "C" __global__ void @(..) {..}` with @ where the name goes, and no comment that differs between equal
     * kernels; of a part: `struct @_part0 {..};`; NULL: there is none in that form */
    const char *source;
    const char *how; /* for people who read it: "mma f16, tiles of 128 x 128 .., 256 threads, .." */
    CudaLaunch launch;
    CudaSizes sizes; /* parameters, after n */
    CudaWords size_names;
    CudaWords pointers; /* types of its operands, "const float *", and of its predicate */
    int min_arch;       /* 75; 80 where it needs bf16 or tf32 in tensor cores */
    bool tensor_cores, operand_table;
    int columns, height; /* of a block of a column kernel; its rows at once */
    KernelFacts facts;   /* what passes ask of it; choices: forms that are faster, the best first */
    KernelKind kind;
    bool takes_table;     /* of a part: it reads its pointers out of the table, each where it needs it */
    int min_blocks;       /* of a multiprocessor; 0: no matter */
    bool halves_blocks;   /* before sm_80 half of them */
    bool partials;        /* its blocks leave numbers for one another: it is given memory for them */
    const uint8_t *again; /* by operand: how many times more each element is read if it is not held in shared memory;
                             NULL: once */
    bool shares; /* a tile kernel that runs for a rank's share: its first two sizes are the end and the first of its
                    elements; of a batch the table has the first ones after how many each member has */
} CudaBody;

/* What a kernel is written as: a function, or a part of one, a struct that the function calls (part_launch.c). */
typedef enum CudaRole {
    CUDA_ALONE,      /* a function */
    CUDA_BESIDE,     /* a part whose blocks run beside other parts' blocks */
    CUDA_IN_CHAIN,   /* all of its blocks make one kernel after another: products */
    CUDA_BY_COLUMNS, /* its function says which columns a block has; column kernels, which all have its threads */
    CUDA_IN_TURN,    /* its function, of several stages, gives each block its place in the grid */
    CUDA_IN_BAND     /* the same, and a block makes 64 rows */
} CudaRole;

/* Which form of a kernel.  |members| > 0: the batched form for that many members (the kernel must have a BatchForm);
 * |launch| then describes one member.  |choice| > 0: the function with that number among |choices|, or the last one.
 * |part|, |threads|: the number of a part and, unless it is in a chain, the threads of its blocks.  |plan|: nothing is
 * written; the body describes what would be. */
typedef struct CudaForm {
    CudaRole role;
    int members, choice, part, threads;
    bool plan;
} CudaForm;

/* cuda_kernel.c: of the kernel that |w| has analysed.  AMP_UNSUPPORTED names the op that has no CUDA code yet. */
amp_status cuda_emit_kernel(Walk *w, CudaForm form, CudaBody *out, amp_error *err);

typedef struct CudaWork { /* amp_model_cuda_work */
    uint32_t instruction; /* AMP_INSTRUCTION_* */
    int operations;
    Dim elements, terms;
} CudaWork;
typedef VEC(CudaWork) CudaWorks;
/* kernel_work.c: adds what the kernel computes that |w| has analysed. */
void cuda_add_work(const Walk *w, CudaWorks *out);
/* AMP_INSTRUCTION_* by which the kernel makes the product |o|; loops: FMA. */
uint32_t cuda_instruction_of(const Walk *w, const Op *o);

/* kernel_comment.c: lines of a comment that is open; of a title what follows the kernel's name, k17.
 *     k17  cross_entropy: log_softmax + nll_loss           mlp.amp:14
 *   *   row over [n, 10] in train_step */
void cuda_comment_title(Text *t, const Walk *w);
/* Operands with their types, then one line per op, with why it has its type. */
void cuda_comment_body(Text *t, const Walk *w);

enum { CUDA_OVERLAP_ARCH = 90 }; /* from it on functions wait for earlier launches (prelude/overlap.cuh) */

typedef struct CudaFunction {
    const char *entry, *source; /* with comments that name IR ops, dtype decisions and source lines */
    const char *prelude;        /* of cuda_prelude what it needs; functions that need the same share it */
    CudaRanges ranges;          /* where that is (prelude_parts.h) */
    int min_arch;
} CudaFunction;

typedef struct CudaChoice { /* amp_model_cuda_choice */
    int function;
    CudaLaunch launch;
} CudaChoice;

typedef struct CudaPart {     /* amp_model_cuda_part */
    VEC(CudaLaunch) launches; /* in each function */
    KernelKind kind;
    int members;        /* one; of a batch, or a chain, several; by columns, of all stages */
    int operands, work; /* counts */
    int step;           /* of several stages: its superstep, from 1; else 0 */
    bool in_turn;       /* a block makes one member after another */
} CudaPart;

typedef struct CudaProduct { /* amp_model_cuda_product */
    int a, b, to, bias;      /* operands of the launch; bias -1: none */
    bool a_turned, b_turned;
    bool filled;          /* the lines of the result, with zeros */
    uint32_t instruction; /* AMP_INSTRUCTION_* */
    Dim rows, k;
    int64_t cols;
    int parts;
    /* Of A, B and the result; of a batch |stride| from one product to the next, from |first| on */
    Dim pitch[3], batch, stride[3], first[3];
    int last; /* op of its kernel that it makes; |made|: the value that it leaves in memory */
    Val made;
} CudaProduct;
typedef VEC(CudaProduct) CudaProducts;

typedef struct CudaKernelEntry { /* amp_model_cuda_kernel */
    VEC(const Kernel *) members; /* part after part */
    VEC(CudaPart) parts;
    int tickets;            /* counters, where blocks wait for others; else 0 */
    int supersteps, depth;  /* of several stages; most kernels that wait for one another */
    VEC(CudaChoice) forms;  /* its own function, which is right everywhere, then those that are faster */
    CudaBody body;          /* of its own function */
    VEC(uint32_t) operands; /* 1-based buffers of the function, member after member */
    VEC(uint8_t) access;    /* AMP_ACCESS_* of each */
    CudaWorks work;
    VEC(Dim) batch_elements; /* of each member, where there is a batch */
    CudaProducts calls;
    struct CudaKernelEntry *then; /* NULL: nothing follows the calls */
    const char *no_call;          /* why it has none; NULL or "" if that needs no reason */
} CudaKernelEntry;

typedef struct CudaProgram {
    const Func *func;
    VEC(CudaKernelEntry) kernels;
} CudaProgram;

typedef struct CudaModule { /* CodegenCuda.code */
    const Module *module;   /* after plan, target cuda */
    VEC(CudaFunction) functions;
    VEC(CudaProgram) programs;
} CudaModule;

/* cuda_tables.c: `static const amp_model_cuda cuda = {..};`. */
amp_status cuda_emit_tables(const CodegenCuda *cuda, Text *out, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
