/* nvrtc_search.h: where NVRTC may be installed (see nvrtc.h). */
#ifndef AMP_CUDA_SDK_NVRTC_SEARCH_H
#define AMP_CUDA_SDK_NVRTC_SEARCH_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Says whether an opened library is usable; where not, the search goes on. */
typedef amp_status (*amp_nvrtc_accept)(void *ctx, void *library, amp_error *err);

/* Opens the first library that |accept| takes.  AMP_NOT_FOUND: there is none; AMP_BAD_FILE: none but one that cannot be
 * used.  The caller closes it. */
amp_status amp_nvrtc_search(amp_nvrtc_accept accept, void *ctx, void **library, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
