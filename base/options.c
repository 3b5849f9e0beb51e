/* options.c: see options.h. */
#include "base/options.h"

#include <string.h>

amp_status amp_options_read(void *to, size_t size, const void *from, const char *what, amp_error *err) {
    size_t given;
    memset(to, 0, size);
    if (!from) return AMP_OK;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: struct_size is %zu; set it to sizeof(%s)", what, given, what);
    memcpy(to, from, given < size ? given : size);
    return AMP_OK;
}
