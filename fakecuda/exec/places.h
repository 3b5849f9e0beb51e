/* places.h: module.c's helper: gives every variable of a module its place. */
#ifndef FAKECUDA_EXEC_PLACES_H
#define FAKECUDA_EXEC_PLACES_H

#include "fakecuda/exec/inner.h"

bool place_variables(ExecModule *m, char *message, size_t size);
/* .local of the deepest chain of calls; -1 where it may call itself. */
void measure_stack(Function *f);

#endif
