/* append.h: records that are appended to a file as wholes. */
#ifndef AMP_TOOLS_AMPRUN_APPEND_H
#define AMP_TOOLS_AMPRUN_APPEND_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all |size| bytes, or none: of a record of which the disk takes only a part, that part is taken back.  False:
 * errno says why. */
bool append_whole(int fd, const void *data, size_t size);

#endif
