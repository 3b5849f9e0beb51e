/* idx_counted.c: the IDX reader of amprun, with its memory counted. */
#include "tests/robustness/idx_counted.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t peak;
static char message[1024];

/* The reader has one array, which only grows. */
static void *counted_realloc(void *p, size_t size) {
    if (size > peak) peak = size;
    return realloc(p, size);
}

#define realloc counted_realloc
#define idx_read counted_idx_read
#define report counted_report
#define report_text counted_report_text
#include "tools/amprun/data/idx.c"
#undef realloc

int counted_report_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return 1;
}

int counted_report(const amp_error *err) { return counted_report_text("%s", err->message); }

const char *idx_counted(const char *path, struct IdxArray *out, size_t *most) {
    peak = 0;
    message[0] = 0;
    int failed = counted_idx_read(path, out);
    *most = peak;
    return failed ? message : NULL;
}
