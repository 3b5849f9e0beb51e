/* log.c: see log.h. */
#include "tools/amprun/log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/amprun/amprun.h"

/* Where that cannot be, on a pipe, the part stays. */
static void take_back(int fd, size_t written) {
    const int reason = errno;
    const off_t at = lseek(fd, 0, SEEK_CUR);
    if (written && at >= (off_t)written && ftruncate(fd, at - (off_t)written)) written = 0;
    errno = reason;
}

bool append_whole(int fd, const void *data, size_t size) {
    const size_t done = amp_fd_write(fd, data, size);
    if (done < size) take_back(fd, done);
    return done == size;
}

static int fail(Log *l) {
    if (!l->failed) report_text("--log %s: could not be written: %s", l->path, strerror(errno));
    l->failed = true;
    return 1;
}

static int open_at(Log *l, const char *path, int flags) {
    l->path = path;
    l->line = open_memstream(&l->text, &l->size);
    if (!l->line) return fail(l);
    amp_error err = {0};
    if (!strcmp(path, "-")) l->fd = dup(STDOUT_FILENO);
    else if (amp_file_open_in_place(path, flags, &l->fd, &err)) l->failed = report_text("--log %s", err.message);
    if (l->fd >= 0) return 0;
    fclose(l->line);
    l->line = NULL;
    return fail(l);
}

int log_open(Log *l, const char *path) { return open_at(l, path, O_TRUNC); }

/* How much of a log belongs to the first |iteration| steps and |epochs| epochs. */
static size_t kept_bytes(const char *text, size_t size, int64_t iteration, int64_t epochs) {
    const char *line = text, *end;
    for (; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
        int64_t number;
        if (sscanf(line, "{\"iteration\": %" SCNd64, &number) == 1 && number > iteration) break;
        if (sscanf(line, "{\"epoch\": %" SCNd64, &number) == 1 && number > epochs) break;
    }
    return (size_t)(line - text);
}

int log_go_on(Log *l, const char *path, int64_t iteration, int64_t epochs) {
    amp_error err = {0};
    char *text;
    size_t size, kept;
    struct stat st;
    if (open_at(l, path, 0)) return 1;
    if (fstat(l->fd, &st) || !S_ISREG(st.st_mode) || !strcmp(path, "-")) return 0;
    if (amp_file_read_regular(path, 0, NULL, &text, &size, &err)) return report(&err);
    kept = kept_bytes(text, size, iteration, epochs);
    amp_free(NULL, text, size + 1);
    l->started = kept > 0;
    return ftruncate(l->fd, (off_t)kept) || lseek(l->fd, 0, SEEK_END) < 0 ? fail(l) : 0;
}

FILE *log_line(Log *l) {
    if (!l->line || l->failed) return NULL;
    rewind(l->line);
    return l->line;
}

void log_end_line(Log *l) {
    fputc('\n', l->line);
    if (fflush(l->line) || !append_whole(l->fd, l->text, l->size)) fail(l);
    else l->started = true;
}

void log_sync(Log *l) {
    if (l->line) (void)fdatasync(l->fd); /* a pipe cannot, and loses nothing that it was given */
}

int log_close(Log *l) {
    if (!l->line) return l->failed;
    fclose(l->line);
    free(l->text);
    l->line = NULL;
    if (close(l->fd) && errno != EINTR) fail(l);
    return l->failed;
}
