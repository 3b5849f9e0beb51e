/* devices.c: the devices of this build. */
#include "runtime/device/device.h"

const amp_device_type *const amp_device_types[] = {&amp_device_cpu, &amp_device_cuda, &amp_device_null, NULL};
