/* feed.c: see feed.h. */
#include "tools/amprun/train/feed.h"

#include <sched.h>
#include <stdlib.h>

/* Batches that are filled ahead: one is enough where filling takes less time than a step, and two where it does so only
 * on average, as where a file comes from a disk.  Of large ones the second would cost more memory than it is worth. */
enum { AHEAD = 2, AHEAD_OF_LARGE = 1, NO_THREAD = -1, LARGE = 16 << 20 };

/* Waking a thread and being woken takes some 40 us of processor time a batch: as long as filling one of so many bytes,
 * unless they come from a file that need not be in memory. */
enum { SMALL = 64 << 10, FILE_IN_MEMORY = 64 << 20 };

int64_t feed_batch(const FeedPlan *p, int64_t call) { return call / p->own * p->step + p->first + call % p->own; }

/* Where batch |index| of the training is in the order of its epoch. */
static const Batch *batch_at(const FeedPlan *p, FeedOrder *o, int64_t index) {
    const int64_t epoch = index / p->batches->count;
    if (o->epoch != epoch) batch_list_order(p->batches, p->seed, o->epoch = epoch, o->order);
    return &p->batches->at[o->order[index % p->batches->count]];
}

int64_t feed_samples(Feed *f, int64_t index) { return batch_at(&f->plan, &f->taking, index)->sizes.n; }

static amp_status fill(void *user, int64_t index, void *const *arrays, amp_sizes capacity, amp_sizes *sizes,
                       amp_error *err) {
    Feed *f = user;
    const FeedPlan *p = &f->plan;
    const Batch *batch = batch_at(p, &f->filling, index = feed_batch(p, index));
    const int64_t epoch = index / p->batches->count;
    (void)capacity;
    if (f->shuffled != epoch) data_order(p->data, p->seed, f->shuffled = epoch, f->order);
    *sizes = batch->sizes;
    return data_fill(p->data, f->order + batch->from, batch->sizes, arrays, err);
}

static bool has_another_processor(void) {
    cpu_set_t set;
    return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 1;
}

static int32_t ahead(const FeedPlan *p) {
    size_t bytes = 0;
    for (int c = 0; c < p->data->columns; c++) bytes += p->data->column[c].sample_bytes * (size_t)p->capacity.n;
    bool is_quick = bytes < SMALL && p->data->file.size < FILE_IN_MEMORY;
    return is_quick || !has_another_processor() ? NO_THREAD : bytes > LARGE ? AHEAD_OF_LARGE : AHEAD;
}

int feed_open(Feed *f, amp_model *model, const FeedPlan *plan, int64_t first) {
    amp_error err = {0};
    const size_t orders = sizeof *f->filling.order * (size_t)plan->batches->count + 1;
    *f = (Feed){.plan = *plan, .shuffled = -1, .filling = {malloc(orders), -1}, .taking = {malloc(orders), -1}};
    amp_dataset_options options = {
        .struct_size = sizeof options,
        .fill = fill,
        .user = f,
        .capacity = plan->capacity,
        .tokens = plan->tokens,
        .first = first,
        .ahead = ahead(plan),
    };
    f->order = malloc(sizeof *f->order * (size_t)plan->data->count + 1);
    if (!f->order || !f->filling.order || !f->taking.order)
        return report_text("%s: no memory for the order of its samples", plan->data->spec);
    return amp_dataset_create(model, &options, &f->filled, &err) ? report(&err) : 0;
}

void feed_close(Feed *f) {
    amp_dataset_release(f->filled);
    free(f->order);
    free(f->filling.order);
    free(f->taking.order);
    *f = (Feed){0};
}

/* The order of the samples in the epoch of a batch, which the caller frees: the thread may be in the next one. */
static int64_t *order_of(const FeedPlan *p, int64_t index) {
    int64_t *order = malloc(sizeof *order * (size_t)p->data->count + 1);
    if (order) data_order(p->data, p->seed, index / p->batches->count, order);
    return order;
}

void feed_place(Feed *f, int64_t index, int64_t sample, char place[64]) {
    const FeedPlan *p = &f->plan;
    const Batch *batch = batch_at(p, &f->taking, index = feed_batch(p, index));
    int64_t *order = order_of(p, index);
    place[0] = 0;
    if (order && sample >= 0 && sample < batch->sizes.n) (void)data_place(p->data, order[batch->from + sample], place);
    free(order);
}

int feed_report(Feed *f, int64_t index, const amp_error *err) {
    const FeedPlan *p = &f->plan;
    const Batch *batch = batch_at(p, &f->taking, index = feed_batch(p, index));
    int64_t *order = order_of(p, index);
    if (!order) return report(err);
    int failed = data_report(p->data, order + batch->from, batch->sizes.n, err);
    free(order);
    return failed;
}
