/* folder.c: see folder.h. */
#define _GNU_SOURCE /* flock, getrandom, O_DIRECTORY */
#include "runtime/comm/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

enum { FILE_MODE = 0600, FOLDER_MODE = 0700, NO_LINK = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, SUFFIX_LETTERS = 8 };

static amp_status fail_at(const amp_folder *f, const char *name, const char *what, amp_error *err) {
    return amp_fail_errno(err, AMP_IO, errno, "%s%s%s: %s", f ? f->path : "", f ? "/" : "", name, what);
}

static int at(const amp_folder *parent) { return parent ? parent->fd : AT_FDCWD; }

/* ---- folders ----------------------------------------------------------------------------------------------------- */

amp_status amp_folder_make(const amp_folder *parent, const char *name, bool *made, amp_error *err) {
    *made = !mkdirat(at(parent), name, FOLDER_MODE);
    return *made || errno == EEXIST ? AMP_OK : fail_at(parent, name, "cannot be made", err);
}

static amp_status check_owner(const amp_folder *f, amp_error *err) {
    struct stat st;
    if (fstat(f->fd, &st)) return amp_fail_errno(err, AMP_IO, errno, "%s: cannot be read", f->path);
    if (st.st_uid != geteuid())
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s belongs to another user (%lu, and this is %lu), who decides what is in it: give ranks a "
                        "folder that is not there yet, in one that you may write to",
                        f->path, (unsigned long)st.st_uid, (unsigned long)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s: other users may write to it (mode %04o), and ranks would believe what they write: chmod "
                        "go-w it, or give a folder that is not there yet",
                        f->path, (unsigned)(st.st_mode & 07777));
    return AMP_OK;
}

