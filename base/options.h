/* options.h: option structs of the public API, which grow at their end. */
#ifndef AMP_BASE_OPTIONS_H
#define AMP_BASE_OPTIONS_H

#include "base/error.h"

/* Copies the caller's options into ours, |size| bytes: what an older caller does not know is zero, what we do not know
 * is not read. |from| may be NULL: all zero.  AMP_INVALID_ARGUMENT where struct_size was not set.  |what| names the
 * struct. */
amp_status amp_options_read(void *to, size_t size, const void *from, const char *what, amp_error *err);

#endif
