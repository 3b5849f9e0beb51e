/* tensorboard.c: see tensorboard.h. */
#include "tools/amprun/tensorboard/tensorboard.h"

#include <stdio.h>

enum { TAG = 512 };

/* summary.proto */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

static void put_scalar(Message *m, const char *tag, double number) {
    const size_t value = message_begin(m, SUMMARY_VALUE);
    message_text(m, VALUE_TAG, tag);
    message_float(m, VALUE_SIMPLE, (float)number);
    message_end(m, value);
}

static void put_loss(Message *m, const Run *run, const char *prefix, double loss, const double *losses) {
    char tag[TAG];
    snprintf(tag, sizeof tag, "%sloss", prefix);
    put_scalar(m, tag, loss);
    for (int32_t i = 0; i < run->info.loss_count; i++) {
        snprintf(tag, sizeof tag, "%sloss.%s", prefix, amp_model_loss_at(run->model, i));
        put_scalar(m, tag, losses[i]);
    }
}

static void put_metrics(Message *m, const Run *run, const char *prefix, const double *metrics) {
    char tag[TAG];
    for (int32_t i = 0; i < run->info.metric_count; i++) {
        snprintf(tag, sizeof tag, "%s%s", prefix, amp_model_metric_at(run->model, i));
        put_scalar(m, tag, metrics[i]);
    }
}

void tensorboard_step(EventFile *f, const Run *run, const amp_step_report *report, const double *losses,
                      const double *metrics, double samples_per_s) {
    Message *m = events_begin(f, report->iteration);
    if (!m) return;
    put_loss(m, run, "", report->loss, losses);
    put_metrics(m, run, "", metrics);
    put_scalar(m, "scale", (double)report->scale);
    put_scalar(m, "skipped", report->skipped);
    put_scalar(m, "samples_per_s", samples_per_s);
    events_end(f);
}

void tensorboard_evaluation(EventFile *f, const Run *run, int64_t iteration, const Evaluation *test) {
    Message *m = events_begin(f, iteration);
    if (!m) return;
    put_loss(m, run, "test_", test->loss, test->losses);
    put_metrics(m, run, "test_", test->metrics);
    events_end(f);
}
