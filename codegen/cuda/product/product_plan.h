/* product_plan.h: which instructions make a product, in which tiles, and how its operands come to shared memory.
 *
 * Nothing here depends on n, so that a kernel serves every n; the sum of an element does not depend on the tile
 * either: it is one chain over k, or over each part of it.  Few tiles of a long k, as the gradient of a weight has, are
 * in parts: the pass split_sums has split them where they leave multiprocessors idle (passes/rewrite/split_sums.c). */
#ifndef AMP_CODEGEN_CUDA_PRODUCT_PLAN_H
#define AMP_CODEGEN_CUDA_PRODUCT_PLAN_H

#include "codegen/cuda/cuda_kernel.h"

/* The types that it names are in prelude/product*.cuh. */
typedef struct ProductTile { /* what a block makes */
    int m, n, threads;
    int warps_m, warps_n; /* tensor cores */
    int min_blocks;       /* of a multiprocessor: bounds the registers */
    int step_bytes;       /* of k at a time, in tensor cores */
} ProductTile;

typedef struct ProductOperand { /* A or B */
    int operand;                /* of the kernel */
    const char *memory;         /* AsStored<uint16_t>, .. */
    bool k_inner;               /* k runs along its lines in memory */
    int64_t run;                /* elements side by side in memory, all along the operand */
    int bytes;                  /* of a copy: a run is a multiple of them */
    const char *first, *pitch;  /* its first element; elements from line to line */
    const char *geometry;       /* what memory.set takes; NULL: it has no sizes */
} ProductOperand;

/* Of a batched product: where the result of one of its products is. */
typedef struct Batch {
    Dim dims[MAX_RANK]; /* of the batch */
    int rank;           /* 0: one product, no batch */
    Dim count;          /* of products */
    bool merged;        /* products of the last dim are adjacent */
} Batch;

/* Of a convolution: the images that A's windows are over, and those that have a pixel for each window. */
typedef struct ProductImages {
    int64_t height, width, out_height, out_width;
    int64_t stride[2]; /* of the phases of the latter's pixels; 1: all are alike */
} ProductImages;

/* Of a convolution whose pixels are stored at a pitch: of every |per| rows that its windows give, or lines of k, the
 * first |run| are there. */
typedef struct Gaps {
    int64_t run, per; /* 0: there are no gaps */
} Gaps;

/* Of a data gradient with strides: the same taps meet all pixels whose places are equal modulo the strides, a phase.  A
 * block makes pixels of one phase, and its sums are over these taps. */
typedef struct Phases {
    int64_t count; /* 1: there are no strides */
    int64_t taps;  /* of the kernel */
    Dim samples;
    const char *images; /* the type Images of the text: A's windows; NULL without strides */
} Phases;

typedef struct ProductPlan {
    const Op *op;
    Batch batch;
    Gaps gaps;
    Dim rows, k; /* of one product, with gaps; of phases the rows of the largest */
    Phases phases;
    int64_t parts; /* of k */
    Dim cols;
    bool reads_beside;           /* an element reads others than sums and what there is of its row or column */
    bool has_windows;            /* A holds a convolution's windows over images */
    const char *mma;             /* "MmaF16"; NULL: fused multiply-adds */
    int min_arch, element_bytes; /* in shared memory */
    ProductTile tile;
    KernelFacts facts; /* choices: larger tiles */
    int run;           /* columns that a thread has side by side in the end */
    int members;       /* of its launch, from 1 */
    ProductOperand a, b;
    ProductImages images; /* where |has_windows| */
} ProductPlan;

/* Plans the kernel that |w| has analysed, in that form; tile.threads is 0 if no tile uses the thread count of the
 * bundle.  AMP_UNSUPPORTED names the op, or the operand, that has no code. */
amp_status product_plan(const Walk *w, CudaForm form, ProductPlan *out, amp_error *err);
/* Whether an element reads, beside the sums, the matrix that is |operand|, which has one for each of them. */
bool product_reads_beside(const Walk *w, int operand);
/* Whether the result holds one matrix after the other: products of a batch, or parts of one product. */
bool product_has_several(const ProductPlan *p);

enum { PRODUCT_LARGE_TILE = 128 }; /* rows, and columns */

#endif
