/* infer.c: amprun infer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/data.h"

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
        for (int64_t i = 0; i < n; i++) index[i] = from + i;
        data_gather(data, index, n, inputs);
        for (int r = 0; r < run->info.result_count; r++) outputs[r] = whole[r] + sample_bytes[r] * (size_t)from;
        if (amp_infer(run->session, (const void *const *)inputs, n, outputs, &err)) failed = report(&err);
    }
    data_batch_free(data, inputs);
    free(index);
    return failed;
}

static int infer_all(const Args *a, const Run *run, const Dataset *data, int64_t batch) {
    amp_error err = {0};
    TensorsOut out = {0};
    char *whole[DATA_MAX_INPUTS];
    size_t sample_bytes[DATA_MAX_INPUTS];
    if (run->info.result_count > DATA_MAX_INPUTS)
        return report_text("models of more than %d results cannot be written", DATA_MAX_INPUTS);
    int failed = 0;
    for (int i = 0; !failed && i < run->info.result_count; i++) {
        amp_tensor_info info;
        if (amp_model_result_at(run->model, i, data->count, &info, &err)) failed = report(&err);
        else if (!(whole[i] = tensors_out_add(&out, info.name, &info, NULL))) failed = 1;
        else sample_bytes[i] = tensor_bytes(&info) / (size_t)data->count;
    }
    failed = failed || infer_batches(run, data, batch, whole, sample_bytes) || tensors_out_write(&out, a->outputs);
    tensors_out_free(&out);
    return failed;
}

int command_infer(const Args *a) {
    Run run = {0};
    Dataset data = {0};
    char spec[4096];
    int64_t batch = a->batch ? a->batch : 128;
    snprintf(spec, sizeof spec, "safetensors:%s", a->inputs);
    int failed = run_open(&run, a, batch, true, false) ||
                 data_open(&data, spec, PART_TEST, run.model, run.info.model_input_count) ||
                 infer_all(a, &run, &data, batch);
    data_close(&data);
    run_close(&run);
    return failed;
}
