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

/* Numbers that are a step apart. */
typedef struct Grid {
    double first, last; /* the least and the largest, in either order */
    double step;        /* 0: one number; NAN: the value holds others, of which nothing is known */
    bool counted;  /* by arange, cumsum, argmax, floor, ...: counts and positions, and what arithmetic makes of them */
    bool in_order; /* from first to last along a dimension */
} Grid;

/* Numbers that a value holds in exact arithmetic, as far as ops bound them. */
typedef struct Range {
    double low, high;
    Grid grid; /* those of its numbers that are on one */
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

/* ---- grid.c ------------------------------------------------------------------------------------------------------ */

Grid grid_none(void);
Grid grid_one(double x);
Grid grid_bits(void); /* 0 and 1, of which sums are counts */
Grid grid_counted(double first, double last, double step);
Grid grid_unordered(Grid g);
double grid_low(Grid g);
double grid_high(Grid g);
Grid grid_negated(Grid g);
Grid grid_sum(Grid a, Grid b);
Grid grid_sum_in_order(Grid a, Grid b);
Grid grid_product(Grid a, Grid b);
Grid grid_maximum(Grid a, Grid b);
Grid grid_clipped(Grid g, double low, double high);
Grid grid_join(Grid a, Grid b); /* numbers of either */
Grid grid_magnitude(Grid g);
Grid grid_square(Grid g);
Grid grid_floor(Grid g);
Grid grid_sums(Grid g, double count); /* of 1 to |count| of them */
Grid grid_sliced(Grid g, double from, double count);
/* Whether |t| tells all of them apart, and holds the largest. */
bool grid_is_held(Grid g, Dtype t);
bool grid_is_apart(Grid g, Dtype t);
bool grid_is_finite(Grid g, Dtype t);
double grid_apart_to(Grid g, Dtype t);

/* ---- ranges.c ---------------------------------------------------------------------------------------------------- */

/* Of every value, by its id, before it is rounded to its own type. */
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
