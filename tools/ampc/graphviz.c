/* graphviz.c: see report_parts.h.  The drawings and the answer are files of a folder of their own, so that neither
 * program waits for the other. */
#include "tools/ampc/report_parts.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/outputs.h"

extern char **environ;

enum { WRITE = O_WRONLY | O_CREAT | O_TRUNC };

typedef struct Folder {
    char path[TEMPORARY_PATH], drawings[TEMPORARY_PATH + 16], plain[TEMPORARY_PATH + 16];
} Folder;

static bool make_folder(Folder *f) {
    if (!temporary_make_folder("ampc-dot", f->path)) return false;
    snprintf(f->drawings, sizeof f->drawings, "%s/drawings", f->path);
    snprintf(f->plain, sizeof f->plain, "%s/plain", f->path);
    return true;
}

static void remove_folder(const Folder *f) {
    unlink(f->drawings);
    unlink(f->plain);
    rmdir(f->path);
}

/* Of several drawings, -o takes the first alone.  What dot says of fonts that a machine lacks, nobody needs. */
static bool run(const Folder *f) {
    char input[sizeof f->drawings];
    char *const argv[] = {(char[]){"dot"}, (char[]){"-Tplain"}, input, NULL};
    posix_spawn_file_actions_t files;
    int status = -1;
    pid_t child;
    snprintf(input, sizeof input, "%s", f->drawings);
    if (posix_spawn_file_actions_init(&files)) return false;
    const bool started = !posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, f->plain, WRITE, 0600) &&
                         !posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) &&
                         !posix_spawnp(&child, "dot", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return started && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool graphviz_plain(const void *drawings, size_t size, char **out, size_t *out_size) {
    Folder f;
    amp_error ignored;
    if (!make_folder(&f)) return false;
    const bool done = !amp_file_replace(f.drawings, drawings, size, NULL, &ignored) && run(&f) &&
                      !amp_file_read(f.plain, 0, NULL, out, out_size, &ignored);
    remove_folder(&f);
    return done;
}
