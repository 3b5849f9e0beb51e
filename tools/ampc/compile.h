/* compile.h: ampc MODEL: a model to a model.so, or to what --emit says. */
#ifndef AMP_TOOLS_AMPC_COMPILE_H
#define AMP_TOOLS_AMPC_COMPILE_H

#include <stdbool.h>

#include "tools/ampc/command.h"

int command_compile(Command *c);

bool is_pass(const char *name);

#endif
