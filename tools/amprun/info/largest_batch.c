/* largest_batch.c: see info.h. */
#include "tools/amprun/info/info.h"

#include <string.h>

#include "base/error.h"

/* Batches, or tokens, are counted in units: multiples of what the model takes multiples of. */
typedef struct Search {
    amp_model *model;
    amp_tables tables;
    amp_session_options options;
    int64_t *size;      /* what is looked for, of |options| */
    int64_t unit, most; /* of it; units at most */
    uint64_t limit;
    int64_t low, high; /* units: of a batch that fits, and of a larger one that does not */
    amp_memory_info at_low;
    uint64_t high_total; /* UINT64_MAX: it cannot be planned */
} Search;

/* No plan takes less than is alive at once.  What that is is not known of calls of many sizes, and of device memory. */
static bool has_bound(const Search *s) {
    return !s->options.tokens && !(s->options.device && !strcmp(s->options.device, "cuda"));
}

uint64_t largest_batch_bytes(const amp_memory_info *m) { return m->device ? m->device : m->total; }

/* ---- one batch --------------------------------------------------------------------------------------------------- */

/* A total of UINT64_MAX: more than memory can address, or than the device has. */
static amp_status plan(Search *s, int64_t units, amp_memory_info *out, amp_error *err) {
    *s->size = units * s->unit;
    const amp_status status = amp_session_plan(s->model, NULL, &s->options, out, err);
    const bool too_large = units > 1 && (status == AMP_INVALID_ARGUMENT || status == AMP_OUT_OF_MEMORY);
    if (too_large) *out = (amp_memory_info){.total = UINT64_MAX};
    return too_large ? AMP_OK : status;
}

/* Takes it as the new end of the interval that it is. */
static amp_status try_batch(Search *s, int64_t units, bool *fits, amp_error *err) {
    amp_memory_info memory;
    AMP_TRY(plan(s, units, &memory, err));
    *fits = largest_batch_bytes(&memory) <= s->limit;
    if (*fits) {
        s->low = units;
        s->at_low = memory;
    } else {
        s->high = units;
        s->high_total = largest_batch_bytes(&memory);
    }
    return AMP_OK;
}

/* ---- between a batch that fits and one that does not ------------------------------------------------------------- */

/* Memory is nearly linear in the batch. */
static int64_t interpolate(const Search *s) {
    const uint64_t low_total = largest_batch_bytes(&s->at_low);
    const double bytes = (double)(s->high_total - low_total), room = (double)(s->limit - low_total);
    if (s->high_total == UINT64_MAX || bytes <= 0) return s->low;
    return s->low + (int64_t)((double)(s->high - s->low) * (room / bytes));
}

/* Until they are neighbours.  Steps from the end that was moved last double, so that none is approached by ones. */
static amp_status narrow(Search *s, amp_error *err) {
    bool fits = true, before = true;
    for (int64_t step = 1; s->high - s->low > 1; before = fits) {
        int64_t guess = interpolate(s);
        if (fits && guess < s->low + step) guess = s->low + step;
        if (!fits && guess > s->high - step) guess = s->high - step;
        if (guess <= s->low || guess >= s->high) guess = s->low + (s->high - s->low) / 2;
        AMP_TRY(try_batch(s, guess, &fits, err));
        step = fits == before ? 2 * step : 1;
    }
    return AMP_OK;
}

/* ---- larger ones that might fit all the same --------------------------------------------------------------------- */

/* No plan of the step's temporaries is below what is alive at once, which grows with the batch. */
static amp_status can_fit(const Search *s, int64_t units, bool *out, amp_error *err) {
    const amp_tables *t = &s->tables;
    const uint64_t rest = s->at_low.total - s->at_low.activations - s->at_low.scratch;
    LiveBytes live;
    *out = false;
    amp_status status = live_bytes_make(&live, t->train_step && !s->options.program ? t->train_step : t->infer,
                                        (amp_sizes){units * t->batch_multiple, s->options.capacity.t}, err);
    if (!status) *out = rest + live.peak_bytes <= s->limit;
    live_bytes_free(&live);
    return status == AMP_INVALID_ARGUMENT ? AMP_OK : status;
}

static amp_status find_bound(const Search *s, int64_t *bound, amp_error *err) {
    int64_t above = s->most + 1;
    for (*bound = s->low; above - *bound > 1;) {
        const int64_t middle = *bound + (above - *bound) / 2;
        bool can;
        AMP_TRY(can_fit(s, middle, &can, err));
        if (can) *bound = middle;
        else above = middle;
    }
    return AMP_OK;
}

/* From the largest down. */
static amp_status look_above(Search *s, int64_t bound, amp_error *err) {
    const int64_t last = s->high, most = last + LARGEST_BATCH_LOOK;
    bool fits = false;
    for (int64_t i = bound < most ? bound : most; i > last && !fits; i--) AMP_TRY(try_batch(s, i, &fits, err));
    return AMP_OK;
}

/* To the last one before the first that does not fit. */
static amp_status step_up(Search *s, amp_error *err) {
    for (bool fits = true; fits && s->low < s->most;) AMP_TRY(try_batch(s, s->low + 1, &fits, err));
    return AMP_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static amp_status search(Search *s, int64_t *bound, amp_error *err) {
    bool fits;
    AMP_TRY(try_batch(s, s->most, &fits, err));
    *bound = fits ? s->low : 0;
    if (fits) return AMP_OK;
    AMP_TRY(narrow(s, err));
    if (has_bound(s)) {
        AMP_TRY(find_bound(s, bound, err));
        AMP_TRY(look_above(s, *bound, err));
    }
    return step_up(s, err);
}

static void choose_size(Search *s) {
    amp_model_info info;
    amp_model_get_info(s->model, &info);
    const bool tokens = s->options.tokens < 0 && info.length_unit;
    s->size = tokens ? &s->options.tokens : &s->options.capacity.n;
    s->unit = tokens ? info.length_unit : s->tables.batch_multiple;
    s->most = (tokens ? s->options.capacity.n * s->options.capacity.t : s->tables.batch_most) / s->unit;
    if (s->options.tokens > 0 && s->most > s->options.tokens / info.length_unit)
        s->most = s->options.tokens / info.length_unit;
}

amp_status largest_batch(amp_model *model, const amp_session_options *options, uint64_t limit, LargestBatch *out,
                         amp_error *err) {
    Search s = {.model = model, .options = *options, .limit = limit, .low = 1};
    int64_t bound = 0;
    *out = (LargestBatch){0};
    AMP_TRY(amp_model_get_tables(model, NULL, &s.tables, err));
    if (!s.options.capacity.t) s.options.capacity.t = s.tables.length_most;
    choose_size(&s);
    const int64_t unit = s.unit;
    AMP_TRY(plan(&s, 1, &s.at_low, err));
    out->memory = s.at_low;
    if (largest_batch_bytes(&s.at_low) > limit) return AMP_OK;
    AMP_TRY(search(&s, &bound, err));
    *out = (LargestBatch){.batch = s.low * unit, .memory = s.at_low, .bound = bound * unit};
    if (s.low == s.most) return AMP_OK;
    out->next = (s.low + 1) * unit;
    out->next_total = s.high_total == UINT64_MAX ? 0 : s.high_total;
    return AMP_OK;
}
