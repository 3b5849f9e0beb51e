/* compile.h: images of a model's functions for one architecture.
 *
 * For each function the first of: a cubin in the model for exactly this architecture; the cache; NVRTC; PTX in the
 * model for an architecture not above this one.  NVRTC and the cache are opened only if some function needs them.
 * Several functions are compiled at once. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_COMPILE_H
#define AMP_RUNTIME_DEVICE_CUDA_COMPILE_H

#include <stdbool.h>

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

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
} amp_cuda_compile_options;

/* Fills those of |images| that have no data yet; |functions| must outlive them.  After an error, which is that of the
 * first function that has no image, some may be filled: free them all the same.  AMP_UNSUPPORTED, AMP_NOT_FOUND: no
 * image for this architecture and no way to make one; the message names what to install or to ask of ampc.  Memory of
 * images is malloc's, because several threads make them. */
amp_status amp_cuda_compile(const amp_cuda_compile_options *options, const char *prelude,
                            const amp_model_cuda_function *functions, int count, amp_cuda_image *images,
                            amp_error *err);
void amp_cuda_images_free(amp_cuda_image *images, int count);

#ifdef __cplusplus
}
#endif
#endif
