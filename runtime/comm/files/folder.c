/* folder.c: see folder.h. */
#define _GNU_SOURCE /* flock */
#include "runtime/comm/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

static amp_status fail_at(const char *path, const char *what, amp_error *err) {
    return amp_fail_errno(err, AMP_IO, errno, "%s: %s", path, what);
}

amp_status amp_folder_write(const char *path, const amp_piece *pieces, int32_t count, amp_error *err) {
    char beside[AMP_FOLDER_PATH + 32];
    bool whole = true;
    snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return fail_at(path, "cannot create", err);
    for (int32_t i = 0; i < count && whole; i++)
        whole = amp_fd_write(fd, pieces[i].data, pieces[i].bytes) == pieces[i].bytes;
    const int failed = whole ? 0 : errno;
    if (close(fd) == 0 && whole && rename(beside, path) == 0) return AMP_OK;
    if (failed) errno = failed;
    amp_status status = fail_at(path, "cannot write", err);
    unlink(beside);
    return status;
}

static amp_status read_at(int fd, const char *path, size_t offset, char *out, size_t bytes, amp_error *err) {
    while (bytes) {
        const ssize_t n = pread(fd, out, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_at(path, "cannot read", err);
        if (!n) return amp_fail(err, AMP_IO, "%s: is shorter than it should be", path);
        out += n;
        offset += (size_t)n;
        bytes -= (size_t)n;
    }
    return AMP_OK;
}

amp_status amp_folder_read(const char *path, size_t offset, void *out, size_t bytes, bool *there, amp_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *there = fd >= 0;
    if (fd < 0) return errno == ENOENT || errno == ESTALE ? AMP_OK : fail_at(path, "cannot open", err);
    amp_status status = read_at(fd, path, offset, out, bytes, err);
    close(fd);
    return status;
}

void amp_folder_refresh(const char *folder) {
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) close(fd);
}

int amp_folder_lock(const char *path, bool *taken) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    *taken = false;
    if (fd < 0) return -1;
    if (!flock(fd, LOCK_EX | LOCK_NB)) return fd;
    *taken = errno == EWOULDBLOCK;
    close(fd);
    return -1;
}

void amp_folder_remove(const char *folder) {
    char path[AMP_FOLDER_PATH];
    DIR *all = opendir(folder);
    if (!all) return;
    for (const struct dirent *e; (e = readdir(all));) {
        if (e->d_name[0] == '.') continue;
        const int length = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (length < (int)sizeof path) unlink(path);
    }
    closedir(all);
    rmdir(folder);
}
