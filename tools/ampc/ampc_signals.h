/* ampc_signals.h: a signal that ends ampc while C compilers run ends them first, and their temporary files. */
#ifndef AMP_TOOLS_AMPC_SIGNALS_H
#define AMP_TOOLS_AMPC_SIGNALS_H

#include <stdint.h>

/* SIGINT, SIGTERM, SIGHUP, unless they are ignored.  Before compilers run they end ampc at once, as without this. */
void ampc_signals_watch(void);
/* amp_compile_options.cancelled. */
int32_t ampc_signals_cancelled(void *user);
/* Ends ampc by the signal that was caught, if any. */
void ampc_signals_end(void);

#endif
