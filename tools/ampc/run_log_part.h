/* run_log_part.h: the log of a training (amprun train --log) as a part of a report. */
#ifndef AMP_TOOLS_AMPC_RUN_LOG_PART_H
#define AMP_TOOLS_AMPC_RUN_LOG_PART_H

#include <stddef.h>

#include "amp/base.h"

/* The lines of |path| as a JSON array: of steps as many as a page can draw, the last line of statistics, and all else.
 * A last line that is not whole is left out.  The caller frees |*out| with free.  AMP_NOT_FOUND, AMP_IO; AMP_BAD_FILE
 * names the line. */
amp_status run_log_part(const char *path, char **out, size_t *size, amp_error *err);

#endif
