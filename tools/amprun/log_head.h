/* log_head.h: the first line of a log: what is trained, the bytes that it takes, and all that decides its numbers, so
 * that the same steps can be taken again (amprun suggest --stats). */
#ifndef AMP_TOOLS_AMPRUN_LOG_HEAD_H
#define AMP_TOOLS_AMPRUN_LOG_HEAD_H

#include "tools/amprun/training.h"

/* Without its newline. */
void log_head(FILE *to, const Training *t);

/* The SHA-256 of a file, as sha256sum prints it; "": it cannot be read. */
const char *file_sha256(const char *path, char out[65]);

#endif
