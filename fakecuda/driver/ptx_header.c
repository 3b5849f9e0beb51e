/* ptx_header.c: .version and .target of PTX, which decide whether it is for this driver and device at all, before
 * anything else of it is read. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

static const char *skip(const char *t) { /* blanks and comments */
    for (;;) {
        if (isspace((unsigned char)*t)) t++;
        else if (t[0] == '/' && t[1] == '/') t += strcspn(t, "\n");
        else if (t[0] == '/' && t[1] == '*') {
            const char *end = strstr(t + 2, "*/");
            t = end ? end + 2 : t + strlen(t);
        } else return t;
    }
}

PtxHeader ptx_header(const char *text) {
    PtxHeader h = {0};
    int major, minor, used = 0;
    text = skip(text);
    if (sscanf(text, ".version %d.%d%n", &major, &minor, &used) != 2) return h;
    h.version = major * 10 + minor;
    text = skip(text + used);
    char suffix = 0;
    if (sscanf(text, ".target sm_%d%c", &h.target, &suffix) < 1) h.target = 0;
    h.suffix = isalpha((unsigned char)suffix) ? suffix : 0;
    return h;
}
