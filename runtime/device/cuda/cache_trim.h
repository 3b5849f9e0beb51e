/* cache_trim.h: keeping the folder of cached kernels within its limit. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_CACHE_TRIM_H
#define AMP_RUNTIME_DEVICE_CUDA_CACHE_TRIM_H

#include "amp/base.h"

/* A cached kernel's name is 64 letters of its key and this; while it is written, also what base/file.h adds. */
#define AMP_CUDA_CACHE_SUFFIX ".kernel"
enum { AMP_CUDA_CACHE_NAME_ROOM = 96 };

/* Removes the kernels that were used longest ago until |limit| bytes are left, and what processes that died left
 * half-written.  Files of other names stay.  Failures are ignored: the next call does it. */
void amp_cuda_cache_trim(const char *folder, long long limit, const amp_allocator *allocator);

#endif
