/* library_products.h: products that NVIDIA's cuBLASLt makes in place of launches, chosen by measurement.
 *
 * If the library can make all products of a launch (amp_model_cuda_kernel.products), the launch is measured when a
 * session is created, at its capacity, against each of the library's algorithms.  The fastest that is right takes its
 * place: with the same bits or, if the session asks for the fastest, with the same numbers but for rounding.  The
 * choice is kept beside the cache of kernels (cache.h), where later sessions find it.  No run waits for a
 * measurement: another number of samples has own launches unless its choice is on disk.  If the library fails, the
 * launch is ours.
 *
 * All calls by the session's thread, inside the context, and, but for amp_cuda_products_enqueue, outside of a
 * capture. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LIBRARY_PRODUCTS_H
#define AMP_RUNTIME_DEVICE_CUDA_LIBRARY_PRODUCTS_H

#include "cuda_sdk/cublaslt.h"
#include "runtime/device/cuda/launch.h"

typedef struct amp_cuda_choice amp_cuda_choice; /* of a launch: ours, or an algorithm for each product */

typedef struct amp_cuda_products {
    amp_cuda_context *context;
    const amp_allocator *allocator;
    const amp_log *log;
    CuStream stream; /* for measurements: nothing else runs there */
    int32_t mode;    /* AMP_PRODUCTS_* */
    amp_cublaslt library;
    CublasLtHandle handle; /* NULL: not opened, or |given_up| */
    bool given_up;
    CuPointer workspace; /* launches have it in turn */
    size_t workspace_bytes;
    bool captured;  /* a graph has its address: it stays where it is */
    bool failed;    /* a call, in a capture that may have ended by it */
    double seconds; /* of measurements so far */
    amp_cuda_choice *choices;
} amp_cuda_products;

/* |options| as the session has them.  Nothing is opened yet. */
void amp_cuda_products_make(amp_cuda_products *products, const amp_cuda_options *options, amp_cuda_context *context,
                            CuStream stream, const amp_log *log, const amp_allocator *allocator);
void amp_cuda_products_free(amp_cuda_products *products); /* zeros: a no-op */

/* Chooses for the launches of |run| (its program, n and needed kernels): what was chosen before, or is on disk; with
 * |measure| what is fastest now.  AMP_NOT_FOUND: the session asks for the fastest, and there is no library. */
amp_status amp_cuda_products_choose(const amp_cuda_launching *launching, const amp_run *run, bool measure,
                                    amp_error *err);

/* Whether kernel |kernel| of |run| has no choice yet, and products that are worth one. */
bool amp_cuda_products_may_take(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel);

/* NULL: the own launch.  A run that is looked at counts in its kernels (amp_run.looked_at). */
amp_cuda_choice *amp_cuda_products_find(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel);
/* The calls, without what follows them.  |*done| false: one failed, and the own launch is to make all. */
amp_status amp_cuda_products_enqueue(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel,
                                     amp_cuda_choice *choice, CuStream stream, bool *done, amp_error *err);

#endif
