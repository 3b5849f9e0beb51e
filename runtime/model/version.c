/* version.c: the library's version. */
#include "amp/amp.h"

const char *amp_version(void) { return AMP_VERSION; }
