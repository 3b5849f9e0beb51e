/* file.h: what is asked of the operating system: whole files in and out; the clock. */
#ifndef AMP_BASE_FILE_H
#define AMP_BASE_FILE_H

#include "base/error.h"
#include "base/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file of at most |limit| bytes (0: no limit) into memory from |a|, with a NUL after it that |size| does not
 * count. Free with amp_free(a, *data, *size + 1). */
amp_status amp_file_read(const char *path, size_t limit, const amp_allocator *a, char **data, size_t *size,
                         amp_error *err);

/* Replaces a file so that, whatever happens, either the old or the whole new content is there: a temporary file in the
 * same folder, fsync, rename, fsync of the folder. */
typedef struct amp_file_writer amp_file_writer;
amp_status amp_file_writer_open(const char *path, const amp_allocator *a, amp_file_writer **out, amp_error *err);
amp_status amp_file_writer_write(amp_file_writer *w, const void *data, size_t size, amp_error *err);
amp_status amp_file_writer_commit(amp_file_writer *w, amp_error *err); /* frees |w|, also on failure */
void amp_file_writer_abandon(amp_file_writer *w); /* frees |w|, removes the temporary file; NULL is fine */

/* The same in one call. */
amp_status amp_file_replace(const char *path, const void *data, size_t size, const amp_allocator *a, amp_error *err);

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* Seconds since some moment: differences count. */
double amp_seconds(void);

#ifdef __cplusplus
}
#endif

#endif
