/* lower.h: what the files of the lower pass share.
 *   lower.c         the pass: regions, names, the walk over the body, and the tables of the other files
 *   lower_form.c    channels last: which form an op works in, and the other form of a value
 *   lower_emit.c    core ops from core values: casts, arithmetic with operands that fit, movement; memos, attributes
 *   lower_reduce.c  reductions over any dims, and what undoes them; the rules of ops that reduce
 *   lower_pointwise.c, lower_move.c, ...            the other rules, by theme, and under them their rows
 *
 * A rule emits core ops for Lowering.op and gives each of its results a value by lower_give.  All
 * arithmetic is in f32, whatever the dtypes of the graph op: operands are widened, the result is rounded once.  The
 * order of calls is the order of ops, so no two arguments of a call emit.
 */
#ifndef AMP_PASSES_LOWER_LOWER_H
#define AMP_PASSES_LOWER_LOWER_H

#include "ir/draw_numbers.h"
#include "passes/common/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The form of a graph value, [N, C, ...], in core IR: as it is, or with the channels last, [N, ..., C]; the weight
 * of a convolution, [O, I, KH, KW], and what is computed for it: also as [KH, KW, I, O]. */
typedef enum ChannelForm { FORM_PLAIN, FORM_LAST, FORM_HWIO } ChannelForm;

/* Which form a rule works in. */
typedef enum FormRule {
    TAKES_PLAIN, /* operands and results are plain; Lowering.op->in holds them */
    TAKES_LAST, /* operands and results of the op's largest rank have the channels last, where that rank is 3 or more */
    TAKES_EITHER, /* whichever its operands have */
} FormRule;

/* How a rule takes weights of convolutions that lie as [KH, KW, I, O]. */
typedef enum WeightRule {
    WEIGHTS_PLAIN, /* not at all */
    WEIGHTS_ALIKE, /* elementwise: all operands of rank 4 lie so, and the results */
    WEIGHTS_EACH,  /* each operand in its own form; results are scalars */
} WeightRule;

typedef struct Memo {
    const char *key;
    Val value;
    struct Memo *next;
} Memo;

enum { MEMO_SLOTS = 4096, MAX_WIDE = 8 };

typedef struct OtherForm { /* by core value */
    bool is_last, is_hwio;
    Val other;   /* the same graph value in the other form, of an HWIO one the plain form; NO_VAL: not made yet */
    Val hwio;    /* of a plain one: likewise */
    int readers; /* of the graph values that a rule gave it for */
    Val of;      /* of a copy that a checkpoint made: the value that it is computed again for */
    bool asked;  /* the other form of it, or of a copy, has been made */
} OtherForm;

typedef struct Original { /* a graph op that has been lowered: a copy of it works in the same form */
    ChannelForm form;
    Val *given; /* core values of its results */
} Original;

typedef struct Lowering {
    Func *f;
    PassContext *c;
    Op *op;                /* the graph op; its inputs are core values already */
    ChannelForm form;      /* that the op works in */
    int rank;              /* FORM_LAST: of the operands and results that have the channels last */
    Val *given;            /* core values of the op's results */
    Val wide[2][MAX_WIDE]; /* operands widened already: from, to */
    int wide_count;
    VEC(OtherForm) forms; /* by value id; values past the end are plain */
    const int *readers;   /* by id of a graph value */
    int graph_values;
    Table originals; /* by path: to Original */
    Memo **memos;    /* values that several graph ops share, by hash */
    bool failed;
} Lowering;

/* ---- rules ------------------------------------------------------------------------------------------------------- */

typedef struct LowerRow {
    void (*lower)(Lowering *l);
    FormRule form;
    WeightRule weights;
    bool stays; /* legal at both levels as it is */
} LowerRow;

/* By opcode, one table a file; an op is in one of them. */
extern const LowerRow lower_activation_ops[OP_COUNT], lower_fold_ops[OP_COUNT], lower_pair_loss_ops[OP_COUNT],
    lower_attention_ops[OP_COUNT], lower_loss_ops[OP_COUNT], lower_move_ops[OP_COUNT], lower_norm_ops[OP_COUNT],
    lower_pointwise_ops[OP_COUNT], lower_product_ops[OP_COUNT], lower_reduce_ops[OP_COUNT],
    lower_resample_ops[OP_COUNT], lower_training_ops[OP_COUNT];
enum { LOWER_TABLES = 12 };
extern const LowerRow *const lower_tables[LOWER_TABLES];
/* Of elementwise ops of both levels that are in none: the core op of the same name. */
extern const LowerRow lower_same_op;
const LowerRow *lower_row(Opcode code); /* NULL: the op has no rule */

/* ---- forms (lower_form.c) ---------------------------------------------------------------------------------------- */

