/* model_library.c: see model_library.h.
 *
 * The system's loader takes names of files only, and takes two names or two files (device and inode) that are equal for
 * one library: it would answer with an old model where a new one has taken its path.  So the bytes go to a file that
 * has no other name: one in memory, which is opened as /proc/self/fd/N; or, where there is no such thing, a temporary
 * one, which is unlinked once it is mapped.  Neither can be written by anybody afterwards.
 */
#define _GNU_SOURCE /* memfd_create, mkostemps */
#include "runtime/model/model_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

typedef struct Opening {
    const void *bytes;
    size_t size;
    char label[200]; /* the file's name, as debuggers show it */
    void *library;
    char memory[256], file[256]; /* why there is no library from there */
} Opening;

static bool load(Opening *o, const char *path, char why[256]) {
    o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (o->library) return true;
    const char *reason = dlerror();
    snprintf(why, 256, "%s", reason ? reason : "the system gives no reason");
    return false;
}

/* ---- in memory --------------------------------------------------------------------------------------------------- */

/* The number of a descriptor is given out again, the number of a file's inode only when the library is gone.  So the
 * path spells the inode, which changes nothing of what it leads to: "/." for ones, "/" for zeros. */
static void spell_path(int fd, uint64_t inode, char path[256]) {
    char *at = path + sprintf(path, "/proc/self/fd");
    for (; inode; inode >>= 1) at += sprintf(at, inode & 1 ? "/." : "/");
    sprintf(at, "/%d", fd);
}

#ifdef MFD_CLOEXEC
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3: no program; it can be mapped as code whatever vm.memfd_noexec says */
#endif

static int file_in_memory(const char *label) {
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(label, MFD_CLOEXEC) : fd;
}
#else
static int file_in_memory(const char *label) {
    (void)label;
    errno = ENOSYS;
    return -1;
}
#endif

static bool open_in_memory(Opening *o) {
    char path[256];
    struct stat st;
    int fd = file_in_memory(o->label);
    if (fd < 0 || amp_fd_write(fd, o->bytes, o->size) < o->size || fstat(fd, &st)) {
        snprintf(o->memory, sizeof o->memory, "no file in memory: %s", strerror(errno));
        if (fd >= 0) close(fd);
        return false;
    }
    spell_path(fd, (uint64_t)st.st_ino, path);
    bool done = load(o, path, o->memory);
    close(fd);
    return done;
}

/* ---- in a temporary file ----------------------------------------------------------------------------------------- */

/* The loader expands what follows a dollar. */
static bool can_hold(const char *folder) {
    return folder && folder[0] == '/' && !strchr(folder, '$') && strlen(folder) < PATH_MAX - 256;
}

static bool open_in_folder(Opening *o, const char *folder) {
    char path[PATH_MAX];
    if (!can_hold(folder)) return false;
    snprintf(path, sizeof path, "%s/amp-XXXXXX-%s", folder, o->label);
    int fd = mkostemps(path, (int)strlen(o->label) + 1, O_CLOEXEC);
    bool written = fd >= 0 && amp_fd_write(fd, o->bytes, o->size) == o->size;
    if (!written) snprintf(o->file, sizeof o->file, "a temporary file in %.100s: %s", folder, strerror(errno));
    if (fd >= 0) close(fd);
    bool done = written && load(o, path, o->file);
    if (fd >= 0) unlink(path);
    return done;
}

static bool open_in_file(Opening *o) {
    return open_in_folder(o, getenv("TMPDIR")) || open_in_folder(o, "/dev/shm") || open_in_folder(o, "/var/tmp") ||
           open_in_folder(o, "/tmp");
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

static void set_label(Opening *o, const char *name) {
    const char *slash = strrchr(name, '/');
    snprintf(o->label, sizeof o->label, "%s", slash ? slash + 1 : name);
    for (char *c = o->label; *c; c++)
        if (*c == '$') *c = '_';
}

amp_status amp_library_open(const void *bytes, size_t size, const char *name, void **out, amp_error *err) {
    Opening o = {.bytes = bytes, .size = size};
    *out = NULL;
    set_label(&o, name);
    if (open_in_memory(&o) || open_in_file(&o)) {
        *out = o.library;
        return AMP_OK;
    }
    return amp_fail(err, AMP_IO,
                    "%s: the system cannot load it: %s; %s; mount /proc, or let TMPDIR be a folder of a file system "
                    "that may hold programs",
                    name, o.memory, o.file);
}

void *amp_library_symbol(void *library, const char *symbol) { return dlsym(library, symbol); }

void amp_library_close(void *library) {
    if (library) dlclose(library);
}
