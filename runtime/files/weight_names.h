/* weight_names.h: rules that make the model's names of those in a file of weights: FROM=TO, where each * of TO is what
 * the * of the same number in FROM matched. */
#ifndef AMP_RUNTIME_FILES_WEIGHT_NAMES_H
#define AMP_RUNTIME_FILES_WEIGHT_NAMES_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* That |rule| is FROM=TO, with as many * on both sides.  AMP_INVALID_ARGUMENT. */
amp_status amp_rename_check(const char *rule, amp_error *err);

/* Whether FROM matches |name|; then |to|, of |room| bytes (0: NULL), gets the name that TO makes of it, cut where it is
 * longer, and |*bytes| what it takes, NUL included.  A * matches as little as it can, the last one what is left. */
bool amp_rename_apply(const char *rule, const char *name, char *to, size_t room, size_t *bytes);

/* "h.*.ln_1.weight" of "h.11.ln_1.weight": numbers between dots become *.  Writes at most |room| bytes and returns
 * |out|. */
const char *amp_name_pattern(const char *name, char *out, size_t room);
/* As strcmp of their patterns. */
int amp_name_pattern_compare(const char *a, const char *b);

#endif
