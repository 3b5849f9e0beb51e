/* step.c: amprun step: K training steps on exactly one batch, one JSON line each; for tests and debugging. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/train.h"
#include "base/text.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/data/data.h"
#include "tools/amprun/profile/profile.h"
#include "tools/amprun/train/training.h"
#include "tools/amprun/stats/stats.h"
#include "tools/amprun/trace/tracer.h"
#include "tools/amprun/weights.h"
#include "tools/outputs.h"

static bool is_gradient(const char *name) { return !strncmp(name, "grad.", 5); }

/* One of the session's values as floats; the caller frees. NULL (reported) on failure. */
static void *read_value(const Run *run, const char *name, amp_tensor_info *info, TensorsOut *out, const char *as,
                        const char *note) {
    amp_error err = {0};
    if (amp_session_get_value(run->session, name, info, NULL, 0, &err)) {
        report(&err);
        return NULL;
    }
    void *data = tensors_out_add(out, as, info, note);
    if (data && amp_session_get_value(run->session, name, info, data, tensor_bytes(info), &err)) {
        report(&err);
        return NULL;
    }
    return data;
}

/* sqrt of the sum of squares of every unscaled gradient. */
static int gradient_norm(const Run *run, double *norm) {
    double sum = 0;
    for (int32_t i = 0; amp_session_value_name(run->session, i); i++) {
        const char *name = amp_session_value_name(run->session, i);
        if (!is_gradient(name)) continue;
        TensorsOut one = {0};
        amp_tensor_info info;
        const float *g = read_value(run, name, &info, &one, name, NULL);
        for (size_t k = 0; g && k < tensor_bytes(&info) / sizeof *g; k++) sum += (double)g[k] * g[k];
        tensors_out_free(&one);
        if (!g) return 1;
    }
    *norm = sqrt(sum);
    return 0;
}

/* Gradients by parameter name, or values by their own. */
static int write_values(const Run *run, const char *glob, bool gradients, const char *path) {
    TensorsOut out = {0};
    int failed = 0, found = 0;
    for (int32_t i = 0; !failed && amp_session_value_name(run->session, i); i++) {
        const char *name = amp_session_value_name(run->session, i);
        if (gradients ? !is_gradient(name) : !text_glob_match(glob, name)) continue;
        amp_tensor_info info;
        amp_error err = {0};
        if (amp_session_get_value(run->session, name, &info, NULL, 0, &err)) return report(&err);
        failed = !read_value(run, name, &info, &out, gradients ? name + 5 : name,
                             gradients ? NULL : amp_dtype_name(info.dtype));
        found++;
    }
    if (!failed && !found)
        failed = report_text("--values '%s': no value in memory has such a name; '*' writes all", glob);
    failed = failed || tensors_out_write(&out, path);
    tensors_out_free(&out);
    return failed;
}

typedef struct Watchers { /* of steps, as --trace-nonfinite, --stats and --profile ask for them */
    Tracer *tracer;       /* NULL: nothing is traced */
    Stats stats;
    Profile profile;
    int64_t steps; /* so far */
} Watchers;

/* A step that accumulates takes the batch as each of its micro-batches. */
static amp_status whole_step(const Run *run, void *const *batch, amp_sizes sizes, Watchers *w, amp_step_report *r,
                             amp_error *err) {
    const void *const *inputs = (const void *const *)batch;
    amp_status status = AMP_OK;
    for (int64_t micro = 0; micro < run->info.accumulate && (!status || status == AMP_SCALE_AT_FLOOR); micro++) {
        if (w->tracer && tracer_before(w->tracer, inputs, sizes)) w->tracer->is_off = true;
        AMP_TRY(stats_before(&w->stats, w->steps + 1, micro == 0, err));
        AMP_TRY(profile_before(&w->profile, sizes.n, err));
        status = amp_step(run->session, inputs, sizes, r, err);
        if (!status || status == AMP_SCALE_AT_FLOOR) AMP_TRY(profile_after(&w->profile, r, err));
    }
    w->steps++;
    return status;
}

static int print_stats(Watchers *w, const amp_step_report *r) {
    bool is_told;
    if (stats_after(&w->stats, &is_told)) return 1;
    if (!is_told) return 0;
    stats_json(stdout, &w->stats, r);
    printf("\n");
    return 0;
}

/* Lines of JSON are on standard output. */
static int print_profile(Profile *p) {
    char *table = profile_finish(p, true);
    if (table) fputs(table, stderr);
    free(table);
    return p->failed;
}

static int one_step(const Run *run, void *const *inputs, amp_sizes sizes, Watchers *w) {
    amp_error err = {0};
    amp_step_report r;
    Verdict verdict;
    double norm;
    const bool scaled = run->info.scaler != NULL;
    amp_status status = whole_step(run, inputs, sizes, w, &r, &err);
    if (status && status != AMP_SCALE_AT_FLOOR) return report(&err);
    if (gradient_norm(run, &norm)) return 1;
    printf("{\"step\": %" PRId64 ", \"iteration\": %" PRId64 ", ", r.step, r.iteration);
    json_number(stdout, "loss", r.loss);
    json_more(stdout, "scale", scaled ? r.scale : 1.0);
    printf(", \"skipped\": %s, ", r.skipped ? "true" : "false");
    json_number(stdout, "grad_norm", norm);
    printf("}\n");
    if (print_stats(w, &r)) return 1;
    fflush(stdout);
    if (w->tracer && tracer_after(w->tracer, &r, &verdict)) verdict_print(stderr, &verdict);
    return status ? report(&err) : 0;
}

