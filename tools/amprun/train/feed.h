/* feed.h: the batches of a training, filled by a thread while the model computes. */
#ifndef AMP_TOOLS_FEED_H
#define AMP_TOOLS_FEED_H

#include "amp/data.h"
#include "tools/amprun/data/data.h"

/* Where batch |index| of a training, counted from its start, is: an epoch takes all samples in an order of its own. */
typedef struct FeedPlan {
    const Dataset *data;
    const BatchList *batches; /* of an epoch */
    uint64_t seed;
    amp_sizes capacity; /* of a batch; n * t at most, 0: any: */
    int64_t tokens;
    /* Of the |step| batches in a row that a step of all ranks takes, this process takes |own|, from |first| on. */
    int64_t step, first, own;
} FeedPlan;

/* Which batch of the training the call |call| takes, both counted from 0. */
int64_t feed_batch(const FeedPlan *p, int64_t call);

typedef struct FeedOrder { /* of the batches of an epoch */
    int64_t *order, epoch;
} FeedOrder;

typedef struct Feed {
    FeedPlan plan;
    int64_t *order, shuffled;  /* of which epoch; the thread's alone */
    FeedOrder filling, taking; /* the thread's, the caller's */
    amp_dataset *filled;       /* the batches, for amp_dataset_next */
} Feed;

/* Samples of batch |index| of the training. */
int64_t feed_samples(Feed *f, int64_t index);

/* From the batch of call |first| on.  Reports and returns 1 on failure; in either case feed_close frees everything. */
int feed_open(Feed *f, amp_model *model, const FeedPlan *plan, int64_t first);
void feed_close(Feed *f);

/* Where a sample of the batch of call |index| is in the data; empty: it has no such sample. */
void feed_place(Feed *f, int64_t index, int64_t sample, char place[64]);
/* Reports an error of call |index|, naming its sample by its place in the data; returns 1. */
int feed_report(Feed *f, int64_t index, const amp_error *err);

#endif
