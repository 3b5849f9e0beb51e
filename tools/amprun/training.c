/* training.c: amprun train, and its line of progress. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/data.h"
#include "tools/amprun/evaluate.h"

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* One line that moves, where the output is a terminal; one plain line per epoch elsewhere. */

typedef struct Progress {
    bool moving, quiet;
    double start, shown;    /* seconds */
    int64_t steps, samples; /* since start */
    int64_t skipped;        /* since start */
} Progress;

typedef struct ProgressNow {
    int64_t epoch, epochs, batch, batches, steps_left;
    double loss;
    const char *metric; /* "acc"; NULL: none */
    double metric_value;
    float scale; /* 0: trains unscaled */
} ProgressNow;

enum { BAR = 24, BAR_LEAST = 6, LINE = 512 };

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void progress_start(Progress *p, bool quiet) {
    *p = (Progress){.moving = !quiet && isatty(STDOUT_FILENO), .quiet = quiet, .start = seconds_now()};
}

/* Samples per second. */
static double progress_rate(const Progress *p) {
    double seconds = seconds_now() - p->start;
    return seconds > 0 ? (double)p->samples / seconds : 0;
}

static int terminal_width(void) {
    struct winsize size;
    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* What is right of the bar, its fields |gap| apart. */
static void format_fields(char out[LINE], const Progress *p, const ProgressNow *now, const char *gap, bool count) {
    double per_step = p->steps ? (seconds_now() - p->start) / (double)p->steps : 0;
    int64_t left = (int64_t)(per_step * (double)now->steps_left + 0.5);
    char batch[64] = "", metric[128] = "", scale[128] = "";
    if (count) snprintf(batch, sizeof batch, "%lld/%lld%s", (long long)now->batch, (long long)now->batches, gap);
    if (now->metric) snprintf(metric, sizeof metric, "%s%s %.3f", gap, now->metric, now->metric_value);
    if (now->scale > 0)
        snprintf(scale, sizeof scale, "%sscale %g%sskipped %lld", gap, now->scale, gap, (long long)p->skipped);
    snprintf(out, LINE, "%sloss %.3f%s%s%s%.0f/s%s%lld:%02lld left", batch, now->loss, metric, scale, gap,
             progress_rate(p), gap, (long long)(left / 60), (long long)(left % 60));
}

static void draw_bar(int width, int64_t batch, int64_t batches) {
    const char *no_colour = getenv("NO_COLOR"); /* https://no-color.org: set and not empty */
    bool colour = !no_colour || !*no_colour;
    int64_t done = batches ? batch * width / batches : 0;
    fputs(colour ? "\033[32m" : "", stdout);
    for (int i = 0; i < width; i++) fputs(i < done ? "━" : "─", stdout);
    fputs(colour ? "\033[0m" : "", stdout);
}

/* How a line is made narrower, step by step, until a bar fits. */
static const struct {
    const char *gap;
    bool count; /* of batches, which the bar shows too */
    int bar;    /* columns, at least */
} forms[] = {{"  ", true, BAR}, {" ", true, BAR_LEAST}, {" ", false, BAR_LEAST}};

/* One line, never wider than the terminal, or the next would not replace it. */
static void draw(const Progress *p, const ProgressNow *now) {
    char epoch[64], fields[LINE];
    const char *gap = "";
    int bar = 0, room = terminal_width() - 1;
    room -= snprintf(epoch, sizeof epoch, "epoch %lld/%lld", (long long)now->epoch, (long long)now->epochs);
    for (size_t i = 0; i < sizeof forms / sizeof *forms && (!i || bar < forms[i - 1].bar); i++) {
        gap = forms[i].gap;
        format_fields(fields, p, now, gap, forms[i].count);
        bar = room - (int)(strlen(fields) + 2 * strlen(gap));
    }
    printf("\r\033[K%s%s", epoch, gap);
    if (bar >= BAR_LEAST) {
        draw_bar(bar < BAR ? bar : BAR, now->batch, now->batches);
        fputs(gap, stdout);
    }
    room -= (int)strlen(gap);
    printf("%.*s", room > 0 ? room : 0, fields);
    fflush(stdout);
}

/* After each step; draws at most ten times a second. */
static void progress_step(Progress *p, const ProgressNow *now, int64_t n, bool skipped) {
    p->steps++;
    p->samples += n;
    p->skipped += skipped;
    double t = seconds_now();
    if (!p->moving || (t - p->shown < 0.1 && now->batch < now->batches)) return;
    p->shown = t;
    draw(p, now);
}

/* Removes the moving line, so that a plain one can be printed. */
static void progress_clear(Progress *p) {
    if (p->moving) fputs("\r\033[K", stdout);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

enum { MAX_METRICS = 16, DEFAULT_BATCH = 128, DEFAULT_EPOCHS = 5 };

typedef struct Training {
    const Args *args;
    Run run;
    Dataset train, test;
    bool has_test;
    int64_t batch, batches, epochs, total_steps;
    int64_t *order;
    void *const *inputs;
    FILE *log;
    Progress progress;
    amp_step_report last;
    double metrics[MAX_METRICS], losses[MAX_METRICS];
    double epoch_loss; /* sum of loss * n over the epoch */
    int64_t epoch_samples, epoch_skipped;
} Training;

static const char *megabytes(char out[32], uint64_t bytes) {
    snprintf(out, 32, "%.1f", (double)bytes / 1e6);
    return out;
}

static void print_header(const Training *t) {
    amp_memory_info m;
    char total[32], params[32], derived[32], moments[32], activations[32];
    amp_session_memory(t->run.session, &m);
    printf("%s: %s, %" PRId64 " parameters, %s MB at batch %" PRId64
           " (weights %s + copies %s + moments %s + activations %s)\n",
           t->args->model, t->run.info.policy, t->run.info.param_elements, megabytes(total, m.total), t->batch,
           megabytes(params, m.params), megabytes(derived, m.derived), megabytes(moments, m.moments),
           megabytes(activations, m.activations));
    fflush(stdout);
}

/* The first line of the log: what is trained, and the bytes that it takes. */
static void log_header(const Training *t) {
    amp_memory_info m;
    if (!t->log) return;
    amp_session_memory(t->run.session, &m);
    fprintf(t->log, "{\"model\": \"%s\", \"policy\": \"%s\", \"batch\": %" PRId64 ", \"peak_bytes\": %" PRIu64 "}\n",
            t->run.info.name, t->run.info.policy, t->batch, m.total);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int open_data(Training *t) {
    const Args *a = t->args;
    if (data_open(&t->train, a->data, PART_TRAIN, t->run.model, t->run.info.input_count)) return 1;
    t->has_test = !strncmp(a->data, "idx:", 4);
    if (t->has_test && data_open(&t->test, a->data, PART_TEST, t->run.model, t->run.info.input_count)) return 1;
    t->batches = (t->train.count + t->batch - 1) / t->batch;
    /* A step takes k batches in a row, from one epoch into the next if need be; no step is begun that the epochs asked
     * for would not complete. */
    int64_t k = t->run.info.accumulate, asked = (a->epochs ? a->epochs : DEFAULT_EPOCHS) * t->batches / k;
    t->total_steps = a->steps ? a->steps : asked > 0 ? asked : 1;
    t->epochs = (t->total_steps * k + t->batches - 1) / t->batches;
    t->order = malloc(sizeof *t->order * (size_t)t->train.count);
    t->inputs = data_batch_new(&t->train, t->batch);
    return t->order && t->inputs ? 0 : report_text("%s: no memory for a batch of %" PRId64, a->data, t->batch);
}

static int open_log(Training *t) {
    if (!t->args->log) return 0;
    t->log = fopen(t->args->log, t->args->resume ? "a" : "w");
    return t->log ? 0 : report_text("--log %s: cannot be written", t->args->log);
}

static int open_training(Training *t) {
    amp_error err = {0};
    t->batch = t->args->batch ? t->args->batch : DEFAULT_BATCH;
    if (run_open(&t->run, t->args, t->batch, false, false)) return 1;
    if (!t->run.info.can_train)
        return report_text("%s: has no train block; write one in its model file", t->args->model);
    if (t->run.info.metric_count > MAX_METRICS || t->run.info.loss_count > MAX_METRICS)
        return report_text("%s: more than %d metrics or losses", t->args->model, MAX_METRICS);
    if (t->args->resume && amp_checkpoint_load(t->run.session, t->args->resume, NULL, 0, &err)) return report(&err);
    return open_data(t) || open_log(t);
}

static void close_training(Training *t) {
    data_batch_free(&t->train, t->inputs);
    data_close(&t->train);
    data_close(&t->test);
    free(t->order);
    run_close(&t->run);
}

/* The disk may be full: what was logged must have arrived. */
static int close_log(Training *t) {
    if (!t->log) return 0;
    int lost = ferror(t->log);
    lost |= fclose(t->log);
    t->log = NULL;
    return lost ? report_text("--log %s: could not be written in full", t->args->log) : 0;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void log_metrics(const Training *t, const char *prefix, const double *metrics) {
    for (int i = 0; i < t->run.info.metric_count; i++) {
        char key[256];
        snprintf(key, sizeof key, "%s%s", prefix, amp_model_metric_at(t->run.model, i));
        fprintf(t->log, ", ");
        json_number(t->log, key, metrics[i]);
    }
}

static void log_losses(const Training *t, const char *prefix, const double *losses) {
    for (int i = 0; i < t->run.info.loss_count; i++) {
        char key[256];
        snprintf(key, sizeof key, "%s.%s", prefix, amp_model_loss_at(t->run.model, i));
        fprintf(t->log, ", ");
        json_number(t->log, key, losses[i]);
    }
}

static void log_step(Training *t) {
    if (!t->log) return;
    fprintf(t->log, "{\"iteration\": %" PRId64 ", \"step\": %" PRId64 ", ", t->last.iteration, t->last.step);
    json_number(t->log, "loss", t->last.loss);
    log_losses(t, "loss", t->losses);
    fprintf(t->log, ", ");
    json_number(t->log, "scale", t->last.scale);
    fprintf(t->log, ", \"skipped\": %s", t->last.skipped ? "true" : "false");
    log_metrics(t, "", t->metrics);
    fprintf(t->log, "}\n");
}

/* Batch |index| of the training, counted from its start, is a micro-batch of its step. */
static int train_batch(Training *t, int64_t index) {
    amp_error err = {0};
    int64_t epoch = index / t->batches, position = index % t->batches, from = position * t->batch;
    int64_t n = t->train.count - from < t->batch ? t->train.count - from : t->batch;
    int64_t micro = index % t->run.info.accumulate;
    double before = micro ? t->last.loss * (double)micro : 0; /* the report's loss is the mean of the step so far */
    if (position == 0 || t->progress.steps == 0) shuffle(t->order, t->train.count, t->args->seed, epoch);
    if (position == 0) t->epoch_loss = 0, t->epoch_samples = t->epoch_skipped = 0;
    data_gather(&t->train, t->order + from, n, t->inputs);
    if (amp_step(t->run.session, (const void *const *)t->inputs, n, &t->last, &err)) return report(&err);
    t->epoch_loss += (t->last.loss * (double)(micro + 1) - before) * (double)n;
    t->epoch_samples += n;
    t->epoch_skipped += t->last.skipped;
    if (!t->last.complete) return 0;
    if (amp_session_metrics(t->run.session, t->metrics, &err)) return report(&err);
    if (amp_session_losses(t->run.session, t->losses, &err)) return report(&err);
    ProgressNow now = {
        .epoch = epoch + 1,
        .epochs = t->epochs,
        .batch = position + 1,
        .batches = t->batches,
        .steps_left = t->total_steps - index / t->run.info.accumulate - 1,
        .loss = t->last.loss,
        .metric = amp_model_metric_at(t->run.model, 0),
        .metric_value = t->metrics[0],
        .scale = t->run.info.scaler ? t->last.scale : 0,
    };
    progress_step(&t->progress, &now, n * t->run.info.accumulate, t->last.skipped);
    log_step(t);
    return 0;
}

static void print_epoch(Training *t, int64_t epoch, const Evaluation *test) {
    printf("epoch %" PRId64 ": train loss %.4f", epoch + 1, t->epoch_loss / (double)t->epoch_samples);
    if (t->has_test) printf("  test loss %.4f", test->loss);
    for (int i = 0; t->has_test && i < t->run.info.metric_count; i++)
        printf("  test %s %.4f", amp_model_metric_at(t->run.model, i), test->metrics[i]);
    if (t->run.info.scaler) printf("  scale %g  skipped %" PRId64, t->last.scale, t->epoch_skipped);
    printf("  %.0f samples/s\n", progress_rate(&t->progress));
    fflush(stdout);
}

static int end_epoch(Training *t, int64_t epoch) {
    Evaluation test = {0};
    double paused = seconds_now();
    if (t->has_test && evaluate(&t->run, &t->test, t->batch, &test)) return 1;
    t->progress.start += seconds_now() - paused; /* the rate is that of training */
    progress_clear(&t->progress);
    if (!t->args->quiet) print_epoch(t, epoch, &test);
    if (t->log && t->has_test) {
        fprintf(t->log, "{\"epoch\": %" PRId64 ", ", epoch + 1);
        json_number(t->log, "test_loss", test.loss);
        log_losses(t, "test_loss", test.losses);
        log_metrics(t, "test_", test.metrics);
        fprintf(t->log, ", \"samples_per_s\": %.1f}\n", progress_rate(&t->progress));
    }
    return 0;
}

static int train(Training *t) {
    amp_error err = {0};
    amp_scaler_state scaler;
    if (amp_session_get_scaler(t->run.session, &scaler, &err)) return report(&err);
    if (scaler.iteration >= t->total_steps) {
        if (!t->args->quiet)
            printf("nothing is left to train: %s is at step %" PRId64 " of %" PRId64 "\n",
                   t->args->resume ? t->args->resume : "training", scaler.iteration, t->total_steps);
        return 0; /* a count that was loaded may be too large to multiply */
    }
    progress_start(&t->progress, t->args->quiet);
    int64_t k = t->run.info.accumulate, last = t->total_steps * k;
    for (int64_t i = scaler.iteration * k; i < last; i++) {
        if (train_batch(t, i)) return 1;
        if ((i + 1) % t->batches == 0 || i + 1 == last)
            if (end_epoch(t, i / t->batches)) return 1;
    }
    return 0;
}

static int save(const Training *t) {
    amp_error err = {0};
    if (t->args->save && amp_params_save(t->run.params, t->args->save, &err)) return report(&err);
    if (t->args->checkpoint && amp_checkpoint_save(t->run.session, t->args->checkpoint, NULL, &err))
        return report(&err);
    return 0;
}

int command_train(const Args *a) {
    Training t = {.args = a};
    int failed = open_training(&t);
    if (!failed && !a->quiet) print_header(&t);
    if (!failed) log_header(&t);
    failed = failed || train(&t) || save(&t);
    failed |= close_log(&t);
    close_training(&t);
    return failed;
}
