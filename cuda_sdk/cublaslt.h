/* cublaslt.h: NVIDIA's matrix products, opened where they are installed (library_search.h; CUBLASLT_PATH, PyPI's
 * nvidia-cublas).  CUDA 11, 12 and 13.  Opening needs no GPU and no driver, a handle needs both. */
#ifndef AMP_CUDA_SDK_CUBLASLT_H
#define AMP_CUDA_SDK_CUBLASLT_H

#include "cuda_sdk/cublaslt_api.h"
#include "cuda_sdk/library_search.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_cublaslt {
    CublasLtApi calls;
    void *library;
    int driver, version, patch; /* 13010 and 2 for 13.1.2 */
} amp_cublaslt;
extern const amp_library_places amp_cublaslt_places;

/* |driver|: the version of CUDA that the driver has, 12040 for 12.4: a library of a newer major version does not run
 * on it, and is passed over; 0: any will do.  AMP_NOT_FOUND names the places that were searched and what to install,
 * AMP_BAD_FILE a library that was found and why it cannot be used.  Any thread.  It stays in the process. */
amp_status amp_cublaslt_open(amp_cublaslt *out, int driver, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
