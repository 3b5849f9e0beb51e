/* diff.h: ampc diff: what differs between two models, or between a model under one policy and under another. */
#ifndef AMP_TOOLS_AMPC_DIFF_H
#define AMP_TOOLS_AMPC_DIFF_H

#include "tools/ampc/command.h"

int command_diff(Command *c);

#endif
