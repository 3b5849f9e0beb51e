/* attention_plan.h: what a kernel of attention works with, before any text: sizes, types, tiles, and where its operands
 * are. */
#ifndef AMP_CODEGEN_CUDA_ATTENTION_PLAN_H
#define AMP_CODEGEN_CUDA_ATTENTION_PLAN_H

#include "codegen/walk.h"

typedef struct AttentionFactors { /* what products multiply; the names are prelude/attention.cuh's */
    Dtype dtype;
    const char *name, *stored;
    int bytes, min_arch;
} AttentionFactors;
/* NULL: tensor cores have no such type. */
const AttentionFactors *attention_factors(Dtype t);

/* How a block walks over the rows of the other side: |step| rows at a time, with its own rows in registers or in shared
 * memory, and with several tiles of the other side in shared memory. */
typedef struct AttentionWalkTile {
    int step;
    bool held;
    int stages;
} AttentionWalkTile;

/* A warp has 16 rows.  Sums, factors and scores stay in registers without spills; a block of f16 takes at most 64 KiB
 * of shared memory, which sm_75 has, one of tf32 99 KiB. */
typedef struct AttentionTiling {
    int bytes, width; /* of an element; the widest head */
    int warps, gradient_warps;
    AttentionWalkTile forward, keys, queries;
    bool apart; /* d k and d v are made by blocks of their own: sums of both would be too many */
    int blocks; /* of attention itself that a multiprocessor has registers for; 0: as many as it needs */
} AttentionTiling;
typedef struct AttentionPlan {
    const Op *op;
    AttentionOperands at;
    const AttentionFactors *factors;
    AttentionTiling tiling;
    Shape scores; /* [B..., H, T, S] */
    int64_t heads, share, width, v_width;
    Dim queries, keys;
    Dim leads;      /* products of B */
    int copy_bytes; /* that are side by side and aligned in every row of q, k, v and dy */
    bool gradient, causal, drops;
} AttentionPlan;

enum { ATTENTION_UNIT = 16 }; /* elements of a row in shared memory: multiples of these */

/* AMP_UNSUPPORTED where there is no code for the type. */
amp_status attention_plan(const Walk *w, AttentionPlan *out, amp_error *err);
/* The kernel's operand that holds operand |i| of the op; -1: none. */
int attention_operand(const Walk *w, const Op *o, int i);
/* The rows of operand |i|; a mask's as if it had the scores' shape. */
amp_status attention_rows(const Walk *w, const AttentionPlan *p, int i, Strided *at, int *operand, amp_error *err);
static inline int64_t attention_key_heads(const AttentionPlan *p) { return p->heads / p->share; }
/* Blocks that |rows| of one head take. */
static inline int64_t attention_blocks(int64_t rows, int warps) { return (rows + warps * 16 - 1) / (warps * 16); }

/* Where a result goes: columns of its own value, or of what the kernel makes of several. */
typedef struct AttentionResult {
    int whole, rounded;    /* the kernel's operands that hold it in f32 and rounded; -1: none */
    int64_t pitch, column; /* of such a row, and where the result begins in it */
    bool rounds_first;     /* before a zero is added */
    bool adds_zero;
} AttentionResult;
/* attention_results.c: result |r|, of |cols| columns. */
amp_status attention_result(const Walk *w, const AttentionPlan *p, int r, int64_t cols, AttentionResult *out,
                            amp_error *err);

/* Shared memory of a block. */
int64_t attention_forward_bytes(const AttentionPlan *p);
int64_t attention_gradient_bytes(const AttentionPlan *p);

#endif
