/* external.c: which files a model may name (files.h).
 *
 * What other readers let through became CVE-2022-25882 and CVE-2024-27318 (".." on the way), CVE-2026-27489 and
 * CVE-2026-34447 (symbolic links).  Here the way is gone name by name, each from the folder that is open. */
#define _XOPEN_SOURCE 700 /* openat, O_NOFOLLOW */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "onnx/files.h"

static amp_status refuse(const OnnxFiles *f, const char *location, const char *why, amp_error *err) {
    return amp_fail(err, AMP_BAD_FILE, "%s: external data '%s' %s", f->path, location, why);
}

static const char not_below[] = "is not named by a path below the model's folder; such a file is not read.  Copy it "
                                "there, and name it by its path from there";
static const char is_link[] = "is, or is reached by, a symbolic link; such a file is not read.  Put the file itself "
                              "there";
static const char many_names[] = "has several names (hard links), and may be any file of the machine; such a file is "
                                 "not read.  Put a copy there";

/* Names of |location|, one after the other; "." is skipped. */
static bool next_name(const char **at, char name[256]) {
    for (;;) {
        const size_t length = strcspn(*at, "/");
        if (length >= 256) return false;
        memcpy(name, *at, length);
        name[length] = '\0';
        *at += length;
        *at += strspn(*at, "/");
        if (strcmp(name, ".") || !**at) return true;
    }
}

static bool is_below(const char *location) {
    char name[256];
    if (!*location || *location == '/' || location[strlen(location) - 1] == '/') return false;
    for (const char *at = location; *at;)
        if (!next_name(&at, name) || !strcmp(name, "..") || !strcmp(name, ".")) return false;
    return true;
}

static int open_retrying(int folder, const char *name, int flags) {
    int fd;
    do fd = openat(folder, name, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* The folder of the model: a path that the user gave, whose links are followed. */
static int open_folder(const char *path) {
    char folder[AMP_FILE_PATH] = ".";
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (length) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    return open_retrying(AT_FDCWD, folder, O_DIRECTORY);
}

/* -1: errno. */
static int open_below(int folder, const char *location) {
    char name[256];
    for (const char *at = location; folder >= 0;) {
        next_name(&at, name);
        const int next = open_retrying(folder, name, *at ? O_NOFOLLOW | O_DIRECTORY : O_NOFOLLOW), reason = errno;
        close(folder);
        errno = reason;
        if (next < 0 || !*at) return next;
        folder = next;
    }
    return -1;
}

static bool is_way_of_links(const OnnxFiles *f, const char *location, int reason) {
    char path[AMP_FILE_PATH];
    struct stat st;
    const char *slash = strrchr(f->path, '/');
    const size_t folder = slash ? (size_t)(slash - f->path) + 1 : 0, length = strlen(location);
    if (reason == ELOOP || reason == EMLINK) return true;
    if (reason != ENOTDIR || folder + length >= sizeof path) return false;
    memcpy(path, f->path, folder);
    for (size_t i = 0; i < length; i++) { /* which folder is a link */
        memcpy(path + folder, location, i);
        path[folder + i] = '\0';
        if (i && location[i] == '/' && !lstat(path, &st) && S_ISLNK(st.st_mode)) return true;
    }
    return false;
}

static amp_status check_kind(const OnnxFiles *f, const char *location, amp_file_reader *file, amp_error *err) {
    struct stat st;
    if (fstat(file->fd, &st))
        return amp_fail_errno(err, AMP_IO, errno, "%s: cannot read external data '%s'", f->path, location);
    if (!S_ISREG(st.st_mode)) return refuse(f, location, "is no regular file; only such a file is read", err);
    if (st.st_nlink != 1) return refuse(f, location, many_names, err);
    file->size = (uint64_t)st.st_size;
    file->changed_seconds = st.st_mtim.tv_sec;
    file->changed_nanoseconds = st.st_mtim.tv_nsec;
    return AMP_OK;
}

amp_status onnx_external_open(OnnxFiles *f, const char *location, amp_error *err) {
    if (f->external.fd >= 0 && !strcmp(location, f->location)) return AMP_OK;
    amp_file_reader_close(&f->external);
    if (!is_below(location)) return refuse(f, location, not_below, err);
    f->external.fd = open_below(open_folder(f->path), location);
    if (f->external.fd < 0) {
        const int reason = errno;
        if (is_way_of_links(f, location, reason)) return refuse(f, location, is_link, err);
        return amp_fail_errno(err, reason == ENOENT || reason == ENOTDIR ? AMP_NOT_FOUND : AMP_IO, reason,
                              "%s: cannot open its external data '%s', which belongs beside it", f->path, location);
    }
    amp_status status = check_kind(f, location, &f->external, err);
    if (status) amp_file_reader_close(&f->external);
    else f->location = location;
    return status;
}
