/* load.h: a model's functions in the driver, ready to be launched.
 *
 * An image of each function for one architecture is the first of: a cubin in the model for exactly this architecture;
 * the cache; NVRTC; PTX in the model for an architecture not above this one.  NVRTC and the cache are opened only if
 * some function needs them.  Several functions are compiled at once.
 *
 * A driver that takes no machine code (the first cubin is refused: CU_NO_BINARY_FOR_GPU or CU_INVALID_IMAGE) gets PTX
 * for all functions. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LOAD_H
#define AMP_RUNTIME_DEVICE_CUDA_LOAD_H

#include <stdbool.h>

#include "amp/model_abi.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/model/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- images ------------------------------------------------------------------------------------------------------ */

typedef enum amp_cuda_origin {
    AMP_CUDA_FROM_NOWHERE,
    AMP_CUDA_FROM_MODEL, /* cubin or PTX */
    AMP_CUDA_FROM_CACHE,
    AMP_CUDA_FROM_NVRTC
} amp_cuda_origin;

/* Ready for cuModuleLoadDataEx. */
typedef struct amp_cuda_image {
    const void *data; /* PTX ends with a NUL that |size| counts */
    size_t size;
    bool is_cubin;
    bool owned; /* else |data| is in the model */
    amp_cuda_origin origin;
    int arch;                                                  /* that it was compiled for */
    int32_t registers, shared_bytes, spill_bytes, stack_bytes; /* as ptxas said; -1: not known */
    double compile_seconds;                                    /* NVRTC's */
} amp_cuda_image;

typedef struct amp_cuda_compile_options {
    int arch;                /* of the device: 80 for sm_80 */
    int threads;             /* compiling at once; 0: one per processor */
    bool machine_code;       /* false: PTX only, which the driver compiles */
    const char *device_name; /* for messages; may be NULL */
    const amp_log *log;      /* may be NULL */
} amp_cuda_compile_options;

/* Whether a device of |arch| is new enough for it.  The last choice of every kernel is. */
static inline bool amp_cuda_function_suits(const amp_model_cuda_function *function, int arch) {
    return function->min_arch <= (uint32_t)arch;
}

/* Fills the |images| that have no data yet, but of functions that need a newer architecture; |functions| must outlive
 * them.  After an error, which is about the first function that has no image, some may be filled: free them all the
 * same.  AMP_UNSUPPORTED, AMP_NOT_FOUND: no image for this architecture and no way to make one; the message names what
 * to install or to ask of ampc.  Memory of images is malloc's, because several threads make them. */
amp_status amp_cuda_compile(const amp_cuda_compile_options *options, const char *prelude,
                            const amp_model_cuda_function *functions, int count, amp_cuda_image *images,
                            amp_error *err);
void amp_cuda_images_free(amp_cuda_image *images, int count);

/* Where amp_cuda_compile would take them from; nothing is compiled for it. */
typedef struct amp_cuda_origins {
    int from[AMP_CUDA_FROM_NVRTC + 1]; /* functions, by amp_cuda_origin */
    int model_ptx;                     /* of those from the model: PTX, because there is no compiler */
} amp_cuda_origins;

/* The error of amp_cuda_compile, at the first function without an image; those before it are counted. */
amp_status amp_cuda_find_origins(const amp_cuda_compile_options *options, const char *prelude,
                                 const amp_model_cuda_function *functions, int count, amp_cuda_origins *out,
                                 amp_error *err);

/* ---- in the driver ----------------------------------------------------------------------------------------------- */

typedef struct amp_cuda_loaded {
    CuModule module;
    CuFunction function;
    amp_cuda_origin origin;
    bool is_cubin;
    bool waits; /* for earlier launches (amp_model_cuda_function.waits_from) */
    /* Of the image; where that does not know, the driver's attributes (spills: -1). */
    int32_t registers, shared_bytes, spill_bytes, stack_bytes;
    double compile_seconds;
} amp_cuda_loaded;

typedef struct amp_cuda_loader {
    const CudaDriver *driver; /* the context that is current gets the modules */
    amp_cuda_latch *latch;
    const amp_cuda_device_info *device;
    const amp_allocator *allocator;
    int threads;        /* compiling at once; 0: one per processor */
    const amp_log *log; /* may be NULL */
    /* What an earlier load has seen: */
    bool probed; /* the driver took a function */
    bool as_ptx; /* it takes no machine code */
} amp_cuda_loader;

/* Compiles and loads |count| functions into |out|: all or none of those that the device is new enough for.  The others
 * keep |function| NULL. */
amp_status amp_cuda_load(amp_cuda_loader *loader, const char *prelude, const amp_model_cuda_function *functions,
                         int count, amp_cuda_loaded *out, amp_error *err);
/* Unloads and clears; after a fatal error the driver is left alone. */
void amp_cuda_unload(const CudaDriver *driver, const amp_cuda_latch *latch, amp_cuda_loaded *loaded, int count);

#ifdef __cplusplus
}
#endif

#endif
