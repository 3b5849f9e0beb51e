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
#include "base/table.h"
#include "ir/ir.h"

typedef VEC(int) ExplainNumbers;

/* Where to find what is told about an op. */
typedef struct ExplainFacts {
    const Module *m;
    const Func *f; /* the function that has the most to tell: the step, else infer; NULL: none */
    Table kernels; /* path -> ExplainNumbers: kernels of |f| that run something that came from it */
    Table casts;   /* "value type" -> kernels that cast the value to it */
    Table copies;  /* "parameter type" -> states */
    Table removed; /* path -> of m->removed: roundings that were removed from gradients of the op */
} ExplainFacts;
ExplainFacts explain_facts(const Module *m);
const ExplainNumbers *explain_kernels(const ExplainFacts *x, const char *path);
const ExplainNumbers *explain_removed(const ExplainFacts *x, const char *path);
/* Where and how often a cast happens, in words; NULL: nowhere that is known. */
const char *explain_cast_place(const ExplainFacts *x, const CastNote *c);

/* Both tell the decisions whose path matches |glob| (NULL: all), and return how many there were. */
int explain_as_text(Text *t, const Module *m, const char *glob);
amp_status explain_as_json(Text *t, const Module *m, const Module *graph, const char *glob, int *found, amp_error *err);
/* "rows": the ops of |graph|, the module behind simplify, whose path matches |glob|. */
void explain_put_rows(amp_json_writer *w, const Module *graph, const char *glob);

#endif
