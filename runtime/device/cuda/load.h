/* load.h: a model's functions in the driver, ready to be launched.
 *
 * A driver that takes no machine code (the first cubin is refused: CU_NO_BINARY_FOR_GPU or CU_INVALID_IMAGE) gets PTX
 * for all functions. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LOAD_H
#define AMP_RUNTIME_DEVICE_CUDA_LOAD_H

#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_cuda_loaded {
    CuModule module;
    CuFunction function;
    amp_cuda_origin origin;
    bool is_cubin;
    /* Of the image; where that does not know, the driver's attributes (spills: -1). */
    int32_t registers, shared_bytes, spill_bytes, stack_bytes;
    double compile_seconds;
} amp_cuda_loaded;

typedef struct amp_cuda_loader {
    const CudaDriver *driver; /* the context that is current gets the modules */
    amp_cuda_latch *latch;
    const amp_cuda_device_info *device;
    const amp_allocator *allocator;
    int threads; /* compiling at once; 0: one per processor */
} amp_cuda_loader;

/* Compiles and loads |count| functions into |out|.  All or none. */
amp_status amp_cuda_load(const amp_cuda_loader *loader, const char *prelude, const amp_model_cuda_function *functions,
                         int count, amp_cuda_loaded *out, amp_error *err);
/* Unloads and clears; after a fatal error the driver is left alone. */
void amp_cuda_unload(const CudaDriver *driver, const amp_cuda_latch *latch, amp_cuda_loaded *loaded, int count);

#ifdef __cplusplus
}
#endif
#endif
