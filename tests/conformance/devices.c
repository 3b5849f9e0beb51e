/* devices.c: the devices of the suite: the product's, and the skeleton.  Linked instead of
 * runtime/device/devices.c. */
#include <string.h>

#include "base/error.h"
#include "runtime/device/device.h"
#include "tests/conformance/skeleton_device.h"

static const amp_device_type *const types[] = {&amp_device_cpu, &amp_device_cuda, &amp_device_null,
                                               &amp_device_skeleton};

amp_status amp_device_type_find(const char *name, const amp_device_type **out, amp_error *err) {
    if (!name) name = amp_device_cpu.name;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i]->name, name)) return *out = types[i], AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "device %s: the suite has cpu, cuda, null and skeleton", name);
}
