/* evaluate.c: amprun eval, and the evaluation after each epoch of training. */
#include "tools/amprun/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/json_out.h"

static int evaluate_batches(const Run *run, const Dataset *data, int64_t batch, int64_t *index, void *const *inputs,
                            Evaluation *out) {
    amp_error err = {0};
    for (int64_t from = 0; from < data->count; from += batch) {
        int64_t n = data->count - from < batch ? data->count - from : batch;
        double loss, metrics[EVALUATION_METRICS];
        for (int64_t i = 0; i < n; i++) index[i] = from + i;
        data_gather(data, index, n, inputs);
        if (amp_eval(run->session, (const void *const *)inputs, n, &loss, metrics, &err)) return report(&err);
        out->loss += loss * (double)n;
        for (int m = 0; m < run->info.metric_count; m++) out->metrics[m] += metrics[m] * (double)n;
        out->samples += n;
    }
    out->loss /= (double)out->samples;
    for (int m = 0; m < run->info.metric_count; m++) out->metrics[m] /= (double)out->samples;
    return 0;
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
    if (a->precision)
        return report_text(
            "%s: FP32 forms of eval and infer were not compiled; ampc --eval-precision fp32 is not built yet",
            a->model);
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
