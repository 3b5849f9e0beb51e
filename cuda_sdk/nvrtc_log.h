/* nvrtc_log.h: what NVRTC and ptxas write into a compilation's log. */
#ifndef AMP_CUDA_SDK_NVRTC_LOG_H
#define AMP_CUDA_SDK_NVRTC_LOG_H

#include "cuda_sdk/nvrtc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entries that ptxas -v reports; fills up to |size|, returns how many there are. */
int amp_nvrtc_log_uses(const char *log, amp_nvrtc_kernel_use *uses, int size);

/* The first error of |log| in one line, up to |size| bytes: "name, line 2: identifier "y" is undefined: `x[0] = y;`".
 * Without one: the log's first line, or "". */
void amp_nvrtc_log_error(const char *log, const char *name, const char *source, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
