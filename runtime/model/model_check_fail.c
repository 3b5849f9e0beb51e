/* model_check_fail.c: what is wrong with a model, in words. */
#include "runtime/model/model_check.h"

amp_status amp_check_fail(const amp_check *c, const char *format, ...) {
    amp_error what = {0};
    va_list args;
    va_start(args, format);
    amp_vfail(&what, AMP_BAD_FILE, format, args);
    va_end(args);
    const char *program = c->program ? c->program->name : "", *colon = c->program ? ": " : "";
    return amp_fail(c->err, AMP_BAD_FILE, "%s: %s%s%s; compile the model again", c->where, program, colon,
                    what.message);
}
