/* evaluate.c: amprun eval and infer, and the evaluation after each epoch of training. */
#include "tools/amprun/train/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/data/data.h"
#include "tools/amprun/weights.h"
#include "tools/outputs.h"

/* ---- eval -------------------------------------------------------------------------------------------------------- */

static int evaluate_batch(const Run *run, const Dataset *data, const int64_t *index, void *const *inputs, int64_t n) {
    amp_error err = {0};
    if (data_gather(data, index, n, inputs)) return 1;
    if (amp_eval(run->session, (const void *const *)inputs, run_sizes(run, n), NULL, NULL, &err))
        return data_report(data, index, n, &err);
    return 0;
}

static int finish(const Run *run, Evaluation *out) {
    amp_error err = {0};
    if (amp_eval_end(run->session, &out->loss, out->metrics, &err) ||
        amp_session_get_losses(run->session, out->losses, &err))
        return report(&err);
    return 0;
}

/* What all ranks added up; a rank without a batch has zeros. */
static int add_ranks(const Run *run, const Ranks *ranks) {
    amp_error err = {0};
    const int32_t count = amp_eval_sums_count(run->session);
    double *sums = calloc((size_t)count, sizeof *sums);
    if (!sums) return report_text("no memory for the sums of an evaluation");
    int failed = amp_eval_get_sums(run->session, sums, &err) ? report(&err) : 0;
    failed = failed || ranks_sum(ranks, sums, (size_t)count);
    if (!failed && (amp_eval_begin(run->session, &err) || amp_eval_add(run->session, sums, &err)))
        failed = report(&err);
    free(sums);
    return failed;
}

static int evaluate_batches(const Run *run, const Dataset *data, int64_t batch, int64_t *index, void *const *inputs,
                            int (*stop)(void), const Ranks *ranks, Evaluation *out) {
    if (run->info.metric_count > EVALUATION_METRICS || run->info.loss_count > EVALUATION_METRICS)
        return report_text("%s: more than %d metrics or losses", run->info.name, EVALUATION_METRICS);
    amp_error err = {0};
    if (amp_eval_begin(run->session, &err)) return report(&err);
    const int64_t first = ranks ? ranks->rank * batch : 0, next = ranks ? ranks->count * batch : batch;
    for (int64_t from = first; from < data->count; from += next) {
        int64_t n = data->count - from < batch ? data->count - from : batch;
        for (int64_t i = 0; i < n; i++) index[i] = data_sample(data, from + i);
        if (stop && stop()) return EVALUATION_STOPPED;
        if (evaluate_batch(run, data, index, inputs, n)) return 1;
    }
    out->samples = data->count;
    if (ranks && add_ranks(run, ranks)) return 1;
    return finish(run, out);
}

int evaluate(const Run *run, const Dataset *data, int64_t batch, int (*stop)(void), const Ranks *ranks,
             Evaluation *out) {
    memset(out, 0, sizeof *out);
    int64_t *index = malloc(sizeof *index * (size_t)batch);
    void *const *inputs = data_batch_new(data, batch);
    int failed = index && inputs ? evaluate_batches(run, data, batch, index, inputs, stop, ranks, out)
                                 : report_text("no memory for a batch of %" PRId64, batch);
    data_batch_free(data, inputs);
    free(index);
    return failed;
}

static void print_evaluation(const Run *run, const Evaluation *e) {
    printf("{\"samples\": %" PRId64 ", ", e->samples);
    json_number(stdout, "loss", e->loss);
    each_loss(run, "", e->losses, json_more, stdout);
    each_metric(run, "", e->metrics, json_more, stdout);
    printf("}\n");
}

/* The first |inputs| inputs.  |ranks|: those that evaluate what was held out; NULL: infer, of all.  Columns of a table
 * mean what they did in training. */
static int open_data(const Args *a, const char *spec, const Run *run, int inputs, const Ranks *ranks, Dataset *data) {
    char name[AMP_FILE_PATH], *schema;
    if (data_find_schema(spec, a->weights, name, &schema)) return 1;
    DataOptions options = {.all = !ranks, .tells = !ranks || !ranks->rank, .schema = schema, .schema_name = name};
    int failed = data_open(data, spec, PART_TEST, run->model, run_sizes(run, 1), inputs, &options);
    free(schema);
    return failed;
}

static int evaluate_on(const Ranks *ranks, const Args *a) {
    Run run = {0};
    Dataset data = {0};
    Evaluation e;
    int64_t batch = a->batch ? a->batch : 128;
    int failed = run_open(&run, a, batch, "infer");
    if (!failed && !run.info.can_train)
        failed = report_text("%s: has no train block, so no loss and no metrics to evaluate", a->model);
    failed = failed || open_data(a, a->data, &run, run.info.input_count, ranks, &data) ||
             evaluate(&run, &data, batch, NULL, ranks, &e);
    if (!failed && !ranks->rank) print_evaluation(&run, &e);
    if (failed) ranks_end(ranks, failed);
    data_close(&data);
    run_close(&run);
    return failed;
}

