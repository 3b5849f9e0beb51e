/* training.c: amprun train: opening, the loop of steps, the end of an epoch. */
#include "tools/amprun/train/training.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tools/amprun/log/log.h"
#include "tools/amprun/tensorboard/tensorboard.h"
#include "tools/amprun/weights.h"

enum { MAX_METRICS = EVALUATION_METRICS, DEFAULT_EPOCHS = 5 };

/* ---- what is said at the start ----------------------------------------------------------------------------------- */

static const char *megabytes(char out[32], uint64_t bytes) {
    snprintf(out, 32, "%.1f", (double)bytes / 1e6);
    return out;
}

static void print_header(Training *t) {
    amp_memory_info m;
    char total[32], params[32], derived[32], moments[32], activations[32];
    amp_session_get_memory(t->run.session, &m);
    progress_print(&t->progress,
                   "%s: %s, %" PRId64 " parameters, %s MB at batch %" PRId64
                   " (weights %s + copies %s + moments %s + activations %s)\n",
                   t->args->model, t->run.info.policy, t->run.info.param_elements, megabytes(total, m.total), t->batch,
                   megabytes(params, m.params), megabytes(derived, m.derived), megabytes(moments, m.moments),
                   megabytes(activations, m.activations));
    if (t->args->device && !strcmp(t->args->device, "null"))
        progress_print(&t->progress, "device null: nothing is computed; every number below is zero\n");
}

