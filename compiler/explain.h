/* explain.h: what the files of amp_explain share.
 *   explain.c       finds the module: compiled from source, or read out of a model.so
 *   explain_facts.c what the module tells about one op
 *   explain_text.c  for people
 *   explain_json.c  for tools
 *   explain_rows.c  every op of the graph, as JSON
 */
#ifndef AMP_COMPILER_EXPLAIN_H
#define AMP_COMPILER_EXPLAIN_H

#include "base/error.h"
#include "base/json_writer.h"
#include "ir/ir.h"

/* The function that has the most to tell: train_step, else infer. */
const Func *explain_func(const Module *m);
/* Whether a kernel runs something that came from the op with this path. */
bool explain_kernel_holds(const Func *f, const Kernel *k, const char *path);
/* Where and how often a cast happens, in words; NULL: nowhere that is known. */
const char *explain_cast_place(const Module *m, const CastNote *c);
/* Whether a rounding was removed from a gradient of the op with this path. */
bool explain_removed_from(const Module *m, const Removed *r, const char *path);

/* Both tell the decisions whose path matches |glob| (NULL: all), and return how many there were. */
int explain_as_text(Text *t, const Module *m, const char *glob);
amp_status explain_as_json(Text *t, const Module *m, const Module *graph, const char *glob, int *found, amp_error *err);
/* "rows": the ops of |graph|, the module behind simplify, whose path matches |glob|. */
void explain_put_rows(amp_json_writer *w, const Module *graph, const char *glob);

#endif
