/* stopping.h: signals that end training after the step. */
#ifndef AMP_TOOLS_STOPPING_H
#define AMP_TOOLS_STOPPING_H

#include <stdbool.h>

/* From here on SIGINT, SIGTERM and SIGHUP are only noted; one that was ignored stays ignored (nohup).  A second SIGINT
 * or SIGTERM ends the program at once, as without this.  SIGHUP never counts as the second: a terminal that closes
 * sends it twice; nor does one within a tenth of a second, which a wrapper may have passed on.
 * SIGPIPE and SIGXFSZ are ignored: writing fails instead, and what was trained is not lost. */
void stopping_watch(void);

/* The signal that asked for the end; 0: none. */
int stopping_signal(void);
const char *stopping_name(int signal); /* "SIGINT" */

#endif
