/* mapped_file.c: see data.h. */
#include "tools/amprun/data/data.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_reader.h"

static _Thread_local sigjmp_buf *reading; /* where this thread goes on if the file is cut; NULL: it reads none */

static void on_cut_file(int number) {
    if (reading) siglongjmp(*reading, 1);
    signal(number, SIG_DFL); /* the access is repeated */
}

bool mapped_read(void (*read)(void *ctx), void *ctx) {
    sigjmp_buf cut;
    if (sigsetjmp(cut, 1)) {
        reading = NULL;
        return false;
    }
    reading = &cut;
    read(ctx);
    reading = NULL;
    return true;
}

/* A pipe is opened once, by who reads it. */
static void map(MappedFile *file, const char *path) {
    struct stat st;
    int fd;
    if (!amp_file_is_regular(path) || amp_file_open(path, AMP_FILE_REGULAR, &fd, NULL)) return;
    if (!fstat(fd, &st) && st.st_size > 0) {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) *file = (MappedFile){.data = at, .size = (size_t)st.st_size, .map = at};
    }
    close(fd);
}

amp_status mapped_open(MappedFile *file, const char *path, amp_error *err) {
    struct sigaction action = {.sa_handler = on_cut_file};
    *file = (MappedFile){0};
    map(file, path);
    if (file->map) {
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, NULL);
        return AMP_OK;
    }
    amp_status status = amp_file_read(path, 0, NULL, &file->read, &file->size, err);
    file->data = file->read;
    return status;
}

void mapped_close(MappedFile *file) {
    if (file->map) munmap(file->map, file->size);
    if (file->read) amp_free(NULL, file->read, file->size + 1);
    *file = (MappedFile){0};
}
