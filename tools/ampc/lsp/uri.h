/* uri.h: file:///... and the paths that it names. */
#ifndef AMP_TOOLS_AMPC_LSP_URI_H
#define AMP_TOOLS_AMPC_LSP_URI_H

#include "base/arena.h"

/* In the arena.  Of another scheme, of a text that is in no file: the URI itself. */
const char *uri_path(Arena *a, const char *uri);
const char *uri_of_path(Arena *a, const char *path); /* without links and "..", where the file is there */

#endif
