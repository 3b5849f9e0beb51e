/* check.h: what checks are made of: the ops of a step with the readers and the range of each value, and adding a
 * finding.
 *
 * A new check: a function `void lint_NAME(Lint *)` in a file of its own, its declaration below, a row of the table in
 * lint.c, a line in docs/lint.md, and models in tests/lint/planted/ that it finds, each with what is printed. */
#ifndef AMP_COMPILER_LINT_CHECK_H
#define AMP_COMPILER_LINT_CHECK_H

#include "compiler/lint/lint.h"

/* Largest finite number of f16; what rounds to infinity begins half a step above it. */
#define F16_MAX 65504.0
#define F16_INFINITE 65520.0
/* What is not above rounds to 0: half of the least f16. */
#define F16_ZERO 0x1p-25

/* Numbers that a value holds in exact arithmetic, as far as ops bound them. */
typedef struct Range {
    double low, high;
    bool whole; /* nothing but counts: those of arange */
} Range;

typedef VEC(const Op *) LintOps;

typedef struct LintFunc {
    const Func *f;
    LintOps *readers; /* by value id */
    Range *ranges;    /* by value id */
} LintFunc;

typedef struct Lint {
    const LintInput *in;
    Arena *arena;
    VEC(LintFunc) funcs;
    const char *id; /* of the check that runs */
    Findings *out;
} Lint;

/* ---- the graph (graph.c) ----------------------------------------------------------------------------------------- */

/* Calls |check| for every op of the forward pass, in order. */
void lint_each_op(Lint *x, void (*check)(Lint *x, const LintFunc *g, const Op *o));
LintFunc lint_func(Arena *a, const Func *f, int64_t batch);
bool lint_is_forward(const Op *o);

bool is_low(Dtype t);                             /* f16 or bf16 */
Dtype lint_dtype(const LintFunc *g, const Op *o); /* of the first result */
/* Behind casts, reshapes and other views: the op that computes |v|; NULL: an input or a state.  |low| (may be NULL)
 * becomes the 16-bit type that a value on the way, or the last, has. */
const Op *lint_maker(const LintFunc *g, Val v, Dtype *low);
/* Whether both are the same elements at the same places, but for casts. */
bool lint_is_same(const LintFunc *g, Val a, Val b);
/* The number that |v| is everywhere; false: it is none. */
bool lint_number(const LintFunc *g, Val v, double *out);
/* The f16 in which the result of |o| ends: its own, or the cast that a reader of the forward pass wants; |reader| is
 * that op's path, NULL: its own type is f16.  false: it ends in no f16. */
bool lint_ends_in_f16(const LintFunc *g, const Op *o, const char **reader);
/* A help beside "f32" for |o|: its readers in 16 bits would round the result; then |otherwise|, which may be NULL. */
const char *lint_f32_for_readers(Lint *x, const LintFunc *g, const Op *o, const char *otherwise);
/* How many elements of operand 0 a result of |o| is made of: of reductions over dims. */
double lint_reduced(const LintFunc *g, const Op *o, int64_t batch);
Range lint_range(const LintFunc *g, Val v);
double range_largest(Range r); /* |x| */

/* ---- ranges.c ---------------------------------------------------------------------------------------------------- */

/* Of every value, by its id. */
Range *lint_ranges(Arena *a, const LintFunc *g, int64_t batch);

/* ---- findings.c -------------------------------------------------------------------------------------------------- */

/* Adds what the running check found at |o|.  The texts live in the arena. */
void lint_add(Lint *x, const Op *o, const char *word, const char *help, const char *format, ...) AMP_PRINTF(5, 6);
void lint_add_at(Lint *x, Pos pos, const char *path, const char *word, const char *help, const char *text);
/* Findings that differ in their paths alone become one; those that are allowed go; the rest is put in order. */
void findings_finish(Arena *a, const LintInput *in, Findings *list, const char *const *allow, size_t allow_count);

/* ---- the checks -------------------------------------------------------------------------------------------------- */

void lint_alignment(Lint *x);
void lint_cast(Lint *x);
void lint_sum_overflow(Lint *x);
void lint_exp_overflow(Lint *x);
void lint_square_overflow(Lint *x);
void lint_variance_low(Lint *x);
void lint_small_constant(Lint *x);
void lint_large_constant(Lint *x);
void lint_log_zero(Lint *x);
void lint_bce_logits(Lint *x);
void lint_whole_numbers(Lint *x);
void lint_loss_low(Lint *x);
void lint_loss_scale(Lint *x);
void lint_wide_reduce(Lint *x);
void lint_no_gain(Lint *x);

#endif
