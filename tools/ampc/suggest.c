/* suggest.c: see command.h. */
#include "tools/ampc/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* The amprun that was built or installed with this ampc; false: it is not known where that would be. */
static bool find_beside(char path[AMP_FILE_PATH]) {
    static const char name[] = "amprun";
    const ssize_t length = readlink("/proc/self/exe", path, AMP_FILE_PATH - sizeof name);
    if (length <= 0) return false;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    memcpy(slash + 1, name, sizeof name);
    return true;
}

int suggest_become_amprun(char **argv) {
    char path[AMP_FILE_PATH], name[] = "amprun";
    const bool is_known = find_beside(path);
    argv[0] = name;
    if (is_known) execv(path, argv);
    if (!is_known || errno == ENOENT) execvp(name, argv);
    fprintf(stderr, "ampc: suggest: %s: %s; it trains the model, and must be beside ampc or in a folder of PATH\n",
            is_known ? path : name, strerror(errno));
    return 1;
}