static int set_scale(const Run *run, double scale) {
    amp_error err = {0};
    amp_scaler_state s;
    if (!run->info.scaler)
        return report_text(
            "--scale: this model trains unscaled, in %s: a scale is for gradients in f16, and it has none",
            run->info.precision);
    if (amp_session_get_scaler(run->session, &s, &err)) return report(&err);
    s.scale = (float)scale;
    return amp_session_set_scaler(run->session, &s, &err) ? report(&err) : 0;
}

/* |averages|: of --ema; or the run. */
static int save(const Args *a, const Run *run, const Run *averages) {
    if (averages != run && averages_take(averages, run)) return 1;
    return saving_params(averages, a, "--save", a->save);
}

static int all_steps(const Args *a, const Run *run, const Run *averages, const Dataset *data, Watchers *w) {
    amp_error err = {0};
    int64_t steps = a->steps ? a->steps : 1;
    int64_t *index = malloc(sizeof *index * (size_t)data->count);
    void *const *inputs = data_batch_new(data, data->count);
    int failed = index && inputs ? 0 : report_text("no memory for %" PRId64 " samples", data->count);
    amp_sizes sizes = {data->count, data->lengths ? 0 : data->length};
    for (int64_t i = 0; !failed && i < data->count; i++) {
        index[i] = i;
        if (data_length(data, i) > sizes.t) sizes.t = data_length(data, i);
    }
    failed = failed || data_gather(data, index, sizes, inputs);
    for (int64_t i = 0; !failed && i < steps; i++) {
        failed = one_step(run, inputs, sizes, w);
        if (!failed && i == 0 && a->grads) failed = write_values(run, "", true, a->grads);
        if (!failed && i == 0 && a->values_glob) failed = write_values(run, a->values_glob, false, a->values_file);
    }
    failed |= print_profile(&w->profile);
    if (!failed && a->save) failed = save(a, run, averages);
    if (!failed && a->checkpoint && amp_checkpoint_save(run->session, a->checkpoint, NULL, &err))
        failed = report_text("--checkpoint %s", err.message);
    data_batch_free(data, inputs);
    free(index);
    return failed;
}

/* The batch decides the session's capacity, and the model how the batch is read: the model is loaded for a moment
 * before. */
static int open_batch(const Args *a, Dataset *data) {
    amp_error err = {0};
    amp_model *model;
    amp_model_info info;
    char spec[4096];
    if (amp_model_load(a->model, NULL, &model, &err)) return report(&err);
    amp_model_get_info(model, &info);
    snprintf(spec, sizeof spec, "safetensors:%s", strcmp(a->inputs, "-") ? a->inputs : "/dev/stdin");
    const amp_sizes sample = {1, a->length ? a->length : info.length_most};
    int failed = info.can_train ? data_open(data, spec, PART_TRAIN, model, sample, info.input_count, NULL)
                                : report_text("%s: has no train block; write one in its model file", a->model);
    amp_model_release(model);
    return failed;
}

/* --checkpoint may be the file of --resume, which is read before. */
static int check_files(const Args *a) {
    Outputs files = {.tool = "amprun", .force = a->force};
    WeightInputs weights;
    outputs_input(&files, "the model", a->model);
    outputs_input(&files, "--inputs", a->inputs);
    weights_inputs(&weights, &files, a);
    outputs_input_but(&files, "--resume", a->resume, "--checkpoint");
    outputs_output(&files, "--save", a->save, OUTPUT_PARAMS);
    outputs_output(&files, "--checkpoint", a->checkpoint, OUTPUT_CHECKPOINT);
    outputs_output(&files, "--grads", a->grads, OUTPUT_TENSORS);
    outputs_output(&files, "--values", a->values_file, OUTPUT_TENSORS);
    outputs_output(&files, "--profile", a->profile, OUTPUT_TRACE);
    return weights_outputs_check(&weights, &files);
}

int command_step(const Args *a) {
    Run run = {0}, averages = {0};
    Dataset data = {0};
    Tracer tracer = {0};
    Args keeping = *a;
    keeping.inspect.keep_values = 1;
    int wrong = check_files(a);
    if (wrong) return wrong;
    int failed = open_batch(a, &data) || run_open(&run, &keeping, data.count, NULL);
    if (!failed && a->resume) failed = resume_from(&run, a->resume);
    if (!failed && a->scale >= 0) failed = set_scale(&run, a->scale);
    failed = failed || weights_check_like(&run, a) || (a->ema && averages_open(&averages, &run, a, 0));
    if (!failed && a->trace)
        failed = tracer_open(&tracer, &(TwinSource){.args = a, .capacity = data.count, .seed = a->seed}, &run);
    Watchers watchers = {.tracer = a->trace ? &tracer : NULL, .stats = stats_new(&run, a->stats)};
    if (!failed) failed = profile_open(&watchers.profile, a, &run, a->steps ? a->steps : 1, true);
    failed = failed || all_steps(a, &run, a->ema ? &averages : &run, &data, &watchers);
    stats_free(&watchers.stats);
    profile_close(&watchers.profile);
    tracer_close(&tracer);
    data_close(&data);
    run_close(&averages);
    run_close(&run);
    return failed;
}
