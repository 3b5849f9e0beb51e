/* suggest.h: ampc suggest: amprun's command of that name, which has the data and the trainings that it takes. */
#ifndef AMP_TOOLS_AMPC_SUGGEST_H
#define AMP_TOOLS_AMPC_SUGGEST_H

/* Becomes amprun, with the arguments as they are.  Returns only where that is not found: reports, and returns 1. */
int suggest_become_amprun(char **argv);

#endif
