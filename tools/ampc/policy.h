/* policy.h: ampc policy list, show, check and diff. */
#ifndef AMP_TOOLS_AMPC_POLICY_H
#define AMP_TOOLS_AMPC_POLICY_H

#include "tools/ampc/command.h"

int command_policy(Command *c);

#endif
