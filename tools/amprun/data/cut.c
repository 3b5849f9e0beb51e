/* cut.c: see data.h.
 *
 * Samples with lengths are cut from the longest down, so that one batch alone has room left, the one of the shortest.
 * How many samples there are of each length does not change, so neither do the sizes of the batches. */
#include "tools/amprun/data/data_column.h"

#include <inttypes.h>
#include <stdlib.h>

/* Samples that a batch of length |t| has room for. */
static int64_t room(const BatchLimits *limits, int64_t t) {
    const int64_t by_tokens = limits->tokens && t ? limits->tokens / t : limits->n;
    return by_tokens < limits->n ? by_tokens : limits->n;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Of too few both have half of all, in units that divide both. */
static void share_last(BatchList *b, int64_t least) {
    Batch *last = &b->at[b->count - 1], *before = last - 1;
    if (b->count < 2 || last->sizes.n >= least) return;
    const int64_t unit = common_divisor(before->sizes.n, last->sizes.n),
                  both = (before->sizes.n + last->sizes.n) / unit;
    const int64_t moved = before->sizes.n - (both + 1) / 2 * unit;
    before->sizes.n -= moved;
    last->sizes.n += moved;
    last->from -= moved;
}

static int cut(BatchList *b, const Dataset *d, const BatchLimits *limits, const int64_t *order) {
    int64_t rooms = 0;
    for (int64_t from = 0; from < d->count; from += b->at[b->count++].sizes.n) {
        Batch *at = with_room(b->at, b->count, &rooms, sizeof *b->at);
        const int64_t t = b->by_length ? data_length(d, order[from]) : d->length, n = room(limits, t);
        if (!at) return report_text("%s: no memory for its batches", d->spec);
        b->at = at;
        if (n < 1)
            return report_text("--tokens %" PRId64 ": a sample of %s has %" PRId64 "; give as many", limits->tokens,
                               d->spec, t);
        b->at[b->count] = (Batch){from, {n < d->count - from ? n : d->count - from, t}};
    }
    share_last(b, limits->least);
    /* The longest sample that moved is the last batch's first. */
    if (b->by_length && b->count) b->at[b->count - 1].sizes.t = data_length(d, order[b->at[b->count - 1].from]);
    return 0;
}

int batch_list_cut(BatchList *b, const Dataset *d, const BatchLimits *limits) {
    int64_t *order = d->lengths && d->length ? malloc(sizeof *order * (size_t)d->count + 1) : NULL;
    *b = (BatchList){.by_length = d->lengths && d->length};
    if (b->by_length && !order) return report_text("%s: no memory for the order of its samples", d->spec);
    if (order) data_order(d, 0, DATA_IN_ORDER, order);
    const int failed = cut(b, d, limits, order);
    free(order);
    return failed;
}

void batch_list_free(BatchList *b) {
    free(b->at);
    *b = (BatchList){0};
}

void batch_list_order(const BatchList *b, uint64_t seed, int64_t epoch, int64_t *order) {
    if (b->by_length) shuffle(order, b->count, seed, ~epoch); /* of no epoch's samples */
    else
        for (int64_t i = 0; i < b->count; i++) order[i] = i;
}
