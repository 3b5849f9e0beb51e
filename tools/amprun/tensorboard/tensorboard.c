/* tensorboard.c: see tensorboard.h. */
#include "tools/amprun/tensorboard/tensorboard.h"

#include <math.h>
#include <stdio.h>

enum { TAG = 512 };

/* summary.proto */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTOGRAM = 5 };
enum {
    HISTOGRAM_MIN = 1,
    HISTOGRAM_MAX = 2,
    HISTOGRAM_NUM = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SUM_SQUARES = 5,
    HISTOGRAM_LIMITS = 6,
    HISTOGRAM_BUCKETS = 7
};

static void put_scalar(void *to, const char *tag, double number) {
    Message *m = to;
    const size_t value = message_begin(m, SUMMARY_VALUE);
    message_text(m, VALUE_TAG, tag);
    message_float(m, VALUE_SIMPLE, (float)number);
    message_end(m, value);
}

void tensorboard_step(EventFile *f, const Run *run, const amp_step_report *report, const double *losses,
                      const double *metrics, double samples_per_s) {
    Message *m = events_begin(f, report->iteration);
    if (!m) return;
    put_scalar(m, "loss", report->loss);
    each_loss(run, "", losses, put_scalar, m);
    each_metric(run, "", metrics, put_scalar, m);
    put_scalar(m, "scale", (double)report->scale);
    put_scalar(m, "skipped", report->skipped);
    put_scalar(m, "samples_per_s", samples_per_s);
    events_end(f);
}

void tensorboard_evaluation(EventFile *f, const Run *run, int64_t iteration, const Evaluation *test) {
    Message *m = events_begin(f, iteration);
    if (!m) return;
    put_scalar(m, "test_loss", test->loss);
    each_loss(run, "test_", test->losses, put_scalar, m);
    each_metric(run, "test_", test->metrics, put_scalar, m);
    events_end(f);
}

/* ---- histograms -------------------------------------------------------------------------------------------------- */

enum { BUCKETS = EXPONENTS + 2 };

typedef struct Histogram {
    double limit[BUCKETS], bucket[BUCKETS]; /* numbers up to a limit, and above the one before */
    size_t count;
    double num, sum, sum_squares;
} Histogram;

static double power_of(unsigned exponent) { return ldexp(1, (int)exponent - 127); }

/* |each|: what the sums take every number of it to be. */
static void add_bucket(Histogram *h, double limit, int64_t count, double each) {
    h->limit[h->count] = limit;
    h->bucket[h->count++] = (double)count;
    h->num += (double)count;
    h->sum += each * (double)count;
    h->sum_squares += each * each * (double)count;
}

/* Zeros, nothing up to the smallest, and a bucket for each exponent from there to the largest. */
static void fill(Histogram *h, const TensorStats *s) {
    unsigned first = 0, end = EXPONENTS - 1;
    while (first < end && !s->exponent[first]) first++;
    while (end > first && !s->exponent[end - 1]) end--;
    if (s->zeros) add_bucket(h, 0, s->zeros, 0);
    if (first && first < end) add_bucket(h, power_of(first), 0, 0);
    for (unsigned e = first; e < end; e++) add_bucket(h, power_of(e + 1), s->exponent[e], 0.75 * power_of(e + 1));
}

static void put_histogram(Message *m, const NamedStats *tensor) {
    char tag[TAG];
    Histogram h = {.count = 0};
    fill(&h, &tensor->stats);
    if (!h.count) return; /* no number is finite */
    snprintf(tag, sizeof tag, "magnitude/%s", tensor->name);
    const size_t value = message_begin(m, SUMMARY_VALUE);
    message_text(m, VALUE_TAG, tag);
    const size_t histogram = message_begin(m, VALUE_HISTOGRAM);
    message_double(m, HISTOGRAM_MIN, h.limit[0]);
    message_double(m, HISTOGRAM_MAX, (double)tensor->stats.largest);
    message_double(m, HISTOGRAM_NUM, h.num);
    message_double(m, HISTOGRAM_SUM, h.sum);
    message_double(m, HISTOGRAM_SUM_SQUARES, h.sum_squares);
    message_doubles(m, HISTOGRAM_LIMITS, h.limit, h.count);
    message_doubles(m, HISTOGRAM_BUCKETS, h.bucket, h.count);
    message_end(m, histogram);
    message_end(m, value);
}

void tensorboard_stats(EventFile *f, const Stats *stats, int64_t iteration) {
    Message *m = events_begin(f, iteration);
    if (!m) return;
    for (int i = 0; i < stats->count; i++)
        if (stats->tensor[i]->stats.count) put_histogram(m, stats->tensor[i]);
    events_end(f);
}
