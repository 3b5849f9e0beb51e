/* mapped_file.h: data files that are read where they are: mapped, so that they take no memory of their own. */
#ifndef AMP_TOOLS_MAPPED_FILE_H
#define AMP_TOOLS_MAPPED_FILE_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MappedFile {
    const char *data; /* NULL: nothing is open */
    size_t size;
    void *map;  /* NULL: it could not be mapped (a pipe, an empty file), and was read */
    char *read; /* what was read */
} MappedFile;

/* In either case mapped_close frees everything. */
amp_status mapped_open(MappedFile *file, const char *path, amp_error *err);
void mapped_close(MappedFile *file);

/* Calls read(ctx), which may look at mapped files.  One that somebody cuts meanwhile ends in SIGBUS: here, and nowhere
 * else, that is an error of the file, and false.  By any thread. */
bool mapped_read(void (*read)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
