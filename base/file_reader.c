/* file_reader.c: see file_reader.h. */
#define _XOPEN_SOURCE 700 /* pread */
#include "base/file_reader.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MOST_AT_ONCE = 1 << 30 /* Linux reads at most 0x7ffff000 bytes in one call */ };

static amp_status fail_io(amp_error *err, int errnum, const char *verb, const char *path) {
    amp_status code = errnum == ENOENT || errnum == ENOTDIR ? AMP_NOT_FOUND : AMP_IO;
    return amp_fail_errno(err, code, errnum, "%s: cannot %s", path, verb);
}

bool amp_file_is_regular(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static amp_status look(amp_file_reader *r, const char *path, amp_error *err) {
    struct stat st;
    if (fstat(r->fd, &st)) return fail_io(err, errno, "read", path);
    r->size = (uint64_t)st.st_size;
    r->changed_seconds = st.st_mtim.tv_sec;
    r->changed_nanoseconds = st.st_mtim.tv_nsec;
    return AMP_OK;
}

amp_status amp_file_reader_open(const char *path, amp_file_reader *r, amp_error *err) {
    AMP_TRY(amp_file_open(path, AMP_FILE_REGULAR, &r->fd, err));
    amp_status status = look(r, path, err);
    if (status) amp_file_reader_close(r);
    return status;
}

void amp_file_reader_close(amp_file_reader *r) {
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}

amp_status amp_file_reader_read(const amp_file_reader *r, const char *path, uint64_t at, void *to, size_t size,
                                amp_error *err) {
    char *next = to;
    while (size) {
        ssize_t n = pread(r->fd, next, size < MOST_AT_ONCE ? size : MOST_AT_ONCE, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_io(err, errno, "read", path);
        if (n == 0)
            return amp_fail(err, AMP_IO, "%s: ends at byte %llu of %llu: it was cut while it was read", path,
                            (unsigned long long)at, (unsigned long long)r->size);
        next += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return AMP_OK;
}

amp_status amp_file_reader_check_unchanged(const amp_file_reader *r, const char *path, amp_error *err) {
    amp_file_reader now = *r;
    AMP_TRY(look(&now, path, err));
    if (now.size == r->size && now.changed_seconds == r->changed_seconds &&
        now.changed_nanoseconds == r->changed_nanoseconds)
        return AMP_OK;
    return amp_fail(err, AMP_IO, "%s: was written to while it was read; read it again once it is whole", path);
}
