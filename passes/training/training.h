/* training.h: what the files of the passes of a training step share.
 *   means.c, autodiff.c, gradient*.c, distribute.c, scale.c, optimizer.c  the passes; gradient.h has the rules
 *   train_step.c       the model's train blocks and the functions of a step
 *   accumulate.c       a step as two functions: one for each micro-batch, and one that ends the step
 *   accumulate_tree.c  sums over its micro-batches in the order of a balanced tree
 *   step_mean.c        the mean over all micro-batches of a step, of all ranks, however many samples or labels each has
 *   statistics.c       running statistics of models that train on several ranks
 *   sync.c             batch norm over the batches of all ranks
 *   keep.c             a state whose new value is not finite keeps the one that it has
 *   least_batch.c      how many samples a batch needs
 *   shares.c           which weights ranks divide among them (zero1), and what apply_step knows of whole gradients
 *   checkpoint.c       blocks `checkpoint { }` of the model: what the backward pass reads of them is computed again
 *   rates.c            learning rates and weight decays of a train block, as scalars of the step
 *   lazy.c             tables whose rows that a step has read are updated, and no others
 *   low_states.c       parameters and moments in 16 bits: the last step of the pass optimizer
 */
#ifndef AMP_PASSES_TRAINING_TRAINING_H
#define AMP_PASSES_TRAINING_TRAINING_H

#include "passes/common/buckets.h"
#include "passes/common/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- train_step.c ------------------------------------------------------------------------------------------------ */

int train_block_count(const Module *m);
const Train *train_block(const Module *m, int block);

/* The block that trains parameters of this name; -1: none. */
int train_block_of(const Module *m, const char *state);

/* Path, place and reason of an op of an update: "fc1.weight.adamw". */
void train_explain_update(Module *m, const Train *block, Op *o, const char *of, const char *what);
/* A number of the model text; an int may be written where a float is expected. */
double train_number(const CallArg *arg, double otherwise);
/* Every attribute of the op that the call names. */
void train_set_attributes(const Call *call, Op *o);

/* Gradients of a training step, in the order of the parameters: the results of kind GRADIENT of |f|.
 * |block| -1: of every block. */
typedef struct ParamGradient {
    const State *param;
    int result; /* of f */
} ParamGradient;
typedef VEC(ParamGradient) ParamGradients;
ParamGradients train_gradients(const Func *f, int block);

/* The function that ends a step: apply_step if steps accumulate, else train_step; NULL: nothing is trained. */
Func *train_last_function(const Module *m);
/* The one that runs the model: micro_step or train_step. */
Func *train_first_function(const Module *m);

/* ---- accumulate.c ------------------------------------------------------------------------------------------------ */

typedef struct StepMean StepMean;
typedef struct TreeLevel TreeLevel;

/* The gradient of a term of a loss, added up. */
typedef struct Added {
    const State *param;
    int term;
    bool first; /* of the parameter */
    Val total;  /* in apply_step */
} Added;

typedef struct Split {
    Module *m;
    Func *micro_step, *apply_step; /* NULL: the step is one function */
    Val micro;                     /* the number of the micro-batch */
    Val first;                     /* it is the first of its step; NO_VAL: each is */
    TreeLevel *level;              /* of the tree in which micro-batches are added; accumulate_tree.c */
    int levels;                    /* 0: they are added from left to right */
    StepMean *mean;
    VEC(Added) added;
    /* Of models that train on several ranks: */
    StateList batch;  /* what micro_step leaves for statistics_step */
    StateList synced; /* buffers that become the same on all ranks by themselves (sync.c) */
} Split;

/* Where the module's steps accumulate, or are divided over ranks, `train_step`, which ends with gradients, becomes
 * `micro_step` and `apply_step`; the latter starts from the summed gradients. */
Split accumulate_split(Module *m);

/* The state "NAME/SLOT" of a step, like |of|; made where there is none. */
State *accumulate_state(Split *s, const State *of, StateRole role, const char *slot);
/* |sum| holds the sum of |v| over the step's micro-batches; the sum, in apply_step. */
Val accumulate_add(Split *s, const State *sum, Val v, const char *path);
/* Says of the op in micro_step that makes |v| where it comes from; returns |v|. */
Val accumulate_explain(Split *s, Val v, const char *path);
Val accumulate_number(Func *f, Dtype t, double value, const char *path);
/* |state| becomes |next|, at the end of |f|. */
void accumulate_assign(Split *s, Func *f, Val state, Val next);
/* Moves the last |count| ops of the body to |at|. */
void accumulate_move_last(Func *f, int count, int at);

