/* tiny_driver.c: a libcuda.so.1 that only reports devices, as the environment says:
 *   TINY_INIT     what cuInit returns                      TINY_VERSION  of the driver, default 12040
 *   TINY_DEVICES  how many, default 1                      TINY_ARCH     default 80
 * tiny_driver_rest.c has the other calls.  With TINY_LACKS_ALL defined it is a library without any. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/cuda/driver_api.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef TINY_LACKS_ALL
static int setting(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

EXPORT CuResult cuInit(unsigned int flags) {
    (void)flags;
    return setting("TINY_INIT", CU_SUCCESS);
}

EXPORT CuResult cuDriverGetVersion(int *version) {
    *version = setting("TINY_VERSION", 12040);
    return CU_SUCCESS;
}

EXPORT CuResult cuGetErrorName(CuResult error, const char **text) {
    *text = error == CU_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY" : "CUDA_ERROR_TINY";
    return error == CU_NO_DEVICE ? CU_INVALID_VALUE : CU_SUCCESS;
}

EXPORT CuResult cuGetErrorString(CuResult error, const char **text) {
    *text = "as the test asked for";
    return error == CU_NO_DEVICE ? CU_INVALID_VALUE : CU_SUCCESS;
}

EXPORT CuResult cuDeviceGetCount(int *count) {
    *count = setting("TINY_DEVICES", 1);
    return CU_SUCCESS;
}

EXPORT CuResult cuDeviceGet(CuDevice *device, int ordinal) {
    *device = 100 + ordinal;
    return CU_SUCCESS;
}

EXPORT CuResult cuDeviceGetName(char *name, int size, CuDevice device) {
    snprintf(name, (size_t)size, "Tiny %d", device);
    return CU_SUCCESS;
}

EXPORT CuResult cuDeviceTotalMem_v2(size_t *bytes, CuDevice device) {
    *bytes = (size_t)device << 30;
    return CU_SUCCESS;
}

EXPORT CuResult cuDeviceGetAttribute(int *value, int attribute, CuDevice device) {
    (void)device;
    int arch = setting("TINY_ARCH", 80);
    switch (attribute) {
    case CU_ATTR_CC_MAJOR: *value = arch / 10; break;
    case CU_ATTR_CC_MINOR: *value = arch % 10; break;
    default: *value = 1000 + attribute;
    }
    return CU_SUCCESS;
}
#endif
