/* tiny_driver_rest.c: the calls that tiny_driver.c lacks: none of them is supported, or all give TINY_RESULT.  With
 * TINY_LACKS_LAUNCH defined there is no cuLaunchKernel. */
#include "runtime/device/cuda/driver_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef TINY_LACKS_LAUNCH
#define cuLaunchKernel tinyLaunchKernel
#endif

#ifndef TINY_RESULT
#define TINY_RESULT CU_NOT_SUPPORTED
#endif

/* Weak: the symbols of tiny_driver.c come first. */
#define NOT_SUPPORTED(name, symbol, parameters)                                                                        \
    __attribute__((weak, visibility("default"))) CuResult symbol parameters;                                           \
    CuResult symbol parameters { return TINY_RESULT; }

#ifndef TINY_LACKS_ALL
CUDA_DRIVER_CALLS(NOT_SUPPORTED)
#endif