/* ---- accumulate_tree.c ------------------------------------------------------------------------------------------- */

/* When the module asks for it and it is another order than from left to right: what all sums of micro_step read, at
 * the end of its body.  |first|: the number of this rank's first micro-batch. */
void accumulate_tree_begin(Split *s, Val first);
/* What |sum|, a state, becomes in a micro-batch that adds |v|. */
Val accumulate_tree_next(Split *s, const State *sum, Val v, const char *path);

/* ---- step_mean.c ------------------------------------------------------------------------------------------------- */

/* In micro_step, what losses and metrics are means over, counted.  Sets Split.mean. */
void step_mean_count(Split *s);
/* Where that is what has to be weighed: the seed of each term. */
void step_mean_weigh_seeds(Split *s);
/* What a micro-batch adds to the sum of a gradient of |term|. */
Val step_mean_weigh(Split *s, int term, Val gradient, const char *path);
/* The mean of a sum over ranks, in apply_step. */
Val step_mean_of_ranks(Split *s, Val sum, const char *of);
/* Adds losses, metrics and counts up; apply_step gets their means, and the gradients as results.  The states that hold
 * the sums: ranks exchange them. */
StateList step_mean_finish(Split *s);

/* ---- statistics.c ------------------------------------------------------------------------------------------------ */

/* Moves what makes |next| of the buffer's old value from micro_step to statistics_step, and appends the states through
 * which micro_step gives it the rest to |batch|.  false: it cannot be moved, and nothing has changed. */
bool statistics_move(Split *s, const State *buffer, Val next, StateList *batch);

/* Whether the op reads what a micro-batch before it made of a buffer.  batch_norm has the running statistics for its
 * form in evaluation, and for a batch of one value a channel: there those from before the step, as ranks have them. */
bool statistics_reads(const Op *o, int operand);

/* ---- sync.c ------------------------------------------------------------------------------------------------------ */

/* In train_step of a model that trains on several ranks: sums over ranks for each batch_norm that is `sync`, and
 * numbers for all of them.  Nothing of it is left in other functions, and where the model trains alone. */
void sync_expand(Module *m);

/* Whether |next|, what micro_step makes of a buffer, is the same on all ranks, as they have added up what it is made
 * of: then there is one for all ranks, and not one for each of their micro-batches. */
bool sync_is_equal(const Split *s, const State *buffer, Val next);

/* ---- keep.c ------------------------------------------------------------------------------------------------------ */

/* In train_step, of what each result "update.BUFFER" is. */
void keep_finite(Module *m);
/* In the functions that train_step became: counters of the states that did. */
void keep_count(Module *m);

/* Whether keep_finite has made the op: a question whether values are finite, or the choice by its answer. */
bool keep_made(const Op *o);

/* ---- least_batch.c ----------------------------------------------------------------------------------------------- */

/* Sets |m->least_batch| of train_step. */
void least_batch_find(Module *m);

/* ---- shares.c ---------------------------------------------------------------------------------------------------- */

/* Shares are runs of elements as they are in memory, which tiles of 32 columns have to fit.  |gradient|: of |param|, in
 * micro_step.  |tiles|: matrices will be stored in tiles, where products make them. */
bool shares_fit(const Func *f, const State *param, Val gradient, bool tiles);
/* Whether ranks divide it; false before pass distribute. */
bool shares_have(const Module *m, const State *param);

/* |finite|, bool: whether the rank's shares are.  Whether all shares are; |finite| itself where there are none. */
Val shares_all(Func *f, Val finite, const char *path);
/* The norm of all gradients, f64, from the norm of the rank's shares and the norm of gradients that every rank has;
 * either may be NO_VAL. */
Val shares_norm(Func *f, Val of_share, Val of_whole, const char *path);

/* ---- means.c ----------------------------------------------------------------------------------------------------- */

/* How a value that is not of a sample becomes, from its values in several batches, its value in one batch of all. */
typedef enum MeanKind {
    MEAN_FIXED,   /* it is the same in all */
    MEAN_SAMPLES, /* their mean, by samples.  Also what has no better one: a variance, an extreme, a product N x N */
    MEAN_LABELS,  /* their mean, by the labels that an nll_loss counts */
    MEAN_VALUE,   /* their mean, by a sum that it was divided by */
    MEAN_SUM,     /* their sum */
    MEAN_MIXED    /* none of these: it is computed from such */
} MeanKind;

