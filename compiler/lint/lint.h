/* lint.h: what a model's precision makes slow or unsafe, found in its graph.  A check only states what follows from the
 * graph, the kernels and the bounds that it names.
 *   lint.c       the call, the table of checks
 *   alignment.c, cast.c, overflow.c, constant.c, probability.c, whole_numbers.c, training.c  the checks
 *   graph.c      the ops of a step with the readers of each value
 *   ranges.c, grid.c  the range of each value
 *   findings.c   findings that say the same of several ops become one; which are left out
 *   report.c     text for people, JSON for tools
 *
 * A new check: a function lint_NAME in the file of its kind, its declaration below, a row of the table in lint.c, a
 * line in docs/lint.md, and models in tests/lint/planted/ that it finds, each with what is printed. */
#ifndef AMP_COMPILER_LINT_LINT_H
#define AMP_COMPILER_LINT_LINT_H

#include "compiler/compile_session.h"

/* Of the kernels of a step for CUDA. */
typedef struct LintSizes {
    double bytes; /* of temporaries and of copies of weights */
    int kernels;
} LintSizes;

typedef struct LintInput {
    const Module *m;             /* after simplify */
    const Func *const *funcs;    /* of it: what a step runs, else infer; NULL after the last */
    const CodegenCopies *copies; /* of its kernels for CUDA; NULL: those are not looked at */
    const CodegenCopies *padded; /* the same with `pad = true`; NULL: it is there, or nothing needs it */
    LintSizes sizes, padded_sizes;
    amp_lint_options want; /* |batch| is the N to assume, and is never 0 */
    Session *session;      /* has the texts of the files */
} LintInput;

typedef VEC(const char *) LintPaths;

typedef struct Finding {
    const char *id; /* "sum-overflow" */
    Pos pos;
    LintPaths paths;     /* ops that it is said of */
    const char *text;    /* what is wrong */
    const char *word;    /* what a line of the precision block says of the ops: "f32", "low"; NULL: none helps */
    const char *setting; /* a line that says nothing of ops: "pad = true"; or NULL */
    const char *help;    /* what to do, or what that line brings; NULL: nothing more */
    const char *pattern; /* of all |paths|, for the line */
} Finding;
typedef VEC(Finding) Findings;

/* Largest finite number of f16; what rounds to infinity begins half a step above it. */
#define F16_MAX 65504.0
#define F16_INFINITE 65520.0
/* What is not above rounds to 0: half of the least f16. */
#define F16_ZERO 0x1p-25

/* Numbers that are a step apart. */
typedef struct Grid {
    double first, last; /* the least and the largest, in either order */
    double step;        /* 0: one number; NAN: the value holds other numbers, which are unknown */
    bool counted;  /* by arange, cumsum, argmax, floor, ...: counts and positions, and what arithmetic makes of them */
    bool in_order; /* from first to last along a dimension */
} Grid;

/* Numbers that a value holds in exact arithmetic, as far as ops bound them. */
typedef struct Range {
    double low, high;
    Grid grid; /* of the numbers in the range that are on a grid */
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

/* What counts are of: the batch that is asked for, and the length that decisions assume. */
Sizes lint_at(const amp_lint_options *want);
LintFunc lint_func(Arena *a, const Func *f, Sizes at);
bool lint_is_forward(const Op *o);

bool is_low(Dtype t);                             /* f16 or bf16 */
Dtype lint_dtype(const LintFunc *g, const Op *o); /* of the first result */
/* The op that computes |v|, looking through casts, reshapes and other views; NULL: an input or a state.  |low| (may be
 * NULL) becomes the 16-bit type that a value on the way, or the last, has. */
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
double lint_reduced(const LintFunc *g, const Op *o, Sizes at);
Range lint_range(const LintFunc *g, Val v);
double range_largest(Range r); /* |x| */

/* ---- grid.c ------------------------------------------------------------------------------------------------------ */

Grid grid_none(void);
Grid grid_one(double x);
Grid grid_bits(void); /* 0 and 1, whose sums are counts */
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
/* Whether |t| represents all of them exactly, and holds the largest. */
bool grid_is_held(Grid g, Dtype t);
bool grid_is_apart(Grid g, Dtype t);
bool grid_is_finite(Grid g, Dtype t);
double grid_apart_to(Grid g, Dtype t);

/* ---- ranges.c ---------------------------------------------------------------------------------------------------- */

/* Of every value, by its id, before it is rounded to its own type. */
Range *lint_ranges(Arena *a, const LintFunc *g, Sizes at);

/* ---- findings.c -------------------------------------------------------------------------------------------------- */

/* Adds what the running check found at |o|.  The texts live in the arena. */
void lint_add(Lint *x, const Op *o, const char *word, const char *help, const char *format, ...) AMP_PRINTF(5, 6);
void lint_add_at(Lint *x, Pos pos, const char *path, const char *word, const char *help, const char *text);
/* Findings that differ in their paths alone become one; those that are allowed go; the rest is put in order. */
void findings_finish(Arena *a, const LintInput *in, Findings *list);

/* ---- the checks -------------------------------------------------------------------------------------------------- */

LintSizes lint_sizes(const Module *planned, Sizes at); /* alignment.c; of NULL 0 */

void lint_alignment(Lint *x);
void lint_loss_low(Lint *x);
void lint_loss_scale(Lint *x);
void lint_wide_reduce(Lint *x);
void lint_no_gain(Lint *x);
void lint_cast(Lint *x, const LintFunc *g, const Op *o);
void lint_sum_overflow(Lint *x, const LintFunc *g, const Op *o);
void lint_exp_overflow(Lint *x, const LintFunc *g, const Op *o);
void lint_square_overflow(Lint *x, const LintFunc *g, const Op *o);
void lint_variance_low(Lint *x, const LintFunc *g, const Op *o);
void lint_small_constant(Lint *x, const LintFunc *g, const Op *o);
void lint_large_constant(Lint *x, const LintFunc *g, const Op *o);
void lint_log_zero(Lint *x, const LintFunc *g, const Op *o);
void lint_bce_logits(Lint *x, const LintFunc *g, const Op *o);
void lint_softmax_by_hand(Lint *x, const LintFunc *g, const Op *o);
void lint_whole_numbers(Lint *x, const LintFunc *g, const Op *o);

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

/* As compilers print warnings, and a line that counts them. */
void lint_as_text(Text *t, const LintInput *in, const Findings *list);
amp_status lint_as_json(Text *t, const LintInput *in, const Findings *list, amp_error *err);

#endif
