/* file_reader.h: a regular file that is read in pieces, at any place: what is too large to be held beside what is made
 * of it.
 *
 * Nothing is mapped: a file that somebody cuts while it is read is an error here, and no SIGBUS.  One that is replaced
 * by rename goes on being read as it was.
 */
#ifndef AMP_BASE_FILE_READER_H
#define AMP_BASE_FILE_READER_H

#include <stdbool.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_file_reader {
    int fd;        /* -1: none */
    uint64_t size; /* when it was opened; so are the times */
    int64_t changed_seconds, changed_nanoseconds;
} amp_file_reader;

/* Whether |path| names a regular file: a pipe or a device can only be read from its start to its end. */
bool amp_file_is_regular(const char *path);
/* AMP_NOT_FOUND, AMP_IO; |reader|->fd is -1 then. */
amp_status amp_file_reader_open(const char *path, amp_file_reader *reader, amp_error *err);
void amp_file_reader_close(amp_file_reader *reader); /* one that is closed, too */
/* |size| bytes from byte |at| on, which the file had when it was opened.  AMP_IO: the system refused, or it has become
 * shorter.  |path| is for messages. */
amp_status amp_file_reader_read(const amp_file_reader *reader, const char *path, uint64_t at, void *to, size_t size,
                                amp_error *err);
/* AMP_IO where the file was written to since it was opened: what was read may be of before and of after. */
amp_status amp_file_reader_check_unchanged(const amp_file_reader *reader, const char *path, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