typedef struct Mean {
    MeanKind kind;
    bool of_batch;             /* the value is of samples: it has the dimension N, and no |kind| */
    bool trained;              /* a gradient goes from it to a state */
    Val logp, targets, weight; /* LABELS; |weight| may be NO_VAL */
    int64_t ignore;
    Val divisor;       /* VALUE */
    bool divisor_mean; /* |divisor| is a mean over samples, and no sum */
} Mean;

/* By value id of |f|.  |of_gradients|: the gradient of what is divided by a sum that has a bound, or a small number
 * added, goes by that sum, too; the value itself is computed from both. */
const Mean *means_of(const Func *f, bool of_gradients);
/* Whether both are divided by the same count. */
bool mean_same_count(const Mean *a, const Mean *b);
/* The count of a mean in a batch, f64, made at the end of the body where it is not there yet; NO_VAL: samples, or no
 * mean. */
Val mean_count(Func *f, const Mean *mean);
/* The samples of a call: its first input with the dimension N; NO_VAL: none has it. */
Val mean_samples(const Func *f);
/* |v| without the casts that it went through. */
Val mean_bare(const Func *f, Val v);

/* |loss| as a sum of terms, each with a count of its own.  False: it is no such sum. */
typedef struct Term {
    Val value;
    Mean mean;
} Term;
typedef VEC(Term) TermList;
bool mean_terms(const Func *f, const Mean *means, Val loss, TermList *out);

/* ---- checkpoint.c ------------------------------------------------------------------------------------------------ */

typedef struct Checkpoints Checkpoints;

/* Of a backward pass that is about to begin; |word| is added to the paths of copies.  NULL: the function has none. */
Checkpoints *checkpoints_new(Func *f, int forward_ops, const char *word);
/* The gradients of |o| come next.  |gradient|: those so far, by value id; the result of |o| has one. */
void checkpoints_reach(Checkpoints *c, const Op *o, const Val *gradient);
/* What a backward op of |o| reads in place of the forward value |v|. */
Val checkpoints_read(Checkpoints *c, const Op *o, Val v);
/* Nothing is in a checkpoint any more. */
void checkpoints_forget(Module *m);

/* ---- optimizer.c ------------------------------------------------------------------------------------------------- */

/* The optimizer of a parameter, if it needs the whole of it to update an element; else NULL. */
const Call *optimizer_of_whole(const Module *m, const char *param);

/* ---- rates.c ----------------------------------------------------------------------------------------------------- */

typedef struct MadeRate { /* a learning rate or weight decay that has been emitted */
    const char *argument; /* of the optimizer */
    int optimizer, group; /* groups of the block that give these; NO_BLOCK: the block */
    Val value;            /* f64 scalar */
} MadeRate;

typedef struct BlockRates { /* the rates of one train block while its updates are built */
    PassContext *c;
    Func *f;
    const Train *block;
    int index; /* of the block */
    Val done;  /* i64 state: updates so far, the step of schedules */
    VEC(MadeRate) made;
} BlockRates;

/* The schedules are known, and the names of their states are free. */
bool rates_check(BlockRates *b);

/* f64 scalars, made once for all parameters that share them. */
Val rate_of_param(BlockRates *b, const ParamTraining *settings);
Val decay_of_param(BlockRates *b, const ParamTraining *settings);

/* ---- lazy.c ------------------------------------------------------------------------------------------------------ */

/* Tables that groups of parameters make lazy can be; before autodiff.  false: the errors are in the diagnostics. */
bool lazy_check(PassContext *c, const Func *forward);
/* In train_step, their gradients become gradients by row.  False after an error. */
bool lazy_gradients(PassContext *c, Func *f);
/* The op distinct_rows of a table's gradient; NULL: it is not lazy. */
const Op *lazy_rows(const Func *f, const State *param);
/* Rows of the table, or of a moment of it, as the gradient has them. */
Val lazy_take(Func *f, const Op *rows, Val state, const Train *block);

/* ---- low_states.c ------------------------------------------------------------------------------------------------ */

/* Stores the states in the types that the precision block gives them.  False after an error. */
bool store_low_states(PassContext *c);

#ifdef __cplusplus
}
#endif

#endif
