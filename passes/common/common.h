/* common.h: what several groups of passes share: replacing values, the functions of a mode, errors at places of the
 * model text. */
#ifndef AMP_PASSES_COMMON_COMMON_H
#define AMP_PASSES_COMMON_COMMON_H

#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- passes over functions --------------------------------------------------------------------------------------- */

/* Rewrites each function whose ops compute something: exchanges of ranks are not rewritten. */
bool each_func(PassContext *c, void (*rewrite)(Func *f));

/* ---- replacing values, copying ops ------------------------------------------------------------------------------- */

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

/* Whether the name of |v| is a number: the model does not name it. */
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

/* ---- sums over rows ---------------------------------------------------------------------------------------------- */

/* A sum over all samples has one task per 32 columns.  If a sample has at least this number of rows, they
 * are added first, by sample, or by chunk of one. */
enum { ROWS_PER_SAMPLE = 16 };

/* Chunks of a sample of |rows| x |cols| that are added by themselves: equally long, and more where there are few
 * columns, so that sixteen samples give a large GPU blocks enough; |least| where they have rows for it. */
int64_t chunks_of_sample(int64_t rows, int64_t cols, int64_t least);

/* ---- modes: training and evaluation are one function in the language; here it becomes one for each --------------- */

typedef struct Mode {
    ProgramKind kind;               /* of the function */
    bool training;                  /* dropout drops, batch norm uses the batch */
    bool (*wants)(ResultKind kind); /* results that it keeps */
} Mode;

/* Losses, metrics and updates: what train blocks and `update` ask for.  All others are the model's own results. */
bool result_is_of_training(ResultKind kind);
/* Those that say how losses and metrics go over several batches. */
bool result_is_count(ResultKind kind);

/* The value of a result; NO_VAL: there is no such result. */
Val result_value(const Result *r);

/* |f| in a mode: the results that the mode wants, with the ops and inputs that they need and no others. */
Func *mode_make(const Func *f, const Mode *mode);

/* ---- errors at places of the model text -------------------------------------------------------------------------- */

/* An error at |pos|: with line and caret if the module holds its text, else with file, line and column in the
 * message. */
Diag *place_error(PassContext *c, Pos pos, const char *fmt, ...) AMP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