static void log_header(Training *t) {
    FILE *line = t->log.started ? NULL : log_line(&t->log);
    if (!line) return;
    log_head(line, t);
    log_end_line(&t->log);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int refuse_other(const char *option, int64_t given, const char *resume, int64_t kept) {
    report_text("--%s %" PRId64 ": %s was written with --%s %" PRId64
                "; omit --%s to continue with it, or give --allow other-%s",
                option, given, resume, option, kept, option, strcmp(option, "tokens") ? option : "batch");
    return 1;
}

static int refuse_tokens(const Args *a, int64_t kept) {
    if (kept) return refuse_other("tokens", a->tokens, a->resume, kept);
    return report_text("--tokens %" PRId64 ": %s was written without it; leave it out to continue, or give --allow "
                       "other-batch",
                       a->tokens, a->resume);
}

/* Other ranks than before share the samples of a step as well as they divide them. */
static int share_batch(Training *t) {
    Position *p = &t->position;
    const int64_t now = t->ranks->count, before = p->ranks ? p->ranks : 1, all = p->batch * before;
    p->ranks = now;
    if (!p->batch || now == before) return 0;
    if (!(t->args->allowed & ALLOW_OTHER_BATCH) && (t->args->batch ? t->args->batch * now != all : all % now != 0))
        return report_text("--resume %s: was trained by %" PRId64 " ranks with batches of %" PRId64 "; %" PRId64
                           " ranks take the same steps with batches of %g; give --allow other-batch to take other ones",
                           t->args->resume, before, p->batch, now, (double)all / (double)now);
    if (!t->args->batch || t->args->batch * now == all) p->batch = all / now;
    return 0;
}

/* Batch and seed are those of the checkpoint, where it holds them. */
static int take_position(Training *t) {
    const Args *a = t->args;
    Position *p = &t->position;
    *p = (Position){.seed = a->seed, .best = NAN};
    if (a->resume && position_read(a->resume, p)) return 1;
    if (share_batch(t)) return 1;
    if (a->resume && p->batch) {
        if (a->seed_given && a->seed != p->seed && !(a->allowed & ALLOW_OTHER_SEED))
            return refuse_other("seed", (int64_t)a->seed, a->resume, (int64_t)p->seed);
        if (a->batch && a->batch != p->batch && !(a->allowed & ALLOW_OTHER_BATCH))
            return refuse_other("batch", a->batch, a->resume, p->batch);
        if (a->tokens && a->tokens != p->tokens && !(a->allowed & ALLOW_OTHER_BATCH))
            return refuse_tokens(a, p->tokens);
    }
    if (a->seed_given) p->seed = a->seed;
    t->batch = a->batch ? a->batch : p->batch ? p->batch : DEFAULT_BATCH;
    t->tokens = a->tokens ? a->tokens : p->tokens;
    t->known = p->batch == t->batch && p->tokens == t->tokens;
    p->batch = t->batch, p->tokens = t->tokens;
    return 0;
}

/* --eval-split of data that do not say themselves what is held out. */
static int split(Training *t) {
    int64_t held = data_held_out(&t->train, t->args->eval_split);
    if (held < 1 || held >= t->train.count)
        return report_text("--eval-split %g: would hold out %" PRId64 " of %" PRId64
                           " samples; training and evaluation "
                           "need some each",
                           t->args->eval_split, held, t->train.count);
    t->has_test = true;
    return data_split(&t->train, held, &t->test);
}

/* What is derived of a table goes where the parameters go: evaluation needs it. */
static int keep_schema(Training *t) {
    const char *schema = data_schema(&t->train), *before = t->position.schema;
    if (schema && before && strcmp(schema, before) && !(t->args->allowed & ALLOW_OTHER_DATA))
        return report_text("--data %s: is another file than the one %s was trained with; give the same data, or "
                           "--allow other-data",
                           t->args->data, t->args->resume);
    free(t->position.schema);
    t->position.schema = schema ? strdup(schema) : NULL;
    return schema && !t->position.schema ? report_text("%s: no memory", t->args->data) : 0;
}

static int open_samples(Training *t) {
    const Args *a = t->args;
    DataOptions options = {.whole = a->eval_data != NULL,
                           .schema = t->position.schema,
                           .schema_name = a->resume ? a->resume : "",
                           .tells = !t->ranks->rank && !a->quiet};
    bool itself = data_splits_itself(a->data);
    if (itself) options.held = a->eval_split;
    if (data_open(&t->train, a->data, PART_TRAIN, t->run.model, run_sizes(&t->run, 1), t->run.info.input_count,
                  &options))
        return 1;
    if (keep_schema(t)) return 1;
    options.schema = t->position.schema;
    options.tells = false;
    if (a->eval_split > 0 && !itself) return split(t);
    t->has_test = a->eval_data || t->train.has_test || !strncmp(a->data, "idx:", 4);
    return t->has_test ? data_open(&t->test, a->eval_data ? a->eval_data : a->data, PART_TEST, t->run.model,
                                   run_sizes(&t->run, 1), t->run.info.input_count, &options)
                       : 0;
}

static int check_samples(Training *t) {
    Position *p = &t->position;
    if (p->samples && p->samples != t->train.count && !(t->args->allowed & ALLOW_OTHER_DATA))
        return report_text("--data %s: has %" PRId64 " samples, but %s was trained with %" PRId64
                           "; give the same data, or --allow other-data",
                           t->args->data, t->train.count, t->args->resume, p->samples);
    t->known = t->known && p->samples == t->train.count;
    p->samples = t->train.count;
    return 0;
}

static int open_data(Training *t) {
    const Args *a = t->args;
    if (open_samples(t) || check_samples(t)) return 1;
    const BatchLimits limits = {t->batch, t->tokens, t->run.info.least_batch};
    if (batch_list_cut(&t->batches, &t->train, &limits)) return 1;
    /* A step takes k batches in a row, from one epoch into the next if need be; no step is begun that the epochs asked
     * for would not complete. */
    int64_t k = t->per_step, asked = (a->epochs ? a->epochs : DEFAULT_EPOCHS) * t->batches.count / k;
    t->total_steps = a->steps ? a->steps : asked > 0 ? asked : 1;
    t->epochs = (t->total_steps * k + t->batches.count - 1) / t->batches.count;
    return 0;
}

static int open_best(Training *t) {
    const Args *a = t->args;
    int wrong = best_find(&t->best, &t->run, a->best_metric);
    if (wrong) return wrong;
    if ((a->best_metric || a->patience) && !t->has_test)
        return report_text("--%s: there is nothing to evaluate on; give --eval-data or --eval-split",
                           a->best_metric ? "save-best" : "patience") +
               1;
    if (t->position.metric[0] && strcmp(t->position.metric, t->best.name))
        t->position.best = NAN, t->position.stale = 0;
    return 0;
}

int training_open(Training *t) {
    Args args = *t->args;
    if (take_position(t)) return 1;
    args.seed = t->position.seed;
    args.tokens = t->tokens;
    if (run_open(&t->run, &args, t->batch, NULL)) return 1;
    t->per_step = t->run.info.accumulate * t->ranks->count;
    if (!t->run.info.can_train)
        return report_text("%s: has no train block; write one in its model file", t->args->model);
    if (t->run.info.metric_count > MAX_METRICS || t->run.info.loss_count > MAX_METRICS)
        return report_text("%s: more than %d metrics or losses", t->args->model, MAX_METRICS);
    if (t->args->resume && resume_from(&t->run, t->args->resume)) return 1;
    scale_watch_go_on(&t->position.scale, t->run.model);
    t->infinite = -1;
    (void)saving_damage(&t->run, &t->infinite);
    t->stats = stats_new(&t->run, t->args->stats);
    int failed = open_data(t);
    if (!failed && t->args->ema) failed = averages_open(&t->averages, &t->run, &args, t->has_test ? t->batch : 0);
    const TwinSource source = {.args = t->args, .capacity = t->batch, .seed = t->position.seed};
    if (!failed && t->args->trace) failed = tracer_open(&t->tracer, &source, &t->run);
    return failed ? failed : open_best(t);
}

void training_close(Training *t) {
    feed_close(&t->feed);
    (void)events_close(&t->events);
    tracer_close(&t->tracer);
    stats_free(&t->stats);
    profile_close(&t->profile);
    data_close(&t->test);
    data_close(&t->train);
    batch_list_free(&t->batches);
    free(t->position.schema);
    run_close(&t->averages);
    run_close(&t->run);
}

const Run *training_kept(Training *t) {
    if (!t->args->ema) return &t->run;
    return averages_take(&t->averages, &t->run) ? NULL : &t->averages;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void log_step(Training *t) {
    FILE *line = log_line(&t->log);
    if (!line) return;
    fprintf(line, "{\"iteration\": %" PRId64 ", \"step\": %" PRId64 ", ", t->last.iteration, t->last.step);
    json_number(line, "loss", t->last.loss);
    each_loss(&t->run, "", t->losses, json_more, line);
    json_more(line, "scale", t->last.scale);
    fprintf(line, ", \"skipped\": %s", t->last.skipped ? "true" : "false");
    if (t->position.scale.health)
        fprintf(line, ", \"scale_is\": \"%s\"", amp_scale_health_name(t->position.scale.health));
    if (t->last.states_kept) fprintf(line, ", \"states_kept\": %d", (int)t->last.states_kept);
    each_metric(&t->run, "", t->metrics, json_more, line);
    fputc('}', line);
    log_end_line(&t->log);
}

static void log_epoch(Training *t, int64_t epoch, const Evaluation *test) {
    FILE *line = log_line(&t->log);
    if (!line) return;
    fprintf(line, "{\"epoch\": %" PRId64 ", ", epoch + 1);
    json_number(line, "test_loss", test->loss);
    each_loss(&t->run, "test_", test->losses, json_more, line);
    each_metric(&t->run, "test_", test->metrics, json_more, line);
    fprintf(line, ", \"samples_per_s\": %.1f}", progress_rate(&t->progress));
    log_end_line(&t->log);
}

static void show_step(Training *t, int64_t epoch, int64_t position, int64_t steps_left, int64_t n) {
    ProgressNow now = {.epoch = epoch + 1,
                       .epochs = t->epochs,
                       .batch = position + 1,
                       .batches = t->batches.count,
                       .steps_left = steps_left,
                       .scale = t->run.info.scaler ? t->last.scale : 0,
                       .scale_note = scale_watch_note(&t->position.scale)};
    int losses = t->run.info.loss_count;
    if (!losses) now.number[now.numbers++] = (ProgressNumber){"loss", t->last.loss};
    for (int i = 0; i < losses && now.numbers < PROGRESS_NUMBERS - 1; i++)
        now.number[now.numbers++] = (ProgressNumber){amp_model_loss_name(t->run.model, i), t->losses[i]};
    if (t->run.info.metric_count)
        now.number[now.numbers++] = (ProgressNumber){amp_model_metric_name(t->run.model, 0), t->metrics[0]};
    progress_step(&t->progress, &now, n, t->last.skipped);
}

/* A loss that is not finite where the step was not skipped: the weights may be lost, and then nothing more can be
 * learnt. */
static int check_numbers(Training *t) {
    if (isfinite(t->last.loss) || t->last.skipped || t->args->allowed & ALLOW_NAN) return 0;
    int64_t damaged = saving_damage(&t->run, &t->infinite);
    if (!damaged) return 0;
    progress_clear(&t->progress);
    char cause[512] = "a lower learning rate, or clip_norm, may help";
    void *const *sample = data_batch_new(&t->train, 1);
    if (sample) data_describe_infinite(&t->train, sample, cause, sizeof cause);
    data_batch_free(&t->train, sample);
    return report_text("step %" PRId64 ": the loss is %f, and %" PRId64
                       " numbers of the parameters are not finite; training "
                       "ends (%s)",
                       t->last.iteration, t->last.loss, damaged, cause);
}

/* Tensors that are not finite, of a step whose gradients a loss scale did not make so. */
static void warn_of_stats(Training *t) {
    const int count = t->last.skipped ? 0 : stats_broken(&t->stats);
    const NamedStats *first = count ? t->stats.tensor[t->stats.broken] : NULL;
    if (!first || count == t->warned_of) return;
    t->warned_of = count;
    progress_clear(&t->progress);
    report_text("warning: --stats: iteration %" PRId64 ": of %s, %" PRId64 " of %" PRId64
                " numbers are infinite or NaN%s",
                t->last.iteration, first->name, first->stats.infinities + first->stats.nans, first->stats.count,
                count > 1 ? ", and some of other tensors" : "");
}

/* --stats. */
static int log_stats(Training *t) {
    bool is_told;
    if (stats_after(&t->stats, &is_told)) return 1;
    if (!is_told) return 0;
    warn_of_stats(t);
    tensorboard_stats(&t->events, &t->stats, t->last.iteration);
    FILE *line = log_line(&t->log);
    if (!line) return 0;
    stats_json(line, &t->stats, &t->last);
    log_end_line(&t->log);
    return 0;
}

/* --trace-nonfinite: where a number that is not finite came from.  What a loss scale is there for is for the log. */
static void trace_step(Training *t) {
    Verdict verdict;
    if (!t->args->trace || !tracer_after(&t->tracer, &t->last, &verdict)) return;
    feed_place(&t->feed, (verdict.iteration - 1) * t->run.info.accumulate + verdict.micro, verdict.sample,
               verdict.place);
    progress_clear(&t->progress);
    if (!verdict.is_expected || t->args->verbose) verdict_print(stderr, &verdict);
    FILE *line = log_line(&t->log);
    if (!line) return;
    verdict_json(line, &verdict);
    log_end_line(&t->log);
}

/* --profile: once all that is asked for was recorded, or training |ends|. */
static void show_profile(Training *t, bool ends) {
    char *table = profile_finish(&t->profile, ends);
    if (!table) return;
    progress_clear(&t->progress);
    progress_print(&t->progress, "%s", table);
    free(table);
}

static void watch_scale(Training *t) {
    if (!amp_scale_monitor_step(&t->position.scale, &t->last) || t->ranks->rank) return; /* all have the same */
    progress_clear(&t->progress);
    scale_watch_warn(&t->position.scale, t->last.iteration);
}

static void say_kept(Training *t, const char *name) {
    progress_clear(&t->progress);
    report_text("iteration %" PRId64 ": %s keeps its value, as the new one is not finite%s", t->last.iteration, name,
                t->args->trace ? "" : "; --trace-nonfinite names the op");
    FILE *line = log_line(&t->log);
    if (!line) return;
    fprintf(line, "{\"state_kept\": \"%s\", \"iteration\": %" PRId64 "}", name, t->last.iteration);
    log_end_line(&t->log);
}

/* States whose new value was not finite: each is named once. */
static void watch_states(Training *t) {
    if (!t->last.states_kept || t->ranks->rank) return;
    int64_t first;
    const char *name;
    for (int i = 0; (name = amp_session_kept_state_name(t->run.session, i, &first)) != NULL; i++)
        if (first == t->last.iteration) say_kept(t, name);
    if (!t->last.too_few || t->said_too_few) return;
    t->said_too_few = true;
    progress_clear(&t->progress);
    report_text("iteration %" PRId64 ": a batch has fewer than %" PRId64
                " samples, and so no variance: running statistics stay as they are, and normalise it; give another "
                "--batch",
                t->last.iteration, t->run.info.least_batch);
}

/* The samples of all ranks in the step that call |index| ends. */
static int64_t samples_of_step(Training *t, int64_t index) {
    int64_t samples = 0, first = index / t->run.info.accumulate * t->per_step;
    for (int64_t i = 0; i < t->per_step; i++) samples += feed_samples(&t->feed, first + i);
    return samples;
}

static int end_step(Training *t, int64_t index) {
    Position *p = &t->position;
    int64_t k = t->run.info.accumulate, step = index / k, last = (step + 1) * t->per_step - 1;
    p->epoch_loss = t->epoch_loss, p->epoch_samples = t->epoch_samples, p->epoch_skipped = t->epoch_skipped;
    watch_scale(t);
    show_step(t, last / t->batches.count, last % t->batches.count, t->total_steps - step - 1,
              samples_of_step(t, index));
    log_step(t);
    watch_states(t);
    tensorboard_step(&t->events, &t->run, &t->last, t->losses, t->metrics, progress_rate(&t->progress));
    if (log_stats(t)) return 1;
    trace_step(t);
    show_profile(t, false);
    return check_numbers(t);
}

/* ---- what an epoch adds up --------------------------------------------------------------------------------------- */

static void begin_epoch(Training *t) { t->epoch_loss = 0, t->epoch_samples = t->epoch_skipped = 0; }

/* A micro-batch counts where it is; the last of a step makes up for what the loss of them all is besides. */
static void count_call(Training *t, AheadCall call) {
    if (call.index % t->run.info.accumulate == 0) t->step_loss = 0;
    if (call.index % t->batches.count == 0) begin_epoch(t);
    const double weighed = t->last.complete ? t->last.loss * (double)samples_of_step(t, call.index) - t->step_loss
                                            : t->last.loss * (double)call.n;
    t->step_loss += weighed;
    t->epoch_loss += weighed;
    t->epoch_samples += call.n;
    t->epoch_skipped += t->last.skipped;
}

/* Of several ranks only a whole step has a loss of all of them.  A step that begins in one epoch and ends in the next
 * counts where it ends. */
static void count_step(Training *t, AheadCall call) {
    if (!t->last.complete) return;
    const int64_t first = call.index / t->run.info.accumulate * t->per_step, last = first + t->per_step - 1;
    if (first % t->batches.count == 0 || first / t->batches.count != last / t->batches.count) begin_epoch(t);
    const int64_t samples = samples_of_step(t, call.index);
    t->epoch_loss += t->last.loss * (double)samples;
    t->epoch_samples += samples;
    t->epoch_skipped += t->last.skipped;
}

/* ---- reports of steps, some steps behind ------------------------------------------------------------------------- */

static int take_report(Training *t, AheadCall call, amp_status status, const amp_error *err) {
    amp_error failure = {0};
    if (profile_after(&t->profile, &t->last, &failure)) return report(&failure);
    if (t->ranks->count > 1) count_step(t, call);
    else count_call(t, call);
    if (!t->last.complete) return 0;
    int failed = end_step(t, call.index);
    if (status) progress_clear(&t->progress);
    return failed || (status && report(err));
}

/* Takes the reports that are there, and waits for others until |most| calls are left without. */
static int take_reports(Training *t, int most) {
    while (t->ahead.count) {
        amp_error err = {0};
        int32_t there = 0;
        AheadCall call = t->ahead.call[0];
        double *metrics = ahead_ends_step(&t->ahead, call.index) ? t->metrics : NULL;
        amp_status status =
            amp_session_next_report(t->run.session, t->ahead.count > most, &t->last, t->losses, metrics, &there, &err);
        if (!there && status) {
            progress_clear(&t->progress);
            return feed_report(&t->feed, call.index, &err);
        }
        if (!there) return 0;
        ahead_pop(&t->ahead, &t->last);
        int failed = take_report(t, call, status, &err);
        if (failed) return failed;
    }
    return 0;
}

int training_catch_up(Training *t) { return take_reports(t, 0); }

/* Batch |index| of the training, counted from its start, is a micro-batch of its step. */
static int train_batch(Training *t, int64_t index) {
    amp_error err = {0};
    const void *const *inputs;
    const int64_t k = t->run.info.accumulate;
    amp_sizes sizes;
    if (amp_dataset_next(t->feed.filled, &inputs, &sizes, &err)) {
        if (training_catch_up(t)) return 1;
        progress_clear(&t->progress);
        return report(&err);
    }
    if (t->args->trace && tracer_before(&t->tracer, inputs, sizes)) return 1;
    if (stats_before(&t->stats, index / k + 1, index % k == 0, &err)) return report(&err);
    if (profile_before(&t->profile, sizes.n, &err)) return report(&err);
    amp_status status = amp_step(t->run.session, inputs, sizes, NULL, &err);
    if (status && status != AMP_SCALE_AT_FLOOR) { /* the floor is its report's to tell */
        if (training_catch_up(t)) return 1;
        progress_clear(&t->progress);
        return feed_report(&t->feed, index, &err);
    }
    ahead_push(&t->ahead, (AheadCall){index, sizes.n});
    return take_reports(t, ahead_most(&t->ahead));
}

static void print_epoch(Training *t, int64_t epoch, const Evaluation *test) {
    Progress *p = &t->progress;
    progress_print(p, "epoch %" PRId64 ": train loss %.4f", epoch + 1, t->epoch_loss / (double)t->epoch_samples);
    if (t->has_test) progress_print(p, "  test loss %.4f", test->loss);
    for (int i = 0; t->has_test && i < t->run.info.loss_count; i++)
        progress_print(p, "  test %s %.4f", amp_model_loss_name(t->run.model, i), test->losses[i]);
    for (int i = 0; t->has_test && i < t->run.info.metric_count; i++)
        progress_print(p, "  test %s %.4f", amp_model_metric_name(t->run.model, i), test->metrics[i]);
    const char *note = scale_watch_note(&t->position.scale);
    if (t->run.info.scaler)
        progress_print(p, "  scale %.10g%s%s  skipped %" PRId64, t->last.scale, *note ? " " : "", note,
                       t->epoch_skipped);
    progress_print(p, "  %.0f samples/s\n", progress_rate(p));
}

/* Notes the evaluation of |kept|, keeps its parameters where they are the best so far. */
static int note_best(Training *t, const Run *kept, const Evaluation *test) {
    bool better = best_update(&t->best, test, &t->position);
    if (!better || !t->args->best_file || saving_damage(kept, &t->infinite)) return 0;
    return saving_params(kept, t->args, "--save-best", t->args->best_file) ||
           saving_schema(t->position.schema, "--save-best", t->args->best_file);
}

/* Steps that are complete where an epoch, or training inside it, ends. */
static int64_t steps_at_end(const Training *t, int64_t epoch, bool whole) {
    return whole ? (epoch + 1) * t->batches.count / t->per_step : t->total_steps;
}

/* |whole|: the epoch has ended, and not only training.  |stops|: a signal ends it, EVALUATION_STOPPED; going on
 * evaluates again. */
static int end_epoch(Training *t, int64_t epoch, bool whole, bool stops) {
    Evaluation test = {0};
    double paused = amp_seconds();
    const Run *kept = t->has_test ? training_kept(t) : &t->run;
    if (!kept) return 1;
    if (t->has_test) {
        const BatchLimits limits = {.n = t->batch, .tokens = t->tokens};
        int failed =
            evaluate(kept, &t->test, &limits, stops && t->ranks->count == 1 ? stopping_signal : NULL, t->ranks, &test);
        if (failed) return failed;
    }
    t->progress.start += amp_seconds() - paused; /* the rate is that of training */
    progress_clear(&t->progress);
    print_epoch(t, epoch, &test);
    if (!t->has_test) return 0;
    log_epoch(t, epoch, &test);
    tensorboard_evaluation(&t->events, &t->run, steps_at_end(t, epoch, whole), &test);
    if (!whole && !t->args->best_metric) return 0;
    return note_best(t, kept, &test);
}

static bool out_of_patience(Training *t) {
    if (!t->args->patience || t->position.stale < t->args->patience) return false;
    progress_print(&t->progress, "no better %s for %" PRId64 " epochs: training ends\n", t->best.name,
                   t->position.stale);
    return true;
}

/* After call |index|, and before the next.  Ranks go on together: what ends within a step ends with it. */
static int between_batches(Training *t, int64_t index) {
    const int64_t k = t->run.info.accumulate;
    const bool step_ended = (index + 1) % k == 0, last = index + 1 == t->total_steps * k;
    const int64_t ended = t->ranks->count == 1 ? index + 1 : (index + 1) / k * t->per_step; /* micro-batches so far */
    const int64_t before = t->ranks->count == 1 ? index : ended - t->per_step;
    const bool whole = (t->ranks->count == 1 || step_ended) && ended / t->batches.count != before / t->batches.count;
    if (whole || last) {
        const int64_t epoch = whole ? ended / t->batches.count - 1 : (ended - 1) / t->batches.count;
        int failed = training_catch_up(t);
        /* After the last step nothing goes on that could evaluate again. */
        if (!failed) failed = end_epoch(t, epoch, whole, step_ended && !last);
        if (failed) return failed;
        if (whole) t->position.evaluated = epoch + 1;
    }
    return step_ended ? training_checkpoint_if_due(t) : 0;
}

/* Goes on inside an epoch, or at the end of one that was not evaluated any more. */
static int enter(Training *t, int64_t index) {
    Position *p = &t->position;
    t->epoch_loss = p->epoch_loss, t->epoch_samples = p->epoch_samples, t->epoch_skipped = p->epoch_skipped;
    int64_t ended = index / t->batches.count;
    if (!t->args->resume || !index || index % t->batches.count || p->evaluated >= ended || !p->epoch_samples) return 0;
    int failed = end_epoch(t, ended - 1, true, true);
    if (!failed) p->evaluated = ended;
    return failed;
}

/* A signal that some rank has got, or nobody's patience, before |step|. */
static int ask_to_end(Training *t, int64_t step, bool *ends) {
    int signal = stopping_signal();
    bool saves = training_checkpoint_is_asked(t);
    if (ranks_meet(t->ranks, step, &signal, &saves)) {
        (void)training_catch_up(t); /* what is kept has these steps */
        return 1;
    }
    t->stopped_by = signal;
    *ends = signal || out_of_patience(t);
    return saves && !*ends ? training_checkpoint(t) : 0;
}

int training_run(Training *t, int64_t iteration) {
    int64_t k = t->run.info.accumulate, first = iteration * k, last = t->total_steps * k;
    print_header(t);
    log_header(t);
    if (t->log.failed) return 1;
    const bool waits = t->args->trace || t->args->stats || t->args->profile;
    if (ahead_start(&t->ahead, &t->run, waits)) return 1;
    stopping_watch();
    const FeedPlan plan = {&t->train, &t->batches, t->position.seed,   run_sizes(&t->run, t->batch),
                           t->tokens, t->per_step, t->ranks->rank * k, k};
    int failed = enter(t, iteration * t->per_step);
    if (!failed) failed = feed_open(&t->feed, t->run.model, &plan, first);
    for (int64_t i = first; !failed && i < last; i++) {
        bool ends = false;
        if (i % k == 0) failed = ask_to_end(t, i / k, &ends);
        if (failed || ends) break;
        failed = train_batch(t, i);
        if (!failed) failed = between_batches(t, i);
    }
    if (!failed) failed = training_catch_up(t);
    progress_clear(&t->progress);
    show_profile(t, true);
    return failed == EVALUATION_STOPPED ? 0 : failed;
}
