/* explain.h: what the files of amp_explain share.
 *   explain.c       finds the modules: compiled from source, or read out of a model.so; text for people
 *   explain_json.c  JSON for tools; every op of the graph
 *   explain_params.c how each parameter is trained
 *   explain_facts.c what the modules tell about one op
 */
#ifndef AMP_COMPILER_EXPLAIN_H
#define AMP_COMPILER_EXPLAIN_H

#include "base/error.h"
#include "base/json.h"
#include "base/arena.h"
#include "ir/ir.h"

typedef VEC(int) ExplainNumbers;

/* What there is to tell from. */
typedef struct ExplainSource {
    const Module *m;       /* after plan, for the CPU */
    const Module *graph;   /* after simplify, as the ops that a person knows; NULL: not there, or not wanted */
    const Module *cuda;    /* after plan, for CUDA; NULL: there is no machine code to tell of */
    const char *cuda_uses; /* the lines of AMP_MODEL_CUDA_USES_SECTION */
} ExplainSource;

typedef struct ExplainUse { /* of a kernel, for an architecture */
    char arch[16];          /* "sm_90" */
    int registers, shared_bytes, spill_bytes, stack_bytes;
} ExplainUse;
typedef VEC(ExplainUse) ExplainUses;

/* Where to find what is told about an op. */
typedef struct ExplainFacts {
    const Module *m;
    const Func *f;      /* the function that has the most to tell: the step, else infer; NULL: none */
    const Func *cuda;   /* the same for CUDA */
    Table kernels;      /* path -> ExplainNumbers: kernels of |f| that run something that came from it */
    Table cuda_kernels; /* the same of |cuda| */
    Table uses;         /* name of a kernel of |cuda| -> ExplainUses */
    Table casts;        /* "value type" -> kernels that cast the value to it */
    Table copies;       /* "parameter type" -> states */
    Table removed;      /* path -> of m->removed: roundings that were removed from gradients of the op */
} ExplainFacts;
ExplainFacts explain_facts(const ExplainSource *s);
const ExplainNumbers *explain_kernels(const ExplainFacts *x, const char *path);
const ExplainNumbers *explain_cuda_kernels(const ExplainFacts *x, const char *path);
const ExplainUses *explain_uses(const ExplainFacts *x, const Kernel *k); /* |k| of |cuda| */
const ExplainNumbers *explain_removed(const ExplainFacts *x, const char *path);
/* Where and how often a cast happens, in words; NULL: nowhere that is known. */
const char *explain_cast_place(const ExplainFacts *x, const Decision *d, const CastNote *c);

/* The decisions whose path matches |glob| (NULL: all), as JSON; |found|: how many there were. */
amp_status explain_as_json(Text *t, const ExplainSource *s, const char *glob, int *found, amp_error *err);

/* The parameters whose name matches |glob| (NULL: all): train block, groups, what these set.  As text only where there
 * are groups, or blocks for some parameters. */
void explain_params_as_text(Text *t, const Module *m, const char *glob);
void explain_params_as_json(amp_json_writer *w, const Module *m, const char *glob);

#endif
