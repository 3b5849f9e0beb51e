/* error.c: filling an amp_error; reading option structs. */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/visible.h"

static const char ellipsis[] = "...";

static const char *const status_names[] = {
    [AMP_OK] = "AMP_OK",
    [AMP_INVALID_ARGUMENT] = "AMP_INVALID_ARGUMENT",
    [AMP_OUT_OF_MEMORY] = "AMP_OUT_OF_MEMORY",
    [AMP_IO] = "AMP_IO",
    [AMP_BAD_FILE] = "AMP_BAD_FILE",
    [AMP_NOT_FOUND] = "AMP_NOT_FOUND",
    [AMP_MISMATCH] = "AMP_MISMATCH",
    [AMP_BAD_SOURCE] = "AMP_BAD_SOURCE",
    [AMP_UNSUPPORTED] = "AMP_UNSUPPORTED",
    [AMP_WRONG_STATE] = "AMP_WRONG_STATE",
    [AMP_CANCELLED] = "AMP_CANCELLED",
    [AMP_SCALE_AT_FLOOR] = "AMP_SCALE_AT_FLOOR",
    [AMP_INTERNAL] = "AMP_INTERNAL",
    [AMP_DEVICE_FAILED] = "AMP_DEVICE_FAILED",
    [AMP_PEER_FAILED] = "AMP_PEER_FAILED",
};

const char *amp_status_name(amp_status status) {
    size_t i = (size_t)status;
    return i < sizeof status_names / sizeof *status_names ? status_names[i] : "unknown status";
}

/* Copies |message|, which is |full| bytes long, and marks where it is cut.  |message| is a separate buffer so that the
 * arguments of the format may point into |err| itself: wrapping an error in a longer one is common. */
static void set_message(amp_error *err, amp_status code, const char *message, size_t full) {
    const size_t max = sizeof err->message - 1;
    err->code = code;
    if (full <= max) {
        memcpy(err->message, message, full + 1);
        return;
    }
    size_t keep = utf8_cut(message, max - strlen(ellipsis));
    memcpy(err->message, message, keep);
    memcpy(err->message + keep, ellipsis, sizeof ellipsis);
}

/* Names come from files, and messages go to terminals: only line ends and tabs have a meaning there. */
static void mask_controls(char *message) {
    uint32_t code;
    for (size_t left = strlen(message), len; left; message += len, left -= len) {
        len = utf8_control(message, left, &code);
        if (len && *message != '\n' && *message != '\t') memset(message, '?', len);
        if (!len) len = 1;
    }
}

amp_status amp_vfail(amp_error *err, amp_status code, const char *fmt, va_list args) {
    if (!err) return code;
    char message[sizeof err->message];
    int n = vsnprintf(message, sizeof message, fmt, args);
    if (n < 0) n = snprintf(message, sizeof message, "%s", amp_status_name(code));
    mask_controls(message);
    set_message(err, code, message, (size_t)n);
    return code;
}

amp_status amp_fail(amp_error *err, amp_status code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    amp_vfail(err, code, fmt, args);
    va_end(args);
    return code;
}

amp_status amp_fail_errno(amp_error *err, amp_status code, int errnum, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    amp_vfail(err, code, fmt, args);
    va_end(args);
    char reason[128];
    if (strerror_r(errnum, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "error %d", errnum);
    if (err) amp_fail(err, code, "%s: %s", err->message, reason);
    return code;
}

/* ---- option structs ---------------------------------------------------------------------------------------------- */

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
