/* lsp.c: see lsp.h. */
#include "tools/ampc/lsp.h"

#include <stdio.h>

#include "tools/ampc/lsp/server.h"

int command_lsp(Command *c) {
    (void)c;
    return server_run(stdin, stdout);
}
