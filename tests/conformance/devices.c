/* devices.c: the list of devices with the skeleton's; it takes the place of runtime/device/devices.c. */
#include "runtime/device/device.h"
#include "tests/conformance/skeleton_device.h"

const amp_device_type *const amp_device_types[] = {&amp_device_cpu, &amp_device_cuda, &amp_device_null,
                                                   &amp_device_skeleton, NULL};
