/* devices.c: the devices of this build. */
#include "runtime/device/device.h"

#include <string.h>

#include "base/error.h"

static const amp_device_type *const types[] = {&amp_device_cpu, &amp_device_cuda, &amp_device_null};

amp_status amp_device_type_find(const char *name, const amp_device_type **out, amp_error *err) {
    if (!name) name = amp_device_cpu.name;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i]->name, name)) return *out = types[i], AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "device %s: this build has cpu, cuda and null", name);
}
