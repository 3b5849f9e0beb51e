/* mean_calls.c: every call of libamp that gives a loss of several batches; tests/checks/means.py compares them.
 *
 *     mean_calls MODEL.so WEIGHTS.safetensors SAMPLES BATCH INPUT...      INPUT: a file of its bytes, by samples
 *
 * A line of JSON for each call: {"call": "amp_eval_end", "loss": 1.5, "loss.NAME": .., "METRIC": ..}
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"
#include "amp/train.h"

enum { MOST = 8 };

static struct {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_model_info info;
    const char *weights;
    long samples, batch, row[MOST]; /* bytes of a sample */
    char *inputs[MOST];
} all;

static amp_error err;

static void end(const char *what) {
    fprintf(stderr, "mean_calls: %s\n", what);
    exit(1);
}
static void ok(amp_status status) {
    if (status) end(err.message);
}

static char *read_input(const char *path, long *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (*bytes = ftell(file)) < 0) end(path);
    rewind(file);
    char *out = malloc((size_t)*bytes + 1);
    if (!out || fread(out, 1, (size_t)*bytes, file) != (size_t)*bytes) end(path);
    fclose(file);
    return out;
}

static amp_session *new_session(void) {
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = all.samples};
    amp_session *out = NULL;
    ok(amp_session_create(all.model, all.params, &options, &out, &err));
    return out;
}

/* The inputs from a sample on. */
static const void *const *from(long sample) {
    static const void *inputs[MOST];
    for (int i = 0; i < all.info.input_count; i++) inputs[i] = all.inputs[i] + sample * all.row[i];
    return inputs;
}

static void print(const char *call, double loss, const double *losses, const double *metrics) {
    printf("{\"call\": \"%s\", \"loss\": %.17g", call, loss);
    for (int i = 0; i < all.info.loss_count; i++)
        printf(", \"loss.%s\": %.17g", amp_model_loss_name(all.model, i), losses[i]);
    for (int i = 0; i < all.info.metric_count; i++)
        printf(", \"%s\": %.17g", amp_model_metric_name(all.model, i), metrics[i]);
    printf("}\n");
}

static void print_evaluation(const char *call, amp_session *session) {
    double loss = 0, losses[MOST], metrics[MOST];
    ok(amp_eval_end(session, &loss, metrics, &err));
    ok(amp_session_get_losses(session, losses, &err));
    print(call, loss, losses, metrics);
}

/* Evaluates the samples from |begin| to |end|, a batch at a time. */
static void evaluate(amp_session *session, long begin, long end) {
    ok(amp_eval_begin(session, &err));
    for (long i = begin; i < end; i += all.batch)
        ok(amp_eval(session, from(i), (amp_sizes){.n = end - i < all.batch ? end - i : all.batch}, NULL, NULL, &err));
}

static void evaluations(void) {
    double loss = 0, losses[MOST], metrics[MOST];
    ok(amp_eval(all.session, from(0), (amp_sizes){.n = all.samples}, &loss, metrics, &err));
    ok(amp_session_get_losses(all.session, losses, &err));
    print("amp_eval", loss, losses, metrics);
    evaluate(all.session, 0, all.samples);
    print_evaluation("amp_eval_end", all.session);
    /* In two sessions. */
    amp_session *other = new_session();
    double sums[1 + 2 * (1 + 2 * MOST)];
    if (amp_eval_sums_count(other) > (int)(sizeof sums / sizeof *sums)) end("too many sums");
    evaluate(other, 0, 7);
    ok(amp_eval_get_sums(other, sums, &err));
    evaluate(all.session, 7, all.samples);
    ok(amp_eval_add(all.session, sums, &err));
    print_evaluation("amp_eval_add", all.session);
    amp_session_release(other);
}

/* A step of several micro-batches. */
static void step(bool wait) {
    const long parts = all.info.accumulate, n = all.samples / parts;
    amp_step_report report = {0};
    double losses[MOST], metrics[MOST];
    int32_t there = 0;
    ok(amp_params_load(all.params, all.weights, NULL, NULL, &err));
    for (long i = 0; i < parts; i++) {
        ok(amp_step(all.session, from(i * n), (amp_sizes){.n = n}, wait ? &report : NULL, &err));
        if (wait) continue;
        ok(amp_session_next_report(all.session, 1, &report, losses, metrics, &there, &err));
        if (!there) end("no report");
    }
    if (!report.complete) end("the step is not complete");
    if (wait) {
        ok(amp_session_get_losses(all.session, losses, &err));
        ok(amp_session_get_metrics(all.session, metrics, &err));
    }
    print(wait ? "amp_step" : "amp_session_next_report", report.loss, losses, metrics);
}

int main(int argc, char **argv) {
    if (argc < 6 || argc > 5 + MOST) end("usage: mean_calls MODEL.so WEIGHTS SAMPLES BATCH INPUT...");
    all.weights = argv[2], all.samples = atol(argv[3]), all.batch = atol(argv[4]);
    ok(amp_model_load(argv[1], NULL, &all.model, &err));
    ok(amp_params_create(all.model, NULL, &all.params, &err));
    ok(amp_params_load(all.params, all.weights, NULL, NULL, &err));
    amp_model_get_info(all.model, &all.info);
    if (all.info.input_count != argc - 5 || all.info.loss_count > MOST || all.info.metric_count > MOST)
        end("another number of inputs, losses or metrics");
    for (int i = 0; i < all.info.input_count; i++) {
        long bytes = 0;
        all.inputs[i] = read_input(argv[5 + i], &bytes);
        all.row[i] = bytes / all.samples;
    }
    all.session = new_session();
    evaluations();
    step(true);
    step(false);
    for (int i = 0; i < all.info.input_count; i++) free(all.inputs[i]);
    amp_session_release(all.session);
    amp_params_release(all.params);
    amp_model_release(all.model);
    return 0;
}
