/* casts.h: the casts of a step as the graph has them: what each casts, for which op, where that is in the model, and
 * how many bytes it reads and writes.  What explain lists, and what comparisons of models count. */
#ifndef AMP_COMPILER_CASTS_H
#define AMP_COMPILER_CASTS_H

#include "base/json.h"
#include "base/text.h"
#include "ir/ir.h"

/* Bytes as a polynomial in N and T, the batch and the length of a call: at[1][2] * N * T^2 + ... */
typedef struct Bytes {
    double at[MAX_RANK + 1][MAX_RANK + 1];
} Bytes;

typedef struct Cast {
    const char *name;  /* its path: "fc1.linear.cast" */
    const char *value; /* what is cast: a value's name, or the path of the op that makes it */
    const char
        *asker; /* path of the op that reads it, or whose gradient needs it: "fc1.linear"; of a buffer, its name */
    const char *func;  /* "train_step" */
    const char *phase; /* casts_phase */
    Dtype from, to;
    Bytes bytes; /* read and written: elements x the sizes of both dtypes */
    Pos pos;     /* of the op that asked */
} Cast;
typedef VEC(Cast) Casts;

/* The casts of the step (of micro_step and apply_step; without training, of infer), in order.  |graph|: the module
 * after simplify; NULL: none.  They live in its arena. */
Casts casts_of(const Module *graph);

/* The functions that a step runs, else infer; in order, NULL after the last. */
enum { STEP_FUNCS = 3 };
void casts_step_funcs(const Module *m, const Func *out[STEP_FUNCS + 1]);

/* Of the backward pass, by its path: "fc1.linear.grad.input", "softmax.grad". */
bool casts_is_gradient(const Op *o);
/* The part of a step that an op with a reason belongs to: "forward", "backward" or "update". */
const char *casts_phase(const Op *o);

Bytes bytes_of_elements(const Shape *s, size_t element_bytes);
void bytes_add(Bytes *to, const Bytes *more);
double bytes_at(const Bytes *b, int64_t batch); /* where N is the batch, and T ASSUMED_T */
void bytes_print(Text *t, const Bytes *b);      /* "4704 N + 12" */
/* "bytes": "4704 N + 12", "bytes_by_power_of_n": [12, 4704]; where they depend on T, at ASSUMED_T, and
 * "bytes_by_powers_of_n_and_t", a list for each power of N */
void bytes_put(amp_json_writer *w, Arena *a, const Bytes *b);

/* How many, and how many bytes, from one dtype to another. */
typedef struct CastTotal {
    Dtype from, to;
    int count, fused;
    Bytes bytes;
} CastTotal;
typedef struct CastTotals {
    VEC(CastTotal) pairs; /* in order of appearance */
    CastTotal all;        /* its dtypes are NONE */
} CastTotals;
void casts_count(Arena *a, CastTotals *t, const Cast *c, bool fused);

/* ---- what ranks that train together send in a step, by the function reduce_step (exchange_cost.c) ---------------- */

typedef struct ExchangeCost {
    int messages;    /* all of them; 0: the model trains alone */
    int gradients;   /* tensors */
    int64_t numbers; /* of gradients */
    Dtype dtype;     /* that they travel in */
} ExchangeCost;

ExchangeCost exchange_cost(const Module *m);
/* Of gradients, in such a type; without padding. */
int64_t exchange_bytes(const ExchangeCost *x, Dtype dtype);

/* |cuda|: the model for CUDA, which has messages of its own; NULL: there is none. */
void exchange_cost_tell(Text *t, const Module *m, const Module *cuda); /* nothing where the model trains alone */
void exchange_cost_put(amp_json_writer *w, const Module *m, const Module *cuda); /* an object "exchange", or null */

#endif
