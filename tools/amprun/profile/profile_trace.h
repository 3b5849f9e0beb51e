/* profile_trace.h: a recording as JSON for ui.perfetto.dev and chrome://tracing, in the trace event format:
 * https://perfetto.dev/docs/getting-started/other-formats */
#ifndef AMP_TOOLS_AMPRUN_PROFILE_TRACE_H
#define AMP_TOOLS_AMPRUN_PROFILE_TRACE_H

#include "tools/amprun/profile/recording.h"

/* The text by which a trace of amprun is known: the name of its process begins with it (tools/outputs.c). */
#define PROFILE_TRACE_PROCESS "amprun: "

/* Replaces the file |path| as a whole. */
amp_status profile_trace_write(const Recording *r, const char *path, amp_error *err);

#endif
