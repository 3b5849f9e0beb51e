/* lsp.h: ampc lsp. */
#ifndef AMP_TOOLS_AMPC_LSP_H
#define AMP_TOOLS_AMPC_LSP_H

#include "tools/ampc/command.h"

/* A language server on standard input and output.  0: the editor shut it down, 1: it went away without. */
int command_lsp(Command *c);

#endif
