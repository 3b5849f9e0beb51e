/* names.h: the names of a function's values: unique, found in constant time, numbered from what is there. */
#ifndef AMP_IR_NAMES_H
#define AMP_IR_NAMES_H

#include "ir/ir.h"

/* The numbers that stand for "no name": "17", at most nine digits, no leading zero.  -1 for any other name. */
int64_t name_number(const char *name);

Val names_find(const Func *f, const char *name);
/* |hint|, "hint.1", "hint.2", ... or, without a hint, one more than the largest number in the function. */
const char *names_unique(const Func *f, const char *hint);
/* Makes the value findable under its name.  A name it had before is forgotten by itself. */
void names_add(Func *f, Val v);
/* After values went or moved.  Numbers count from the names that are left, so they depend on the text alone. */
void names_rebuild(Func *f);

#endif
