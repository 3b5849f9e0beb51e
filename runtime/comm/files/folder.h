/* folder.h: files in a folder that several processes see, some of them maybe on other hosts.
 *
 * A folder belongs to this user, and no other user may write to it, or it is not opened: who could would decide which
 * files are written and removed.  Files are named within it, and no link is followed.
 *
 * A file is written beside and renamed, so one that is there is whole.  Nothing is synced: what a crash of the machine
 * leaves is of a start that no rank continues.
 */
#ifndef AMP_RUNTIME_COMM_FILES_FOLDER_H
#define AMP_RUNTIME_COMM_FILES_FOLDER_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AMP_FOLDER_MOST = 3000, AMP_FOLDER_PATH = AMP_FOLDER_MOST + 200 /* bytes of a path */, AMP_FOLDER_NAME = 128 };

typedef struct amp_folder {
    int fd; /* -1: none */
    char path[AMP_FOLDER_PATH];
} amp_folder;

typedef struct amp_piece {
    const void *data;
    size_t bytes;
} amp_piece;

/* Makes |name| in |parent| for this user alone, unless it is there (|*made|).  |parent| NULL: |name| is a path. */
amp_status amp_folder_make(const amp_folder *parent, const char *name, bool *made, amp_error *err);

/* |*there|: false where there is no such folder. */
amp_status amp_folder_open(const amp_folder *parent, const char *name, amp_folder *out, bool *there, amp_error *err);
void amp_folder_close(amp_folder *folder);

/* The pieces, one after the other. */
amp_status amp_folder_write(const amp_folder *folder, const char *name, const amp_piece *pieces, int32_t count,
                            amp_error *err);

/* |bytes| from |offset| on.  |*there|: false where there is no such file; one that is shorter is AMP_IO. */
amp_status amp_folder_read(const amp_folder *folder, const char *name, size_t offset, void *out, size_t bytes,
                           bool *there, amp_error *err);

/* Has the system look at |name| anew: a network file system keeps what was not there for a while. */
void amp_folder_refresh(const amp_folder *parent, const char *name);

/* Takes the lock of |name|, which is made: a descriptor that holds it until it is closed or the process ends; -1:
 * another one has it (|*taken|), or it cannot be had. */
int amp_folder_lock(const amp_folder *folder, const char *name, bool *taken);

void amp_folder_unlink(const amp_folder *folder, const char *name);

/* What amp_folder_write adds to |name| while it writes: "" or "~" and eight letters. */
bool amp_folder_is_suffix(const char *text);

/* Calls |each| for all that is in the folder, until it fails. */
amp_status amp_folder_list(const amp_folder *folder, amp_status (*each)(void *user, const char *name, amp_error *err),
                           void *user, amp_error *err);

/* Removes the files that |is_ours|, and the folder where that leaves none. */
void amp_folder_remove(const amp_folder *parent, const char *name, bool (*is_ours)(const char *name));

#ifdef __cplusplus
}
#endif
#endif
