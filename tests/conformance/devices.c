/* devices.c: the devices of the suite: the product's, and the skeleton.  Linked instead of
 * runtime/device/devices.c. */
#include <string.h>

#include "runtime/device/device.h"
#include "tests/conformance/skeleton_device.h"

static const amp_device_type *const types[] = {&amp_device_cpu, &amp_device_cuda, &amp_device_null,
                                               &amp_device_skeleton};

const amp_device_type *amp_device_type_named(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i]->name, name)) return types[i];
    return NULL;
}
