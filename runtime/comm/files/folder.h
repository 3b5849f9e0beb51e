/* folder.h: files in a folder that several processes see, some of them maybe on other hosts.
 *
 * A file is written beside and renamed, so one that is there is whole.  Nothing is synced: what a crash of the machine
 * leaves is of a start that nobody goes on with.
 */
#ifndef AMP_RUNTIME_COMM_FILES_FOLDER_H
#define AMP_RUNTIME_COMM_FILES_FOLDER_H

#include <stdbool.h>

#include "amp/base.h"

enum { AMP_FOLDER_MOST = 3000, AMP_FOLDER_PATH = AMP_FOLDER_MOST + 200 /* bytes of a path */ };

typedef struct amp_piece {
    const void *data;
    size_t bytes;
} amp_piece;

/* The pieces, one after the other. */
amp_status amp_folder_write(const char *path, const amp_piece *pieces, int32_t count, amp_error *err);

/* |bytes| from |offset| on.  |*there|: false where there is no such file; one that is shorter is AMP_IO. */
amp_status amp_folder_read(const char *path, size_t offset, void *out, size_t bytes, bool *there, amp_error *err);

/* Has the system look at the folder anew: a network file system keeps what was not there for a while. */
void amp_folder_refresh(const char *folder);

/* Takes the lock of |path|, which is made: a descriptor that holds it until it is closed or the process ends; -1:
 * another one has it (|*taken|), or it cannot be had. */
int amp_folder_lock(const char *path, bool *taken);

/* Removes a folder and all files in it. */
void amp_folder_remove(const char *folder);

#endif
