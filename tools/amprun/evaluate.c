/* evaluate.c: amprun eval, and the evaluation after each epoch of training. */
#include "tools/amprun/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/amprun.h"

static void add(double *sums, const double *values, int count, double weight) {
    for (int i = 0; i < count; i++) sums[i] += values[i] * weight;
}

static int evaluate_batch(const Run *run, void *const *inputs, int64_t n, Evaluation *out) {
    amp_error err = {0};
    double loss, metrics[EVALUATION_METRICS], losses[EVALUATION_METRICS];
    if (amp_eval(run->session, (const void *const *)inputs, n, &loss, metrics, &err)) return report(&err);
    if (amp_session_losses(run->session, losses, &err)) return report(&err);
    add(&out->loss, &loss, 1, (double)n);
    add(out->losses, losses, run->info.loss_count, (double)n);
    add(out->metrics, metrics, run->info.metric_count, (double)n);
    out->samples += n;
    return 0;
}

/* Sums become averages, and metrics of averages are computed from those. */
static int finish(const Run *run, Evaluation *out) {
    amp_error err = {0};
    double samples = (double)out->samples;
    out->loss /= samples;
    for (int i = 0; i < run->info.loss_count; i++) out->losses[i] /= samples;
    for (int i = 0; i < run->info.metric_count; i++) out->metrics[i] /= samples;
    if (amp_session_finish_metrics(run->session, out->loss, out->losses, out->metrics, &err)) return report(&err);
    return 0;
}

static int evaluate_batches(const Run *run, const Dataset *data, int64_t batch, int64_t *index, void *const *inputs,
                            Evaluation *out) {
    if (run->info.metric_count > EVALUATION_METRICS || run->info.loss_count > EVALUATION_METRICS)
        return report_text("%s: more than %d metrics or losses", run->info.name, EVALUATION_METRICS);
    for (int64_t from = 0; from < data->count; from += batch) {
        int64_t n = data->count - from < batch ? data->count - from : batch;
        for (int64_t i = 0; i < n; i++) index[i] = from + i;
        data_gather(data, index, n, inputs);
        if (evaluate_batch(run, inputs, n, out)) return 1;
    }
    return finish(run, out);
}

int evaluate(const Run *run, const Dataset *data, int64_t batch, Evaluation *out) {
    memset(out, 0, sizeof *out);
    int64_t *index = malloc(sizeof *index * (size_t)batch);
    void *const *inputs = data_batch_new(data, batch);
    int failed = index && inputs ? evaluate_batches(run, data, batch, index, inputs, out)
                                 : report_text("no memory for a batch of %" PRId64, batch);
    data_batch_free(data, inputs);
    free(index);
    return failed;
}

static void print(const Run *run, const Evaluation *e) {
    printf("{\"samples\": %" PRId64 ", ", e->samples);
    json_number(stdout, "loss", e->loss);
    for (int i = 0; i < run->info.loss_count; i++) {
        char key[256];
        snprintf(key, sizeof key, "loss.%s", amp_model_loss_at(run->model, i));
        printf(", ");
        json_number(stdout, key, e->losses[i]);
    }
    for (int i = 0; i < run->info.metric_count; i++) {
        printf(", ");
        json_number(stdout, amp_model_metric_at(run->model, i), e->metrics[i]);
    }
    printf("}\n");
}

int command_eval(const Args *a) {
    Run run = {0};
    Dataset data = {0};
    Evaluation e;
    int64_t batch = a->batch ? a->batch : 128;
    int failed = 0;
    if (a->precision && strcmp(a->precision, "fp32"))
        return report_text("--precision %s: evaluation runs in the model's own precision, or in fp32", a->precision) +
               1;
    failed = run_open(&run, a, batch, true, false);
    if (!failed && !run.info.can_train)
        failed = report_text("%s: has no train block, so no loss and no metrics to evaluate", a->model);
    failed = failed || data_open(&data, a->data, PART_TEST, run.model, run.info.input_count) ||
             evaluate(&run, &data, batch, &e);
    if (!failed) print(&run, &e);
    data_close(&data);
    run_close(&run);
    return failed;
}
