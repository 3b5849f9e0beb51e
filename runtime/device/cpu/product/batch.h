/* batch.h: many products of one size, C[b] = A[b] * B[b], on operands whose rows are anywhere at a fixed pitch
 * (amp_model_batch in amp/model_abi.h).
 *
 * The results are one matrix: product b has the rows b * m .. of it, or, of the innermost batch dimension, the columns
 * (the heads of attention beside each other).  Its tiles are, as in any product, 32 x 32 and aligned, so that
 * epilogues are the same; where m or n is no multiple of 32, a tile has parts of several products.
 *
 * Operands.  A row of A along k is read where it is.  What has to be packed (columns of A, all of B) is packed for one
 * product and 512 steps of k at a time, into scratch of the thread, and serves up to 8 row tiles.
 *
 * Numerics.  As in product.h: every element is one chain over ascending k, whatever the division into tasks.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_BATCH_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_BATCH_H

#include "amp/model_abi.h"
#include "runtime/device/cpu/product/product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_batch_operand {
    const char *data;                         /* element (0, 0) of the first product */
    int64_t pitch;                            /* bytes from one row in memory to the next */
    int64_t stride[AMP_MODEL_BATCH_MAX_DIMS]; /* bytes along each batch dimension; 0: all read the same */
    int transposed;                           /* its rows in memory are its columns */
} amp_batch_operand;

typedef struct amp_batch {
    const amp_product_kernels *kernels;
    int32_t rank;   /* batch dimensions, 0 .. AMP_MODEL_BATCH_MAX_DIMS */
    int in_columns; /* 1: the last batch dimension runs along the columns of C */
    int64_t dims[AMP_MODEL_BATCH_MAX_DIMS];
    int64_t m, n, k; /* of one product, elements, >= 1 */
    amp_batch_operand a, b;
    amp_product_epilogue epilogue;
    void *ctx;
    int32_t prefetch_count;
    amp_product_prefetch prefetch[AMP_PRODUCT_PREFETCH_MAX];
} amp_batch;

/* Bytes of scratch per thread, aligned to 64.  It reads |kernels|, |k|, and of |a| whether it is |transposed| and has a
 * |pitch|, and is no less for a larger k. */
size_t amp_batch_thread_bytes(const amp_batch *batch);

/* Tasks, by shape alone; they may run in any order and at once. */
int64_t amp_batch_tasks(const amp_batch *batch);
void amp_batch_task(const amp_batch *batch, int64_t task, void *thread_scratch);

#ifdef __cplusplus
}
#endif

#endif
