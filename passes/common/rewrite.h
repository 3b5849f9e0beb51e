/* rewrite.h: what passes that replace values share. */
#ifndef AMP_PASSES_COMMON_REWRITE_H
#define AMP_PASSES_COMMON_REWRITE_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By value id: the value that replaces it; id 0: itself. */
typedef struct Renames {
    Val *to;
    int count; /* values made later are never replaced */
} Renames;

Renames renames_new(const Func *f);
Val renames_get(const Renames *r, Val v);
/* Inputs and predicate of one op. */
void renames_apply(const Renames *r, Op *o);
/* Results of the function and predicates of its kernels. */
void renames_apply_results(const Renames *r, Func *f);

/* Whether the name of |v| is a number: nobody named it. */
bool is_numbered(const Func *f, Val v);

/* Appends an op to |f| with the attributes, path, place and reason of |o|, which reads |in|; it has no results yet. */
Op *op_like(Func *f, const Op *o, const Val *in);

/* |to| gets the name of |from|, which is about to be removed.  A number is not a name. */
void take_name(Func *f, Val to, Val from);

/* Every number of |from| is a number of |to|. */
bool holds_exactly(Dtype to, Dtype from);
bool is_float(Dtype t);
/* Whether |o| is a cast that changes no number. */
bool is_widening(const Func *f, const Op *o);

#ifdef __cplusplus
}
#endif

#endif
