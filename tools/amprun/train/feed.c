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

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Samples of the last but one batch of an epoch whose last has |rest|: of too few both have half of all, in units that
 * divide both. */
static int64_t samples_before_rest(const FeedPlan *p, int64_t rest) {
    const int64_t unit = common_divisor(p->batch, rest), both = (p->batch + rest) / unit;
    return rest < p->least ? (both + 1) / 2 * unit : p->batch;
}

int64_t feed_samples(const FeedPlan *p, int64_t index, int64_t *from) {
    const int64_t place = index % p->batches, rest = p->data->count - (p->batches - 1) * p->batch;
    *from = place * p->batch;
    if (p->batches == 1) return p->data->count;
    if (place < p->batches - 2) return p->batch;
    const int64_t before = samples_before_rest(p, rest);
    if (place == p->batches - 2) return before;
    *from += before - p->batch;
    return p->batch + rest - before;
}

static amp_status fill(void *user, int64_t index, void *const *arrays, amp_sizes capacity, amp_sizes *sizes,
                       amp_error *err) {
    Feed *f = user;
    const FeedPlan *p = &f->plan;
    int64_t from, epoch = (index = feed_batch(p, index)) / p->batches;
    (void)capacity;
    if (f->shuffled != epoch) data_order(p->data, p->seed, f->shuffled = epoch, f->order);
    sizes->n = feed_samples(p, index, &from);
    return data_fill(p->data, f->order + from, sizes->n, arrays, err);
}

static bool has_another_processor(void) {
    cpu_set_t set;
    return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 1;
}

static int32_t ahead(const FeedPlan *p) {
    size_t bytes = 0;
    for (int c = 0; c < p->data->columns; c++) bytes += p->data->column[c].sample_bytes * (size_t)p->batch;
    bool is_quick = bytes < SMALL && p->data->file.size < FILE_IN_MEMORY;
    return is_quick || !has_another_processor() ? NO_THREAD : bytes > LARGE ? AHEAD_OF_LARGE : AHEAD;
}

int feed_open(Feed *f, amp_model *model, const FeedPlan *plan, int64_t first) {
    amp_error err = {0};
    *f = (Feed){.plan = *plan, .shuffled = -1};
    amp_dataset_options options = {
        .struct_size = sizeof options,
        .fill = fill,
        .user = f,
        .capacity = {plan->batch, plan->length},
        .first = first,
        .ahead = ahead(plan),
    };
    f->order = malloc(sizeof *f->order * (size_t)plan->data->count + 1);
    if (!f->order) return report_text("%s: no memory for the order of its samples", plan->data->spec);
    return amp_dataset_create(model, &options, &f->filled, &err) ? report(&err) : 0;
}

void feed_close(Feed *f) {
    amp_dataset_release(f->filled);
    free(f->order);
    *f = (Feed){0};
}

void feed_place(const Feed *f, int64_t index, int64_t sample, char place[64]) {
    const FeedPlan *p = &f->plan;
    int64_t from, n = feed_samples(p, index = feed_batch(p, index), &from),
                  *order = malloc(sizeof *order * (size_t)p->data->count + 1);
    place[0] = 0;
    if (order && sample >= 0 && sample < n) {
        data_order(p->data, p->seed, index / p->batches, order);
        (void)data_place(p->data, order[from + sample], place);
    }
    free(order);
}

/* The thread has |order|: it may have begun the next epoch. */
int feed_report(const Feed *f, int64_t index, const amp_error *err) {
    const FeedPlan *p = &f->plan;
    int64_t from, n = feed_samples(p, index = feed_batch(p, index), &from),
                  *order = malloc(sizeof *order * (size_t)p->data->count + 1);
    if (!order) return report(err);
    data_order(p->data, p->seed, index / p->batches, order);
    int failed = data_report(p->data, order + from, n, err);
    free(order);
    return failed;
}
