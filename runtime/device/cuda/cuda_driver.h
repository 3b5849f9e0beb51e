/* cuda_driver.h: opening NVIDIA's driver, choosing a device, and checking every call. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_CUDA_DRIVER_H
#define AMP_RUNTIME_DEVICE_CUDA_CUDA_DRIVER_H

#include <stdbool.h>

#include "amp/base.h"
#include "runtime/device/cuda/driver_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a call that failed means, and the latch of fatal errors ------------------------------------------------ */

/* A fatal error leaves the context useless: NVIDIA's document of CUresult says of it that "any further CUDA work will
 * return the same error".  Many are found out by a later call than the one that caused them, so the first message is
 * kept and given again by every later call, without asking the driver. */

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
 * result is put into |latch| (which may be NULL).  AMP_CUDA_NOT_CALLED: what the latch keeps. */
enum { AMP_CUDA_NOT_CALLED = -1 }; /* in place of a result of the driver */
amp_status amp_cuda_result(const CudaDriver *driver, amp_cuda_latch *latch, CudaCall call, CuResult result,
                           amp_error *err);

/* One checked call: CUDA_CHECKED(driver, latch, err, mem_alloc, (&pointer, bytes)) is an amp_status.  After a fatal
 * error the driver is not called. */
#define CUDA_CHECKED(driver, latch, err, name, arguments)                                                              \
    amp_cuda_result(driver, latch, CUDA_CALL_##name,                                                                   \
                    amp_cuda_latch_is_set(latch) ? AMP_CUDA_NOT_CALLED : (driver)->name arguments, err)

/* ---- opening, and devices ---------------------------------------------------------------------------------------- */

enum {
    AMP_CUDA_MIN_DRIVER = 12000, /* CUDA 12.0 */
    AMP_CUDA_MIN_ARCH = 75,
    AMP_CUDA_MIN_ARCH_BF16 = 80 /* bf16 and tf32 in tensor cores */
};

/* Opens libcuda.so.1, fills every call of |out| and calls cuInit.  AMP_NOT_FOUND: no driver, no device.
 * AMP_UNSUPPORTED: too old, or the toolkit's stub; what to do is
 * in the message.  The driver's code stays in the process after close: it starts threads of its own.  Thread-safe. */
amp_status amp_cuda_driver_open(CudaDriver *out, amp_error *err);
void amp_cuda_driver_close(CudaDriver *driver); /* of a table that was never opened (zeros): a no-op */

typedef struct amp_cuda_device_info {
    CuDevice device;
    int ordinal, arch; /* 80 for sm_80 */
    int devices;       /* that the process sees */
    char name[96];
    size_t memory_bytes;
    int multiprocessors, warp_size, max_threads_per_block;
    int max_shared_bytes, max_shared_optin_bytes; /* of a block; the second where CU_FUNC_MAX_DYNAMIC_SHARED is set */
} amp_cuda_device_info;

/* The device |ordinal| (from 0) of those that CUDA_VISIBLE_DEVICES leaves.  AMP_NOT_FOUND: says how many there are;
 * AMP_UNSUPPORTED: older than AMP_CUDA_MIN_ARCH. */
amp_status amp_cuda_device_find(const CudaDriver *driver, int ordinal, amp_cuda_device_info *out, amp_error *err);

/* AMP_UNSUPPORTED where a model of this low precision (AMP_DT_F16, BF16, TF32 or F32) cannot run on the device, naming
 * the remedy. */
amp_status amp_cuda_check_precision(const amp_cuda_device_info *device, amp_dtype low, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