/* The form in which the graph op costs the fewest permutes. */
ChannelForm lower_choose_form(const Lowering *l, const Op *o, FormRule rule, WeightRule weights);
bool lower_is_last(const Lowering *l, Val v);
/* The core value |copy| is |of|, computed again: operands count as having the forms of the original's operands, or sums
 * of the backward pass could have another order than without the checkpoint. */
void lower_mark_copy(Lowering *l, Val copy, Val of);
/* The core value of the same graph value in a form; emits a permute, or a reshape where that is enough, the first time.
 * Values of a rank below 3 have one form. */
Val lower_plain(Lowering *l, Val v);
Val lower_last(Lowering *l, Val v);
/* |v|, or where it is an input but for its form and dtype, another copy, which is made here: so that no copy lives from
 * the beginning of a step, where an input is read first, to its end, where a weight gradient reads it again. */
Val lower_again(Lowering *l, Val v);
void lower_mark_last(Lowering *l, Val v);
bool lower_is_hwio(const Lowering *l, Val v);
Val lower_hwio(Lowering *l, Val v);
void lower_mark_hwio(Lowering *l, Val v);
/* The parameters that convolutions read, and the states that go with them, lie as [KH, KW, I, O] from here on: so a
 * tile of a weight's gradient is a tile of its master, and no step permutes a weight. */
void lower_turn_weights(Module *m);
/* Names v, whose channels are last, after a value of the graph. */
void lower_name_last(Lowering *l, Val v, Val graph);
/* Ops of the graph, and results, that read a core value. */
int lower_readers(const Lowering *l, Val v);
void lower_add_readers(Lowering *l, Val v, Val graph);
int lower_largest_rank(const Lowering *l, const Op *o);
/* The position of dimension |dim| of a graph value of rank |rank| in the op's form. */
int lower_place_of(const Lowering *l, int dim, int rank);
/* A graph shape in the op's form; and the graph's shape of a core value. */
Shape lower_shape_in_form(const Lowering *l, const Shape *s);
Shape lower_plain_shape(const Lowering *l, Val v);
/* From the op's form to plain, and back: for values that stand for no graph value. */
Val lower_from_form(Lowering *l, Val v);
Val lower_to_form(Lowering *l, Val v);

/* ---- operands and results of the graph op ------------------------------------------------------------------------ */

/* Operand |i| in the op's form, as it is.  Where the channels are last, one of a lower rank is broadcast to the op's
 * rank by NumPy's rule first. */
Val lower_given(Lowering *l, int i);
/* The same in f32; integers and bool stay what they are. */
Val lower_operand(Lowering *l, int i);
/* Operand |i|, plain, in f32. */
Val lower_plain_operand(Lowering *l, int i);
Val lower_widen(Lowering *l, Val v);
/* Makes core value |v|, rounded to the dtype of result |i| of the graph op, that result; it has the op's form. */
void lower_give(Lowering *l, int i, Val v);
/* The same, in a form of its own. */
void lower_give_as(Lowering *l, int i, Val v, ChannelForm form);
/* Attributes of the graph op. */
double lower_float(const Lowering *l, const char *name);
bool lower_bool(const Lowering *l, const char *name);
int64_t lower_int(const Lowering *l, const char *name);
/* Copies attributes of the same name from the graph op. */
void lower_copy_attrs(const Lowering *l, Op *to);

/* ---- core ops (lower_emit.c) ------------------------------------------------------------------------------------- */

Val lower_cast(Lowering *l, Val v, Dtype t);
/* Elementwise core ops; floats stay in the dtype of the first operand.  Operands that do not fit a kernel's rows and
 * columns are expanded. */
Val lower_unary(Lowering *l, Opcode code, Val a);
Val lower_binary(Lowering *l, Opcode code, Val a, Val b);
Val lower_select(Lowering *l, Val c, Val a, Val b);
Val lower_add(Lowering *l, Val a, Val b);
Val lower_sub(Lowering *l, Val a, Val b);
Val lower_mul(Lowering *l, Val a, Val b);
Val lower_div(Lowering *l, Val a, Val b);
Val lower_scaled(Lowering *l, Val a, double factor);
/* A scalar constant: f32, or of type |t|. */
Val lower_number(Lowering *l, double value);
Val lower_number_of(Lowering *l, double value, Dtype t);
/* v repeated along |dims| of |like|'s shape. */
Val lower_broadcast(Lowering *l, Val v, Val like, const Dims *dims);
/* The index of each element of |like| along its last dimension, as i32. */
Val lower_iota(Lowering *l, Val like);
/* An op whose result has a given type. */
Op *lower_op_of(Lowering *l, Opcode code, const Val *in, int n_in);
Val lower_result_of(Lowering *l, Op *o, Dtype t, const Shape *s);
/* Movement; where nothing changes they give v itself.  A permute that moves only dims of size 1 is a reshape. */
Val lower_reshape(Lowering *l, Val v, const Shape *s);
Val lower_permute(Lowering *l, Val v, const Dims *dims);
Val lower_swap_dims(Lowering *l, int from_end, Val v); /* the dims -from_end and -from_end - 1 */
Val lower_expand(Lowering *l, Val v, const Shape *s);
/* v as an operand beside a result of shape |s|: itself, or expanded. */
Val lower_fit(Lowering *l, Val v, const Shape *s);
bool lower_fits(const Lowering *l, Val v, const Shape *s);

