/* explain.h: ampc explain. */
#ifndef AMP_TOOLS_AMPC_EXPLAIN_H
#define AMP_TOOLS_AMPC_EXPLAIN_H

#include "tools/ampc/command.h"

/* Why each op of the model has its dtype, or with --against what differs. */
int command_explain(Command *c);

#endif
