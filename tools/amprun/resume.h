/* resume.h: going on from a checkpoint. */
#ifndef AMP_TOOLS_RESUME_H
#define AMP_TOOLS_RESUME_H

#include "tools/amprun/amprun.h"

/* Loads the checkpoint |path|, and says on standard error what goes on in another way.  Reports and returns 1 on
 * failure. */
int resume_from(const Run *r, const char *path);

#endif
