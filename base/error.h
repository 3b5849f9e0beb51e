/* error.h: what every call of the public API needs: filling an amp_error (amp/base.h), reading its options. */
#ifndef AMP_BASE_ERROR_H
#define AMP_BASE_ERROR_H

#include <stdarg.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes |code| and the formatted message into |err| (which may be NULL) and returns |code|. */
amp_status amp_fail(amp_error *err, amp_status code, const char *fmt, ...) AMP_PRINTF(3, 4);
amp_status amp_vfail(amp_error *err, amp_status code, const char *fmt, va_list args);
/* The same with ": <text of errno>" appended. */
amp_status amp_fail_errno(amp_error *err, amp_status code, int errnum, const char *fmt, ...) AMP_PRINTF(4, 5);

#define AMP_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        amp_status try_status_ = (expr);                                                                               \
        if (try_status_) return try_status_;                                                                           \
    } while (0)

/* ---- option structs of the public API, which grow at their end --------------------------------------------------- */

/* Copies the caller's options into ours, |size| bytes: what an older caller does not know is zero, what we do not know
 * is not read. |from| may be NULL: all zero.  AMP_INVALID_ARGUMENT where struct_size was not set.  |what| names the
 * struct. */
amp_status amp_options_read(void *to, size_t size, const void *from, const char *what, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
