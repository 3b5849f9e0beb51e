/* blend.h: params on the device that follow others (amp_params_blend). */
#ifndef AMP_RUNTIME_DEVICE_CUDA_BLEND_H
#define AMP_RUNTIME_DEVICE_CUDA_BLEND_H

#include "runtime/device/cuda/context.h"

/* Inside: enqueues it on |stream|.  |blending| is zeroed before the first. */
amp_status amp_cuda_blend(amp_cuda_blending *blending, amp_cuda_context *context, const amp_memory_blend *blend,
                          float t, CuStream stream, amp_error *err);
void amp_cuda_blending_free(amp_cuda_blending *blending, amp_cuda_context *context); /* inside */

#endif
