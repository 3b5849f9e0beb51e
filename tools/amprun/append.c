/* append.c: see log.h. */
#include "tools/amprun/log.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"

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