int command_eval(const Args *a) {
    Ranks ranks;
    if (a->precision && strcmp(a->precision, "fp32")) {
        report_text("--precision %s: evaluation runs in the model's own precision, or in fp32", a->precision);
        return ranks_refuse(a, 2);
    }
    int failed = ranks_open(&ranks, a);
    if (!failed) {
        const Args mine = ranks_args(&ranks, a);
        failed = evaluate_on(&ranks, &mine);
    }
    ranks_close(&ranks);
    return failed;
}

/* ---- infer ------------------------------------------------------------------------------------------------------- */

/* Batch by batch into the rows of the whole results. */
static int infer_batches(const Run *run, const Dataset *data, int64_t batch, char *const *whole,
                         const size_t *sample_bytes) {
    amp_error err = {0};
    int64_t *index = malloc(sizeof *index * (size_t)batch);
    void *const *inputs = data_batch_new(data, batch);
    void *outputs[DATA_MAX_INPUTS];
    int failed = index && inputs ? 0 : report_text("no memory for a batch of %" PRId64, batch);
    for (int64_t from = 0; !failed && from < data->count; from += batch) {
        int64_t n = data->count - from < batch ? data->count - from : batch;
        for (int64_t i = 0; i < n; i++) index[i] = data_sample(data, from + i);
        failed = data_gather(data, index, n, inputs);
        for (int r = 0; r < run->info.result_count; r++) outputs[r] = whole[r] + sample_bytes[r] * (size_t)from;
        if (!failed && amp_infer(run->session, (const void *const *)inputs, run_sizes(run, n), outputs, &err))
            failed = data_report(data, index, n, &err);
    }
    data_batch_free(data, inputs);
    free(index);
    return failed;
}

/* Whether results of batches, one after the other, are the result of all: one row a sample, and rows of one size. */
static bool is_by_sample(const Run *run, int result, int64_t n) {
    amp_error err = {0};
    amp_tensor_info one, two;
    if (amp_model_result_at(run->model, result, run_sizes(run, n), &one, &err) ||
        amp_model_result_at(run->model, result, run_sizes(run, 2 * n), &two, &err))
        return false;
    bool same = one.rank > 0 && one.dims[0] == n && two.dims[0] == 2 * n;
    for (int i = 1; i < one.rank; i++) same = same && one.dims[i] == two.dims[i];
    return same;
}

static int check_batches(const Run *run, const Dataset *data, int64_t batch) {
    for (int i = 0; i < run->info.result_count && data->count > batch; i++) {
        amp_error err = {0};
        amp_tensor_info info;
        if (is_by_sample(run, i, batch)) continue;
        if (amp_model_result_at(run->model, i, run_sizes(run, batch), &info, &err)) return report(&err);
        return report_text("%s: result %s has not one row for each sample, so batches of %" PRId64
                           " cannot be put together; compute all at once: --batch %" PRId64,
                           run->info.name, info.name, batch, data->count);
    }
    return 0;
}

static int infer_all(const Args *a, const Run *run, const Dataset *data, int64_t batch) {
    amp_error err = {0};
    TensorsOut out = {0};
    char *whole[DATA_MAX_INPUTS];
    size_t sample_bytes[DATA_MAX_INPUTS];
    if (run->info.result_count > DATA_MAX_INPUTS)
        return report_text("models of more than %d results cannot be written", DATA_MAX_INPUTS);
    int failed = check_batches(run, data, batch);
    for (int i = 0; !failed && i < run->info.result_count; i++) {
        amp_tensor_info info;
        if (amp_model_result_at(run->model, i, run_sizes(run, data->count), &info, &err)) failed = report(&err);
        else if (!(whole[i] = tensors_out_add(&out, info.name, &info, NULL))) failed = 1;
        else sample_bytes[i] = tensor_bytes(&info) / (size_t)data->count;
    }
    failed = failed || infer_batches(run, data, batch, whole, sample_bytes) || tensors_out_write(&out, a->outputs);
    tensors_out_free(&out);
    return failed;
}

static int check_files(const Args *a) {
    Outputs files = {.tool = "amprun", .force = a->force};
    WeightInputs weights;
    char table[3][AMP_FILE_PATH];
    outputs_input(&files, "the model", a->model);
    weights_inputs(&weights, &files, a);
    if (!data_is_table(a->inputs)) outputs_input(&files, "--inputs", a->inputs);
    for (int i = 0; data_is_table(a->inputs) && data_file(a->inputs, i, table[i], sizeof table[i]); i++)
        outputs_input(&files, "--inputs", table[i]);
    outputs_output(&files, "--outputs", a->outputs, OUTPUT_TENSORS);
    return weights_outputs_check(&weights, &files);
}

int command_infer(const Args *a) {
    Run run = {0};
    Dataset data = {0};
    char spec[AMP_FILE_PATH + 16];
    int64_t batch = a->batch ? a->batch : 128;
    snprintf(spec, sizeof spec, "%s%s",
             data_is_table(a->inputs) ? "" : "safetensors:", strcmp(a->inputs, "-") ? a->inputs : "/dev/stdin");
    int wrong = check_files(a);
    if (wrong) return wrong;
    int failed = run_open(&run, a, batch, "infer") ||
                 open_data(a, spec, &run, run.info.model_input_count, NULL, &data) || infer_all(a, &run, &data, batch);
    data_close(&data);
    run_close(&run);
    return failed;
}
