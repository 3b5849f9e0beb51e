/* lint.h: ampc lint. */
#ifndef AMP_TOOLS_AMPC_LINT_H
#define AMP_TOOLS_AMPC_LINT_H

#include "tools/ampc/command.h"

/* What the model's precision makes slow or unsafe.  0: nothing, 1: findings, 2: the model was refused, or wrong
 * arguments. */
int command_lint(Command *c);

#endif
