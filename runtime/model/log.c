/* log.c: see log.h. */
#include "runtime/model/log.h"

#include <stdarg.h>

#include "base/error.h"

/* An error's message is what a line needs: cut where it is too long, and without what terminals obey. */
void amp_log_say(const amp_log *log, amp_log_level level, const char *fmt, ...) {
    amp_error line;
    va_list args;
    if (!log || !log->say) return;
    va_start(args, fmt);
    (void)amp_vfail(&line, AMP_OK, fmt, args);
    va_end(args);
    log->say(log->user, level, line.message);
}
