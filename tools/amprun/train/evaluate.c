/* evaluate.c: amprun eval and infer, and the evaluation after each epoch of training. */
#include "tools/amprun/train/evaluate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/data/data_column.h"
#include "tools/amprun/weights.h"
#include "tools/outputs.h"

/* ---- eval -------------------------------------------------------------------------------------------------------- */

static int evaluate_batch(const Run *run, const Dataset *data, const int64_t *index, void *const *inputs,
                          amp_sizes sizes) {
    amp_error err = {0};
    if (data_gather(data, index, sizes, inputs)) return 1;
    if (amp_eval(run->session, (const void *const *)inputs, sizes, NULL, NULL, &err))
        return data_report(data, index, sizes.n, &err);
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

/* The samples in order, their batches, and arrays for one. */
typedef struct Whole {
    int64_t *order;
    BatchList batches;
    void *const *inputs;
} Whole;

static int whole_open(Whole *w, const Dataset *data, const BatchLimits *limits) {
    *w =
        (Whole){.order = malloc(sizeof *w->order * (size_t)data->count + 1), .inputs = data_batch_new(data, limits->n)};
    if (!w->order || !w->inputs) return report_text("no memory for a batch of %" PRId64, limits->n);
    data_order(data, 0, DATA_IN_ORDER, w->order);
    return batch_list_cut(&w->batches, data, limits);
}

static void whole_close(Whole *w, const Dataset *data) {
    data_batch_free(data, w->inputs);
    batch_list_free(&w->batches);
    free(w->order);
}

static int evaluate_batches(const Run *run, const Dataset *data, const Whole *w, int (*stop)(void), const Ranks *ranks,
                            Evaluation *out) {
    amp_error err = {0};
    if (amp_eval_begin(run->session, &err)) return report(&err);
    for (int64_t i = ranks ? ranks->rank : 0; i < w->batches.count; i += ranks ? ranks->count : 1) {
        const Batch *batch = &w->batches.at[i];
        if (stop && stop()) return EVALUATION_STOPPED;
        if (evaluate_batch(run, data, w->order + batch->from, w->inputs, batch->sizes)) return 1;
    }
    out->samples = data->count;
    if (ranks && add_ranks(run, ranks)) return 1;
    return finish(run, out);
}

int evaluate(const Run *run, const Dataset *data, const BatchLimits *limits, int (*stop)(void), const Ranks *ranks,
             Evaluation *out) {
    Whole w;
    memset(out, 0, sizeof *out);
    if (run->info.metric_count > EVALUATION_METRICS || run->info.loss_count > EVALUATION_METRICS)
        return report_text("%s: more than %d metrics or losses", run->info.name, EVALUATION_METRICS);
    int failed = whole_open(&w, data, limits);
    if (!failed) failed = evaluate_batches(run, data, &w, stop, ranks, out);
    whole_close(&w, data);
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
    const BatchLimits limits = {.n = a->batch ? a->batch : DEFAULT_BATCH, .tokens = a->tokens};
    int failed = run_open(&run, a, limits.n, "infer");
    if (!failed && !run.info.can_train)
        failed = report_text("%s: has no train block, so no loss and no metrics to evaluate", a->model);
    failed = failed || open_data(a, a->data, &run, run.info.input_count, ranks, &data) ||
             evaluate(&run, &data, &limits, NULL, ranks, &e);
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

static int check_batches(const Run *run, const Dataset *data, const Whole *w, int64_t batch) {
    for (int i = 0; i < run->info.result_count && w->batches.count > 1; i++) {
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

/* A result of all samples; of samples with lengths also of one batch, whose rows go to their places. */
typedef struct Result {
    char *all, *batch;
    size_t sample_bytes; /* of |all| */
    Column column;       /* the shape of |batch| */
} Result;

static int result_open(Result *r, const Run *run, int index, const Dataset *data, const Whole *w, TensorsOut *out) {
    amp_error err = {0};
    amp_tensor_info all, one, unit;
    const Batch *longest = &w->batches.at[0];
    const amp_sizes sizes = {data->count, longest->sizes.t}, least = {1, run->info.length_unit};
    if (amp_model_result_at(run->model, index, sizes, &all, &err)) return report(&err);
    if (!(r->all = tensors_out_add(out, all.name, &all, NULL))) return 1;
    r->sample_bytes = tensor_bytes(&all) / (size_t)data->count;
    if (!w->batches.by_length) return 0;
    if (amp_model_result_at(run->model, index, (amp_sizes){1, sizes.t}, &one, &err) ||
        amp_model_result_at(run->model, index, least, &unit, &err))
        return report(&err);
    r->column = (Column){.dtype = column_is_float(one.dtype) ? AMP_DT_F32 : one.dtype, .rank = one.rank};
    for (int i = 1; i < one.rank; i++) {
        r->column.dims[i] = one.dims[i];
        r->column.of_unit[i] = one.dims[i] != unit.dims[i] ? unit.dims[i] : 0;
    }
    int64_t most = 0;
    for (int64_t i = 0; i < w->batches.count; i++)
        most = w->batches.at[i].sizes.n > most ? w->batches.at[i].sizes.n : most;
    r->batch = malloc(r->sample_bytes * (size_t)most + 1);
    return r->batch ? 0 : report_text("no memory for a batch of %" PRId64, most);
}

/* The rows of a batch; of a result whose shape has T what follows a sample's end is 0. */
static void result_take(Result *r, const Dataset *data, const int64_t *index, amp_sizes sizes, int64_t longest) {
    Column *c = &r->column;
    c->data = r->batch;
    for (int i = 1; r->batch && i < c->rank; i++)
        if (c->of_unit[i]) c->dims[i] = c->of_unit[i] * (sizes.t / data->unit);
    for (int64_t i = 0; r->batch && i < sizes.n; i++)
        (void)lengths_copy(c, i, data->lengths[index[i]], longest, data->unit,
                           r->all + r->sample_bytes * (size_t)index[i]);
}

static int infer_batch(const Run *run, const Dataset *data, const Whole *w, const Batch *batch, Result *results) {
    amp_error err = {0};
    const int64_t *index = w->order + batch->from;
    void *outputs[DATA_MAX_INPUTS];
    if (data_gather(data, index, batch->sizes, w->inputs)) return 1;
    for (int i = 0; i < run->info.result_count; i++)
        outputs[i] =
            results[i].batch ? results[i].batch : results[i].all + results[i].sample_bytes * (size_t)batch->from;
    if (amp_infer(run->session, (const void *const *)w->inputs, batch->sizes, outputs, &err))
        return data_report(data, index, batch->sizes.n, &err);
    for (int i = 0; i < run->info.result_count; i++)
        result_take(&results[i], data, index, batch->sizes, w->batches.at[0].sizes.t);
    return 0;
}

static int infer_all(const Args *a, const Run *run, const Dataset *data, const BatchLimits *limits) {
    TensorsOut out = {0};
    Result results[DATA_MAX_INPUTS] = {0};
    Whole w;
    if (run->info.result_count > DATA_MAX_INPUTS)
        return report_text("models of more than %d results cannot be written", DATA_MAX_INPUTS);
    int failed = whole_open(&w, data, limits) || check_batches(run, data, &w, limits->n);
    for (int i = 0; !failed && i < run->info.result_count; i++)
        failed = result_open(&results[i], run, i, data, &w, &out);
    for (int64_t i = 0; !failed && i < w.batches.count; i++)
        failed = infer_batch(run, data, &w, &w.batches.at[i], results);
    failed = failed || tensors_out_write(&out, a->outputs);
    for (int i = 0; i < DATA_MAX_INPUTS; i++) free(results[i].batch);
    tensors_out_free(&out);
    whole_close(&w, data);
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
    const BatchLimits limits = {.n = a->batch ? a->batch : DEFAULT_BATCH, .tokens = a->tokens};
    snprintf(spec, sizeof spec, "%s%s",
             data_is_table(a->inputs) ? "" : "safetensors:", strcmp(a->inputs, "-") ? a->inputs : "/dev/stdin");
    int wrong = check_files(a);
    if (wrong) return wrong;
    int failed = run_open(&run, a, limits.n, "infer") ||
                 open_data(a, spec, &run, run.info.model_input_count, NULL, &data) ||
                 infer_all(a, &run, &data, &limits);
    data_close(&data);
    run_close(&run);
    return failed;
}
