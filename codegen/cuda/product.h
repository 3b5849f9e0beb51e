/* product.h: what a matrix product's kernel is made of: the types that stand for it in prelude/product*.cuh. */
#ifndef AMP_CODEGEN_CUDA_PRODUCT_H
#define AMP_CODEGEN_CUDA_PRODUCT_H

#include "codegen/cuda/cuda_kernel.h"

typedef struct ProductTile { /* what a block makes */
    int m, n, threads;
    int warps_m, warps_n; /* tensor cores */
    int min_blocks;       /* of a multiprocessor: bounds the registers */
} ProductTile;

typedef struct ProductOperand { /* A or B */
    int operand;                /* of the kernel */
    const char *memory;         /* AsStored<uint16_t>, .. */
    bool k_inner;               /* k runs along its lines in memory */
    int bytes;                  /* of a copy: a line is a multiple of them */
} ProductOperand;

typedef struct ProductPlan {
    const Op *op;
    Dim rows, k;
    int64_t cols;
    const char *mma;             /* "MmaF16"; NULL: fused multiply-adds */
    int min_arch, element_bytes; /* in shared memory */
    ProductTile tile;
    ProductOperand a, b;
} ProductPlan;

/* product_tile.c.  AMP_UNSUPPORTED names the op, or the operand, that has no code yet. */
amp_status cuda_plan_product(const Walk *w, ProductPlan *out, amp_error *err);

#endif
