/* temporary.h: where the tools put files that are gone when they end. */
#ifndef AMP_TOOLS_TEMPORARY_H
#define AMP_TOOLS_TEMPORARY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TMPDIR, where it is set and not empty; else /tmp.  Not asked whether it is there. */
const char *temporary_folder(void);

enum { TEMPORARY_PATH = 512 };
/* A new folder in it, for this user alone: its name cannot be known before.  False: errno says why, and |path| is what
 * was tried. */
bool temporary_make_folder(const char *what, char path[TEMPORARY_PATH]);

#ifdef __cplusplus
}
#endif
#endif
