/* tiny_driver_rest.c: the calls that tiny_driver.c lacks: none of them is supported.  With TINY_LACKS_LAUNCH defined
 * there is no cuLaunchKernel. */
#include "runtime/device/cuda/driver_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef TINY_LACKS_LAUNCH
#define cuLaunchKernel tinyLaunchKernel
#endif

/* Weak: the symbols of tiny_driver.c come first. */
#define NOT_SUPPORTED(name, symbol, parameters)                                                                        \
    __attribute__((weak, visibility("default"))) CuResult symbol parameters;                                           \
    CuResult symbol parameters { return CU_NOT_SUPPORTED; }

#ifndef TINY_LACKS_ALL
CUDA_DRIVER_CALLS(NOT_SUPPORTED)
#endif
