/* report.c: how amprun says what went wrong: one line on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "tools/amprun/amprun.h"

int report_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "amprun: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return 1;
}

int report(const amp_error *err) { return report_text("%s", err->message); }
