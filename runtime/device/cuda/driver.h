/* driver.h: opening NVIDIA's driver and choosing a device. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_DRIVER_H
#define AMP_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "amp/base.h"
#include "runtime/device/cuda/driver_api.h"

#ifdef __cplusplus
extern "C" {
#endif

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
