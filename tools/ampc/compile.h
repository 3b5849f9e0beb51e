/* compile.h: ampc MODEL: a model to a model.so, or to what --emit says. */
#ifndef AMP_TOOLS_AMPC_COMPILE_H
#define AMP_TOOLS_AMPC_COMPILE_H

#include <stdbool.h>

#include "tools/ampc/command.h"

int command_compile(Command *c);

/* The number of --emit's word; -1: there is none such. */
int emit_named(const char *word);

#endif
