/* file.c: what is asked of the operating system: whole files in and out; the clock. */
#define _XOPEN_SOURCE 700 /* realpath, clock_gettime, sigtimedwait */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"

enum { FIRST_READ = 64 << 10, NEW_FILE_MODE = 0644, PERMISSION_BITS = 0777, TEMPORARY_ATTEMPTS = 100 };

/* Calls again what a signal interrupted. */
#define RETRYING(result, call)                                                                                         \
    do (result) = (call);                                                                                              \
    while ((result) < 0 && errno == EINTR)

_Static_assert(AMP_FILE_PATH >= PATH_MAX, "a path that the system takes has room");

static int open_retrying(const char *path, int flags, mode_t mode) {
    int fd;
    RETRYING(fd, open(path, flags | O_CLOEXEC, mode));
    return fd;
}

static int fsync_retrying(int fd) {
    int result;
    RETRYING(result, fsync(fd));
    return result;
}

static int chmod_retrying(int fd, mode_t mode) {
    int result;
    RETRYING(result, fchmod(fd, mode));
    return result;
}

static int rename_retrying(const char *from, const char *to) {
    int result;
    RETRYING(result, rename(from, to));
    return result;
}

static amp_status fail_io(amp_error *err, int errnum, const char *verb, const char *path) {
    amp_status code = errnum == ENOENT || errnum == ENOTDIR ? AMP_NOT_FOUND : AMP_IO;
    return amp_fail_errno(err, code, errnum, "%s: cannot %s", path, verb);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const char *kind_of(mode_t mode) {
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no file";
}

static amp_status fail_kind(const char *path, mode_t mode, amp_error *err) {
    if (S_ISDIR(mode)) return fail_io(err, EISDIR, "read", path);
    return amp_fail(err, AMP_IO, "%s: is %s; only a regular file is read here: copy what it gives to one", path,
                    kind_of(mode));
}

/* A socket cannot be opened at all, for a reason that does not say so. */
static amp_status fail_open(const char *path, int reason, amp_error *err) {
    struct stat st;
    if (reason == ENXIO && stat(path, &st) == 0 && S_ISSOCK(st.st_mode)) return fail_kind(path, st.st_mode, err);
    return fail_io(err, reason, "open", path);
}

amp_status amp_file_open(const char *path, amp_file_kinds kinds, int *fd, amp_error *err) {
    struct stat st;
    amp_status status = AMP_OK;
    *fd = open_retrying(path, kinds == AMP_FILE_REGULAR ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_RDONLY, 0);
    if (*fd < 0) return fail_open(path, errno, err);
    if (fstat(*fd, &st) != 0) status = fail_io(err, errno, "read", path);
    else if (S_ISDIR(st.st_mode) || (kinds == AMP_FILE_REGULAR && !S_ISREG(st.st_mode)))
        status = fail_kind(path, st.st_mode, err);
    if (!status) return AMP_OK;
    close(*fd);
    *fd = -1;
    return status;
}

amp_status amp_file_check_regular(const char *path, amp_error *err) {
    int fd;
    AMP_TRY(amp_file_open(path, AMP_FILE_REGULAR, &fd, err));
    close(fd);
    return AMP_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The size that the system names is where to start; pipes and growing files are read to their end. */
typedef struct Buffer {
    const amp_allocator *allocator;
    char *data;
    size_t size, bytes; /* bytes read, bytes allocated */
} Buffer;

static void buffer_free(Buffer *b) { amp_free(b->allocator, b->data, b->bytes); }

static amp_status buffer_resize(Buffer *b, size_t bytes, const char *path, amp_error *err) {
    char *data = amp_alloc(b->allocator, bytes);
    if (!data) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory: no %zu bytes to read it into", path, bytes);
    if (b->size) memcpy(data, b->data, b->size);
    buffer_free(b);
    b->data = data;
    b->bytes = bytes;
    return AMP_OK;
}

static amp_status check_limit(const char *path, uintmax_t size, size_t limit, amp_error *err) {
    if (limit == 0 || size <= limit) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE, "%s: the file is larger than %zu bytes, the most that is read here", path,
                    limit);
}

/* Room for the file and its NUL; the byte for the NUL also shows whether the file goes on.  A device such as /dev/zero
 * has no end, and so a limit. */
static amp_status read_start(int fd, const char *path, size_t *limit, Buffer *b, amp_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_io(err, errno, "read", path);
    uintmax_t size = S_ISREG(st.st_mode) ? (uintmax_t)st.st_size : 0;
    if (S_ISCHR(st.st_mode) && !*limit) *limit = AMP_FILE_DEVICE_MOST;
    AMP_TRY(check_limit(path, size, *limit, err));
    return buffer_resize(b, size ? (size_t)size + 1 : FIRST_READ, path, err);
}

static amp_status read_all(int fd, const char *path, size_t limit, Buffer *b, amp_error *err) {
    AMP_TRY(read_start(fd, path, &limit, b, err));
    for (;;) {
        if (b->size == b->bytes)
            AMP_TRY(buffer_resize(b, b->bytes > SIZE_MAX / 2 ? SIZE_MAX : b->bytes * 2, path, err));
        ssize_t n = read(fd, b->data + b->size, b->bytes - b->size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_io(err, errno, "read", path);
        if (n == 0) break;
        b->size += (size_t)n;
        AMP_TRY(check_limit(path, b->size, limit, err));
    }
    /* The caller frees by size, so the memory must have exactly that. */
    if (b->bytes != b->size + 1) AMP_TRY(buffer_resize(b, b->size + 1, path, err));
    b->data[b->size] = '\0';
    return AMP_OK;
}

static amp_status read_kinds(const char *path, amp_file_kinds kinds, size_t limit, const amp_allocator *a, char **data,
                             size_t *size, amp_error *err) {
    int fd;
    *data = NULL;
    *size = 0;
    AMP_TRY(amp_file_open(path, kinds, &fd, err));
    Buffer b = {.allocator = a};
    amp_status status = read_all(fd, path, limit, &b, err);
    close(fd);
    if (status) {
        buffer_free(&b);
        return status;
    }
    *data = b.data;
    *size = b.size;
    return AMP_OK;
}

amp_status amp_file_read(const char *path, size_t limit, const amp_allocator *a, char **data, size_t *size,
                         amp_error *err) {
    return read_kinds(path, AMP_FILE_ANY, limit, a, data, size, err);
}

amp_status amp_file_read_regular(const char *path, size_t limit, const amp_allocator *a, char **data, size_t *size,
                                 amp_error *err) {
    return read_kinds(path, AMP_FILE_REGULAR, limit, a, data, size, err);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct amp_file_writer {
    amp_allocator allocator;
    size_t bytes; /* of this struct and the paths after it */
    int fd;
    int failed;      /* errno of the first failed write: nothing is committed after one */
    char *target;    /* the file itself, where the path was a symbolic link */
    char *temporary; /* NAME.tmp-XXXXXX in the target's folder; NULL: a device or pipe, written as it is */
    amp_xxh64 *sum;  /* of what is written; NULL: none */
    char paths[];
};

/* A name may have 255 bytes, so long ones are cut before the suffix. */
enum { LINKS_MOST = 40, TEMPORARY_NAME = 64 };
static const char temporary_suffix[] = ".tmp-XXXXXX";

static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* "a/b/" of "a/b/c", "." of "c". */
static void take_folder(const char *path, char folder[PATH_MAX]) {
    size_t len = folder_length(path);
    memcpy(folder, path, len);
    strcpy(folder + len, len ? "" : ".");
}

/* Follows one link in place; 0, or errno. */
static int follow_link(char path[PATH_MAX]) {
    char to[PATH_MAX];
    ssize_t n = readlink(path, to, sizeof to - 1);
    if (n < 0) return errno;
    to[n] = '\0';
    size_t folder = to[0] == '/' ? 0 : folder_length(path);
    if (folder + (size_t)n >= PATH_MAX) return ENAMETOOLONG;
    memcpy(path + folder, to, (size_t)n + 1);
    return 0;
}

/* Whether the link |at| leads where its maker wants, and not who made the folder: anybody may have made it. */
static bool is_foreign(const char *at, const struct stat *link) {
    char folder[PATH_MAX];
    struct stat st;
    const mode_t shared = S_ISVTX | S_IWOTH;
    if (link->st_uid == geteuid() || link->st_uid == 0) return false;
    take_folder(at, folder);
    return stat(folder, &st) == 0 && (st.st_mode & shared) == shared && st.st_uid != link->st_uid;
}

/* "NAME/rest" after |at|, which is without links: |at| gets NAME, |rest| keeps the rest. */
static bool take_name(char at[PATH_MAX], char rest[PATH_MAX]) {
    size_t len = strcspn(rest, "/"), have = strlen(at), slash = have && at[have - 1] != '/';
    if (have + slash + len >= PATH_MAX) return false;
    if (len && slash) at[have++] = '/';
    memcpy(at + have, rest, len);
    at[have + len] = '\0';
    len += strspn(rest + len, "/");
    memmove(rest, rest + len, strlen(rest + len) + 1);
    return true;
}

/* Replaces the link that |at| is by its text, which is put before |rest|. */
static bool expand_link(char at[PATH_MAX], char rest[PATH_MAX]) {
    char to[PATH_MAX];
    ssize_t n = readlink(at, to, sizeof to - 1);
    size_t more = strlen(rest);
    if (n < 0 || (size_t)n + 1 + more >= PATH_MAX) return false;
    memmove(rest + n + 1, rest, more + 1);
    memcpy(rest, to, (size_t)n);
    rest[n] = '/';
    at[to[0] == '/' ? 0 : folder_length(at)] = '\0';
    if (to[0] == '/') strcpy(at, "/");
    return true;
}

/* Each link on the way is looked at.  What cannot be resolved is not there, as the caller finds. */
amp_status amp_file_check_links(const char path[AMP_FILE_PATH], amp_error *err) {
    char at[PATH_MAX] = "", rest[PATH_MAX];
    struct stat st;
    strcpy(rest, path);
    if (*path == '/') strcpy(at, "/");
    memmove(rest, rest + strspn(rest, "/"), strlen(rest + strspn(rest, "/")) + 1);
    for (int links = 0; *rest && links <= LINKS_MOST;) {
        if (!take_name(at, rest) || lstat(*at ? at : ".", &st) != 0) return AMP_OK;
        if (!S_ISLNK(st.st_mode)) continue;
        if (is_foreign(at, &st))
            return amp_fail(err, AMP_INVALID_ARGUMENT,
                            "%s: %s is a symbolic link that another user (%lu) has made in a folder that all may write "
                            "to, so it is not followed; name the file itself",
                            path, at, (unsigned long)st.st_uid);
        links++;
        if (!expand_link(at, rest)) return AMP_OK;
    }
    return AMP_OK;
}

amp_status amp_file_target(const char *path, char target[AMP_FILE_PATH], amp_error *err) {
    struct stat st;
    int links = 0;
    if (strlen(path) >= PATH_MAX) return fail_io(err, ENAMETOOLONG, "create", path);
    AMP_TRY(amp_file_check_links(path, err));
    if (stat(path, &st) == 0) return realpath(path, target) ? AMP_OK : fail_io(err, errno, "resolve", path);
    if (errno != ENOENT) return fail_io(err, errno, "create", path);
    strcpy(target, path);
    while (lstat(target, &st) == 0 && S_ISLNK(st.st_mode)) { /* a link to what is not there yet */
        int reason = ++links > LINKS_MOST ? ELOOP : follow_link(target);
        if (reason) return fail_io(err, reason, "create", path);
    }
    char folder[PATH_MAX], name[PATH_MAX];
    size_t len = folder_length(target);
    strcpy(name, target + len);
    if (!name[0]) return fail_io(err, len ? EISDIR : ENOENT, "create", path);
    take_folder(target, folder);
    if (!realpath(folder, target)) return fail_io(err, errno, "create", path);
    if (strlen(target) + 1 + strlen(name) >= PATH_MAX) return fail_io(err, ENAMETOOLONG, "create", path);
    if (strcmp(target, "/") != 0) strcat(target, "/");
    strcat(target, name);
    return AMP_OK;
}

typedef struct Target {
    char path[PATH_MAX];
    mode_t mode; /* of the file that is there */
    bool exists, direct;
} Target;

/* Only a regular file is replaced: renaming over /dev/null would be possible, too. Root may write to any file, so the
 * mode is looked at. */
static amp_status check_existing(const char *path, const struct stat *st, Target *t, amp_error *err) {
    t->direct = S_ISCHR(st->st_mode) || S_ISFIFO(st->st_mode);
    if (!t->direct && !S_ISREG(st->st_mode))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: not a regular file, so it is not replaced; name another path",
                        path);
    t->exists = true;
    t->mode = st->st_mode & PERMISSION_BITS;
    if (!t->direct && !(t->mode & 0222))
        return amp_fail(err, AMP_IO,
                        "%s: is write-protected (mode %04o), so it is not replaced; chmod +w it, or name "
                        "another path",
                        path, (unsigned)t->mode);
    return access(path, W_OK) == 0 ? AMP_OK : fail_io(err, errno, "write", path);
}

static amp_status resolve_target(const char *path, Target *t, amp_error *err) {
    struct stat st;
    AMP_TRY(amp_file_target(path, t->path, err));
    t->exists = t->direct = false;
    t->mode = NEW_FILE_MODE;
    /* The path as it was given: what /proc/self/fd/1 names may have no path. */
    return stat(path, &st) == 0 ? check_existing(path, &st, t, err) : AMP_OK;
}

/* mkstemp would create the file with mode 0600, and the process's umask cannot be read without setting it; open applies
 * it. The name only needs to be new, which O_EXCL sees to. */
static int create_temporary(char *name, mode_t mode) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char *random_part = name + strlen(name) - 6;
    for (uint32_t attempt = 0; attempt < TEMPORARY_ATTEMPTS; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const uint32_t counter[4] = {(uint32_t)getpid(), attempt, (uint32_t)now.tv_nsec, (uint32_t)now.tv_sec};
        uint32_t words[4];
        amp_philox4x32((uintptr_t)name, counter, words);
        uint64_t bits = (uint64_t)words[0] << 32 | words[1];
        for (int i = 0; i < 6; i++, bits /= sizeof letters - 1) random_part[i] = letters[bits % (sizeof letters - 1)];
        int fd = open_retrying(name, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static amp_file_writer *writer_new(const Target *target, const amp_allocator *a) {
    size_t len = strlen(target->path), bytes = sizeof(amp_file_writer) + 2 * (len + 1) + strlen(temporary_suffix);
    amp_file_writer *w = amp_alloc_zeroed(a, bytes);
    if (!w) return NULL;
    w->allocator = amp_allocator_or_default(a);
    w->bytes = bytes;
    w->fd = -1;
    w->target = strcpy(w->paths, target->path);
    if (target->direct) return w;
    size_t folder = folder_length(target->path);
    w->temporary = strcpy(w->paths + len + 1, target->path);
    if (len - folder > TEMPORARY_NAME) w->temporary[folder + utf8_cut(w->temporary + folder, TEMPORARY_NAME)] = '\0';
    strcat(w->temporary, temporary_suffix);
    return w;
}

static void writer_free(amp_file_writer *w) {
    amp_allocator allocator = w->allocator;
    if (w->fd >= 0) close(w->fd);
    amp_free(&allocator, w, w->bytes);
}

amp_status amp_file_writer_open(const char *path, const amp_allocator *a, amp_file_writer **out, amp_error *err) {
    Target target;
    *out = NULL;
    AMP_TRY(resolve_target(path, &target, err));
    amp_file_writer *w = writer_new(&target, a);
    if (!w) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory while opening it for writing", path);
    w->fd = target.direct ? open_retrying(path, O_WRONLY, 0) : create_temporary(w->temporary, target.mode);
    if (w->fd < 0) {
        amp_status status = fail_io(err, errno, "create", path);
        writer_free(w);
        return status;
    }
    if (!target.direct && target.exists && chmod_retrying(w->fd, target.mode) != 0) {
        amp_status status = fail_io(err, errno, "set the mode of", w->temporary);
        amp_file_writer_abandon(w);
        return status;
    }
    *out = w;
    return AMP_OK;
}

amp_status amp_file_open_in_place(const char *path, int flags, int *fd, amp_error *err) {
    char target[AMP_FILE_PATH];
    struct stat st;
    *fd = -1;
    AMP_TRY(amp_file_target(path, target, err));
    const bool named = stat(path, &st) == 0 && !S_ISREG(st.st_mode); /* what /dev/stdout leads to may have no path */
    *fd = open_retrying(named ? path : target, O_WRONLY | O_CREAT | flags | (named ? 0 : O_NOFOLLOW), 0666);
    return *fd < 0 ? fail_io(err, errno, "write", path) : AMP_OK;
}

amp_status amp_file_try(const char *path, amp_error *err) {
    Target target;
    amp_file_writer *w;
    AMP_TRY(resolve_target(path, &target, err));
    if (target.direct) return AMP_OK; /* who reads a pipe would take this for its end */
    AMP_TRY(amp_file_writer_open(path, NULL, &w, err));
    amp_file_writer_abandon(w);
    return AMP_OK;
}

/* write(2), but a file that would be larger than RLIMIT_FSIZE is an error (EFBIG) and not the end of the program: the
 * signal, which goes to this thread, is taken back. */
static ssize_t write_within_limit(int fd, const void *data, size_t size) {
    const struct timespec now = {0};
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    bool blocked = !pthread_sigmask(SIG_BLOCK, &limit, &before);
    bool had_one = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
    ssize_t n = write(fd, data, size);
    int reason = errno;
    if (n < 0 && reason == EFBIG && blocked && !had_one) sigtimedwait(&limit, NULL, &now);
    if (blocked) pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return n;
}

size_t amp_fd_write(int fd, const void *data, size_t size) {
    const char *at = data;
    size_t done = 0;
    while (done < size) {
        ssize_t n = write_within_limit(fd, at + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC; /* nothing written and no reason: to go on could take for ever */
        if (n <= 0) break;
        done += (size_t)n;
    }
    return done;
}

amp_status amp_file_writer_write(amp_file_writer *w, const void *data, size_t size, amp_error *err) {
    if (!w->failed && amp_fd_write(w->fd, data, size) < size) w->failed = errno;
    if (w->sum) amp_xxh64_update(w->sum, data, size);
    return w->failed ? fail_io(err, w->failed, "write", w->target) : AMP_OK;
}

void amp_file_writer_sum(amp_file_writer *w, amp_xxh64 *sum) { w->sum = sum; }

bool amp_file_writer_can_go_back(const amp_file_writer *w) { return w->temporary != NULL; }

amp_status amp_file_writer_go_back(amp_file_writer *w, amp_error *err) {
    if (!w->failed && lseek(w->fd, 0, SEEK_SET) < 0) w->failed = errno;
    return w->failed ? fail_io(err, w->failed, "write", w->target) : AMP_OK;
}

/* Makes the rename itself durable.  Some file systems cannot sync a folder and say EINVAL: they offer no more. */
static amp_status sync_folder(const char *path, amp_error *err) {
    char folder[PATH_MAX];
    take_folder(path, folder);
    int fd = open_retrying(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return errno == EACCES ? AMP_OK : fail_io(err, errno, "open the folder of", path); /* write-only folder */
    int result = fsync_retrying(fd), reason = errno;
    close(fd);
    return result == 0 || reason == EINVAL ? AMP_OK : fail_io(err, reason, "sync the folder of", path);
}

/* Everything up to the rename; after a failure the old file is untouched. */
static amp_status writer_publish(amp_file_writer *w, amp_error *err) {
    if (w->failed) return fail_io(err, w->failed, "write", w->target);
    if (w->temporary && fsync_retrying(w->fd) != 0) return fail_io(err, errno, "write", w->target);
    int closed = close(w->fd);
    w->fd = -1;
    if (closed != 0 && errno != EINTR) return fail_io(err, errno, "write", w->target);
    if (w->temporary && rename_retrying(w->temporary, w->target) != 0) return fail_io(err, errno, "replace", w->target);
    return AMP_OK;
}

amp_status amp_file_writer_commit(amp_file_writer *w, amp_error *err) {
    amp_status status = writer_publish(w, err);
    if (status) {
        amp_file_writer_abandon(w);
        return status;
    }
    if (w->temporary) status = sync_folder(w->target, err);
    writer_free(w);
    return status;
}

void amp_file_writer_abandon(amp_file_writer *w) {
    if (!w) return;
    if (w->temporary) unlink(w->temporary);
    writer_free(w);
}

amp_status amp_file_replace(const char *path, const void *data, size_t size, const amp_allocator *a, amp_error *err) {
    amp_file_writer *w;
    AMP_TRY(amp_file_writer_open(path, a, &w, err));
    amp_status status = amp_file_writer_write(w, data, size, err);
    if (!status) return amp_file_writer_commit(w, err);
    amp_file_writer_abandon(w);
    return status;
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

double amp_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t amp_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
