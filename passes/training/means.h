/* means.h: what a loss or a metric is over all samples that count together: a mean, a sum, or a function of such. */
#ifndef AMP_PASSES_TRAINING_MEANS_H
#define AMP_PASSES_TRAINING_MEANS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
