/* file.h: what is asked of the operating system: whole files in and out; the clock. */
#ifndef AMP_BASE_FILE_H
#define AMP_BASE_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/alloc.h"
#include "base/hash.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AMP_FILE_DEVICE_MOST = 16 << 20 };
/* Opens |path| for reading; *fd is -1 after an error.  What the user names and what is read once, from its start to its
 * end, may be of AMP_FILE_ANY kind: also a pipe, whose writer is waited for, or a device.  What another file names, or
 * what is read at any place or twice, is AMP_FILE_REGULAR: nothing is waited for. */
typedef enum amp_file_kinds { AMP_FILE_ANY, AMP_FILE_REGULAR } amp_file_kinds;
amp_status amp_file_open(const char *path, amp_file_kinds kinds, int *fd, amp_error *err);
/* Whether a regular file can be opened there: for what is opened by a name only, as libraries are. */
amp_status amp_file_check_regular(const char *path, amp_error *err);

/* Reads a file of at most |limit| bytes (0: no limit, but AMP_FILE_DEVICE_MOST for a device) into memory from |a|, with
 * a NUL after it that |size| does not count. Free with amp_free(a, *data, *size + 1). */
amp_status amp_file_read(const char *path, size_t limit, const amp_allocator *a, char **data, size_t *size,
                         amp_error *err);

/* The same of a regular file only. */
amp_status amp_file_read_regular(const char *path, size_t limit, const amp_allocator *a, char **data, size_t *size,
                                 amp_error *err);

/* The file that writing to |path| changes, links followed, also one to what is not there yet: an absolute path.  Its
 * folder must exist.  A link that another user has made in a folder that all may write to, as /tmp, is not followed
 * (AMP_INVALID_ARGUMENT), as Linux does not where fs.protected_symlinks is set. */
enum { AMP_FILE_PATH = 4096 };
amp_status amp_file_target(const char *path, char target[AMP_FILE_PATH], amp_error *err);

/* Whether a link on the way there is one that is not followed, for what is not opened here: AMP_INVALID_ARGUMENT. */
amp_status amp_file_check_links(const char path[AMP_FILE_PATH], amp_error *err);

/* Replaces a file so that, whatever happens, either the old or the whole new content is there: a temporary file in the
 * same folder, fsync, rename, fsync of the folder.  The file keeps its mode, and the temporary file is never more open;
 * a write-protected one is not replaced (AMP_IO).  A device or a pipe is written as it is. */
typedef struct amp_file_writer amp_file_writer;
amp_status amp_file_writer_open(const char *path, const amp_allocator *a, amp_file_writer **out, amp_error *err);
amp_status amp_file_writer_write(amp_file_writer *w, const void *data, size_t size, amp_error *err);
/* From now on what is written is added to |sum|, too; NULL: no more. */
void amp_file_writer_sum(amp_file_writer *w, amp_xxh64 *sum);
/* What is written next goes over what was written, from its start on.  Not of a device or a pipe, which cannot. */
bool amp_file_writer_can_go_back(const amp_file_writer *w);
amp_status amp_file_writer_go_back(amp_file_writer *w, amp_error *err);
amp_status amp_file_writer_commit(amp_file_writer *w, amp_error *err); /* frees |w|, also on failure */
void amp_file_writer_abandon(amp_file_writer *w); /* frees |w|, removes the temporary file; NULL is fine */

/* The same in one call. */
amp_status amp_file_replace(const char *path, const void *data, size_t size, const amp_allocator *a, amp_error *err);
/* Opens for writing what is not replaced but changed in place; |flags| of open, beside O_WRONLY | O_CREAT. */
amp_status amp_file_open_in_place(const char *path, int flags, int *fd, amp_error *err);
/* Whether |path| could be written: its folder is there and lets files be made.  A device or a pipe is not opened.  No
 * file is changed and none is left. */
amp_status amp_file_try(const char *path, amp_error *err);

/* Writes all |size| bytes, as long as the system takes any.  How many it took: where that is fewer, errno says why.  No
 * SIGXFSZ is raised: a file that would be larger than RLIMIT_FSIZE is EFBIG. */
size_t amp_fd_write(int fd, const void *data, size_t size);

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* Time since some moment: differences count. */
double amp_seconds(void);
int64_t amp_nanoseconds(void);

#ifdef __cplusplus
}
#endif

#endif
