/* library_trial.h: one product as cuBLASLt takes it, and the measurement of a launch (library_products.h). */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LIBRARY_TRIAL_H
#define AMP_RUNTIME_DEVICE_CUDA_LIBRARY_TRIAL_H

#include "runtime/device/cuda/library_products.h"

/* A product at one n.  Row-major D = A B, which the library makes as D^T = B^T A^T; |of|[0..2]: A, B, D. */
typedef struct amp_cuda_matmul {
    int64_t m, n, k;
    int64_t batch;               /* products of these sizes, or parts of one */
    int64_t pitch[3], stride[3]; /* elements; stride from one to the next */
    int32_t type, result, compute;
    uint32_t epilogue;
    int32_t a_turned, b_turned;
    int64_t fill; /* elements of zeros after each line of the result */
} amp_cuda_matmul;

/* What a launch runs for one of its products. */
typedef struct amp_cuda_algorithm {
    CublasLtAlgo algo;
    uint64_t workspace;
} amp_cuda_algorithm;

/* A workspace of |bytes| at least; not after a graph has the present one.  Outside of a capture. */
amp_status amp_cuda_products_resize(amp_cuda_products *p, size_t bytes);

/* Of product |number| of kernel |k|; false: at this n the library makes something else, or the tables are damaged. */
bool amp_cuda_matmul_of(const amp_run *run, const amp_model_cuda_kernel *k, uint32_t number, amp_cuda_matmul *out);

/* Where its A, B, D and bias are, 0 if it has none. */
void amp_cuda_matmul_place(const amp_cuda_launching *launching, const amp_run *run, const amp_model_cuda_kernel *k,
                           uint32_t number, CuPointer at[4]);

/* The algorithms that the library proposes; their number, or -1 if the library fails. */
enum { AMP_CUDA_ALGORITHMS = 16, AMP_CUDA_WORKSPACE_MOST = 32 << 20 };
int amp_cuda_matmul_ask(const amp_cuda_products *p, const amp_cuda_matmul *what, const CuPointer at[4],
                        CublasLtFound found[]);
/* Whether |by|, which was found elsewhere, makes this product, and in which workspace. */
bool amp_cuda_matmul_check(const amp_cuda_products *p, const amp_cuda_matmul *what, amp_cuda_algorithm *by);
/* One call, of operands at |at|. */
CublasLtResult amp_cuda_matmul_run(const amp_cuda_products *p, const amp_cuda_matmul *what, const CuPointer at[4],
                                   const amp_cuda_algorithm *by, CuStream stream);

/* Measures kernel |k| of |run|'s program.  |served|: the library is faster, and right; |out| then has an algorithm for
 * each product.  |check| false: |out| is known, and each algorithm runs once, so that nothing of it is loaded later.
 * |late|: p->deadline came before the end. */
typedef struct amp_cuda_verdict {
    bool served, measured, late;
    double own, library; /* microseconds */
} amp_cuda_verdict;
amp_status amp_cuda_try_library(const amp_cuda_launching *launching, const amp_run *run, const amp_model_cuda_kernel *k,
                                bool check, amp_cuda_algorithm *out, amp_cuda_verdict *verdict, amp_error *err);

#endif