/* ---- reductions (lower_reduce.c) --------------------------------------------------------------------------------- */

/* Folds the last dimension and keeps it, with size 1. */
Val lower_reduce_row(Lowering *l, Opcode code, Val v);
/* Folds the dims of v that are |folded|; with |keep| they stay with size 1.  Made of the three folds that kernels have:
 * along the last dimension, over all that lead, over a run before the last one. */
Val lower_reduce(Lowering *l, Opcode code, Val v, const bool *folded, bool keep);
Val lower_reduce_all(Lowering *l, Opcode code, Val v);
/* How many elements v has along those dims: a constant, or an extent; f32 scalar. */
Val lower_count(Lowering *l, Val v, const bool *folded);
/* total / count, by a multiplication where that is exact. */
Val lower_divide_by_count(Lowering *l, Val total, Val count);
Val lower_mean_of(Lowering *l, Val v, const bool *folded, bool keep);
/* f32 scalar: how many elements |like| has along |dims| (all where none are given). */
Val lower_extent(Lowering *l, Val like, const Dims *dims);
/* The dims of the graph op's attribute "dims" as flags by dimension of a graph value of rank |rank| in the op's form;
 * none given: all. */
void lower_folded_dims(const Lowering *l, int rank, bool *folded);
/* The operand of a graph op that folds, with its dims. */
typedef struct FoldedOperand {
    Val x;
    int rank;
    bool folded[MAX_RANK], keep;
} FoldedOperand;
FoldedOperand lower_folded_operand(Lowering *l);
/* |v| is the fold: in the op's form, its dims gone or kept. */
void lower_give_folded(Lowering *l, const FoldedOperand *r, Val v);
/* Operand |i| is what a reduction of a value like the op's result gives, without or with kept dims: with kept dims, in
 * f32 and the op's form. */
Val lower_reduced_operand(Lowering *l, int i);

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* A place for a value that is computed once for all graph ops that ask with the same key; id 0 the first time. */
Val *lower_memo(Lowering *l, const char *fmt, ...) AMP_PRINTF(2, 3);
/* A counter of the training session, which the model gets with its first random op. */
Val lower_counter(Lowering *l, CounterKind kind);
/* An op that is valid but that core IR cannot say yet; the message starts with the op's place and path. */
void lower_unsupported(Lowering *l, const char *fmt, ...) AMP_PRINTF(2, 3);
/* The transpose of a value that is a product of matrices, as a product; NO_VAL where it is none. */
Val lower_transposed_product(Lowering *l, Val v);
/* The product of two matrices, in f32; ta, tb: that operand is stored transposed. */
Val lower_contract(Lowering *l, Val a, bool ta, Val b, bool tb);
/* The products of the matrices of a and b, leading dims equal, in f32; ta, tb: that operand is stored transposed. */
Val lower_batch_product(Lowering *l, Val a, bool ta, Val b, bool tb);
/* v with the sign of x: 0 where x is 0 or NaN. */
Val lower_signed_by(Lowering *l, Val v, Val x);
/* log(1 + t) for t >= 0, accurate near 0. */
Val lower_log1p(Lowering *l, Val t);
/* Of the random numbers of a tensor whose elements have the numbers |d|: appends to |in| where they are in a step of
 * several micro-batches: how many numbers come before, so that they do not depend on how samples are divided; or, if
 * there are no samples, the micro-batch.  |of_batch|: its shape depends on N.  How many operands there are then. */
int lower_place_in_step(Lowering *l, const DrawNumbers *d, bool of_batch, Val *in, int n);
/* Uniform numbers in [0, 1) for the elements of |like|, f32 and plain, by the key |key| or the op's path.  |s|: its
 * shape, in which T = 1 is not yet a plain 1. */
Val lower_random(Lowering *l, Val like, const Shape *s, const char *key);
/* 1 / (1 + exp(-x)) */
Val lower_logistic(Lowering *l, Val x);

#ifdef __cplusplus
}
#endif

#endif