static amp_status fail_open(const amp_folder *parent, const char *name, const char *path, amp_error *err) {
    const int reason = errno;
    struct stat st;
    if (!fstatat(at(parent), name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
        return amp_fail(err, AMP_WRONG_STATE, "%s is a symbolic link: give the folder that it leads to", path);
    return amp_fail_errno(err, AMP_IO, reason, "%s: cannot be read", path);
}

amp_status amp_folder_open(const amp_folder *parent, const char *name, amp_folder *out, bool *there, amp_error *err) {
    if (parent)
        snprintf(out->path, sizeof out->path, "%.*s/%.*s", AMP_FOLDER_MOST, parent->path, AMP_FOLDER_NAME, name);
    else snprintf(out->path, sizeof out->path, "%s", name);
    out->fd = openat(at(parent), name, O_RDONLY | O_DIRECTORY | NO_LINK);
    *there = out->fd >= 0;
    if (!*there) return errno == ENOENT || errno == ESTALE ? AMP_OK : fail_open(parent, name, out->path, err);
    amp_status status = check_owner(out, err);
    if (status) amp_folder_close(out);
    return status;
}

void amp_folder_close(amp_folder *folder) {
    if (folder->fd >= 0) close(folder->fd);
    folder->fd = -1;
}

void amp_folder_refresh(const amp_folder *parent, const char *name) {
    const int fd = openat(at(parent), name, O_RDONLY | O_DIRECTORY | NO_LINK);
    if (fd >= 0) close(fd);
}

amp_status amp_folder_list(const amp_folder *folder, amp_status (*each)(void *user, const char *name, amp_error *err),
                           void *user, amp_error *err) {
    const int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | NO_LINK);
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    amp_status status = AMP_OK;
    if (!all) {
        status = amp_fail_errno(err, AMP_IO, errno, "%s: cannot be read", folder->path);
        if (fd >= 0) close(fd);
        return status;
    }
    for (const struct dirent *e; !status && (e = readdir(all));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) status = each(user, e->d_name, err);
    closedir(all);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

bool amp_folder_is_suffix(const char *text) {
    if (!*text) return true;
    return *text == '~' && strspn(text + 1, "0123456789abcdef") == SUFFIX_LETTERS && !text[1 + SUFFIX_LETTERS];
}

amp_status amp_folder_write(const amp_folder *folder, const char *name, const amp_piece *pieces, int32_t count,
                            amp_error *err) {
    char beside[AMP_FOLDER_NAME + 16];
    uint32_t suffix = 0;
    bool whole = true;
    (void)!getrandom(&suffix, sizeof suffix, GRND_NONBLOCK); /* one that is taken is an error */
    snprintf(beside, sizeof beside, "%s~%08x", name, (unsigned)suffix);
    const int fd = openat(folder->fd, beside, O_WRONLY | O_CREAT | O_EXCL | NO_LINK, FILE_MODE);
    if (fd < 0) return fail_at(folder, name, "cannot create", err);
    for (int32_t i = 0; i < count && whole; i++)
        whole = amp_fd_write(fd, pieces[i].data, pieces[i].bytes) == pieces[i].bytes;
    const int failed = whole ? 0 : errno;
    if (close(fd) == 0 && whole && renameat(folder->fd, beside, folder->fd, name) == 0) return AMP_OK;
    if (failed) errno = failed;
    amp_status status = fail_at(folder, name, "cannot write", err);
    amp_folder_unlink(folder, beside);
    return status;
}

static amp_status read_at(const amp_folder *folder, const char *name, int fd, size_t offset, char *out, size_t bytes,
                          amp_error *err) {
    while (bytes) {
        const ssize_t n = pread(fd, out, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_at(folder, name, "cannot read", err);
        if (!n) return amp_fail(err, AMP_IO, "%s/%s: is shorter than it should be", folder->path, name);
        out += n;
        offset += (size_t)n;
        bytes -= (size_t)n;
    }
    return AMP_OK;
}

amp_status amp_folder_read(const amp_folder *folder, const char *name, size_t offset, void *out, size_t bytes,
                           bool *there, amp_error *err) {
    const int fd = openat(folder->fd, name, O_RDONLY | NO_LINK);
    *there = fd >= 0;
    if (fd < 0) return errno == ENOENT || errno == ESTALE ? AMP_OK : fail_at(folder, name, "cannot open", err);
    amp_status status = read_at(folder, name, fd, offset, out, bytes, err);
    close(fd);
    return status;
}

int amp_folder_lock(const amp_folder *folder, const char *name, bool *taken) {
    const int fd = openat(folder->fd, name, O_RDWR | O_CREAT | NO_LINK, FILE_MODE);
    *taken = false;
    if (fd < 0) return -1;
    if (!flock(fd, LOCK_EX | LOCK_NB)) return fd;
    *taken = errno == EWOULDBLOCK;
    close(fd);
    return -1;
}

void amp_folder_unlink(const amp_folder *folder, const char *name) { (void)unlinkat(folder->fd, name, 0); }

typedef struct Removal {
    const amp_folder *folder;
    bool (*is_ours)(const char *name);
} Removal;

static amp_status remove_one(void *user, const char *name, amp_error *err) {
    const Removal *r = user;
    struct stat st;
    (void)err;
    if (r->is_ours(name) && !fstatat(r->folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
        amp_folder_unlink(r->folder, name);
    return AMP_OK;
}

/* A process that does not know yet that the folder goes may write into it after it was listed. */
void amp_folder_remove(const amp_folder *parent, const char *name, bool (*is_ours)(const char *name)) {
    enum { MOST_PASSES = 20 };
    amp_folder folder;
    bool there, full = true;
    if (amp_folder_open(parent, name, &folder, &there, NULL) || !there) return;
    Removal r = {&folder, is_ours};
    for (int pass = 0; full && pass < MOST_PASSES; pass++) {
        (void)amp_folder_list(&folder, remove_one, &r, NULL);
        full = unlinkat(at(parent), name, AT_REMOVEDIR) && (errno == ENOTEMPTY || errno == EEXIST);
    }
    amp_folder_close(&folder);
}
