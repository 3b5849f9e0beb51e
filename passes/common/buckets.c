/* buckets.c: see buckets.h. */
#include "passes/common/buckets.h"

/* Below this number of bytes the fixed cost of a message counts.  The last bucket is complete when the backward
 * pass ends, so that nothing hides it: no bucket has more than a sixteenth of the whole, unless that is less than this.
 * For the same reason what fills less than an eighth of a bucket is no message of its own: it goes with a gradient that
 * is larger. */
enum { LEAST_BUCKET = 1 << 20, BUCKETS = 16, LITTLE = 8 };

int64_t state_bytes(const State *s) {
    Dim count = dim_const(1);
    shape_count(&s->shape, &count);
    return count.mul * (int64_t)amp_dtype_size(s->dtype);
}

/* "20.5 KB" */
static const char *bytes_text(Arena *a, int64_t bytes) {
    if (bytes >= 1000000) return arena_printf(a, "%.1f MB", (double)bytes / 1e6);
    return bytes >= 1000 ? arena_printf(a, "%.1f KB", (double)bytes / 1e3)
                         : arena_printf(a, "%lld bytes", (long long)bytes);
}

const char *bucket_text(Arena *a, const StateList *states, int of, const char *what) {
    int64_t bytes = 0;
    for (int i = 0; i < states->len; i++) bytes += state_bytes(states->data[i]);
    return arena_printf(a, "%d of %d %s, %s", states->len, of, what, bytes_text(a, bytes));
}

/* Insertion keeps the order of what is complete at one place, which qsort does not promise. */
void buckets_sort(ReadyState *list, int count) {
    for (int i = 1; i < count; i++) {
        const ReadyState one = list[i];
        int to = i;
        for (; to > 0 && list[to - 1].at > one.at; to--) list[to] = list[to - 1];
        list[to] = one;
    }
}

int64_t buckets_size(const ReadyState *list, int count, int64_t largest) {
    int64_t whole = 0;
    for (int i = 0; i < count; i++) whole += state_bytes(list[i].sum);
    const int64_t part = whole / BUCKETS;
    return part < LEAST_BUCKET ? LEAST_BUCKET : part > largest ? largest : part;
}

int buckets_take(const ReadyState *list, int count, int64_t room, int64_t *bytes) {
    int taken = 0;
    *bytes = 0;
    while (taken < count && (*bytes < room / LITTLE || *bytes + state_bytes(list[taken].sum) <= room))
        *bytes += state_bytes(list[taken++].sum);
    return taken;
}
