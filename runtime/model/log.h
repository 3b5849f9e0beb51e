/* log.h: what the library would like to say, to the application's callback (amp_session_options.log). */
#ifndef AMP_RUNTIME_MODEL_LOG_H
#define AMP_RUNTIME_MODEL_LOG_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_log {
    void (*say)(void *user, amp_log_level level, const char *text); /* NULL: nothing is said */
    void *user;
} amp_log;

/* One line.  Only from the thread that called the library; |log| may be NULL.  If |say| is NULL, nothing is
 * formatted. */
void amp_log_say(const amp_log *log, amp_log_level level, const char *fmt, ...) AMP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
