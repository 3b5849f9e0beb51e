/* error.h: what a driver call that failed means, and the latch of fatal errors.
 *
 * A fatal error leaves the context useless: NVIDIA's document of CUresult says of it that "any further CUDA work will
 * return the same error".  Many are found out by a later call than the one that caused them, so the first message is
 * kept and given again by every later call, without asking the driver. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_ERROR_H
#define AMP_RUNTIME_DEVICE_CUDA_ERROR_H

#include <stdbool.h>

#include "amp/base.h"
#include "runtime/device/cuda/driver_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA_CALL_mem_alloc, ...: for messages. */
#define CUDA_CALL_ID(name, symbol, parameters) CUDA_CALL_##name,
typedef enum CudaCall { CUDA_DRIVER_CALLS(CUDA_CALL_ID) CUDA_CALL_COUNT } CudaCall;
#undef CUDA_CALL_ID

const char *amp_cuda_call_symbol(CudaCall call); /* "cuMemAlloc_v2" */
bool amp_cuda_result_is_fatal(CuResult result);
amp_status amp_cuda_result_status(CuResult result);

typedef struct amp_cuda_latch { /* zeros: nothing failed yet.  Any thread may set and ask. */
    int state;                  /* by __atomic_ calls */
    amp_error first;
} amp_cuda_latch;

bool amp_cuda_latch_is_set(const amp_cuda_latch *latch); /* NULL: false */
/* AMP_OK, or the status of the first fatal error and "the device failed earlier: ..". */
amp_status amp_cuda_latch_check(const amp_cuda_latch *latch, amp_error *err);
/* For tests, and for what is fatal without a CuResult. */
void amp_cuda_latch_set(amp_cuda_latch *latch, const amp_error *first);

/* AMP_OK for CU_SUCCESS, else a status and "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".  A fatal
 * result is put into |latch| (which may be NULL). */
amp_status amp_cuda_result(const CudaDriver *driver, amp_cuda_latch *latch, CudaCall call, CuResult result,
                           amp_error *err);

/* One checked call: CUDA_CHECKED(driver, latch, err, mem_alloc, (&pointer, bytes)) is an amp_status.  After a fatal
 * error the driver is not called. */
#define CUDA_CHECKED(driver, latch, err, name, arguments)                                                              \
    (amp_cuda_latch_is_set(latch) ? amp_cuda_latch_check(latch, err)                                                   \
                                  : amp_cuda_result(driver, latch, CUDA_CALL_##name, (driver)->name arguments, err))

#ifdef __cplusplus
}
#endif
#endif
