/* temporary.c: see temporary.h. */
#include "tools/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *temporary_folder(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

bool temporary_make_folder(const char *what, char path[TEMPORARY_PATH]) {
    const int length = snprintf(path, TEMPORARY_PATH, "%s/%s-XXXXXX", temporary_folder(), what);
    if (length < TEMPORARY_PATH) return mkdtemp(path) != NULL;
    errno = ENAMETOOLONG;
    return false;
}
