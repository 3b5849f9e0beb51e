/* temporary.c: see temporary.h. */
#include "tools/temporary.h"

#include <stdlib.h>

const char *temporary_folder(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}
