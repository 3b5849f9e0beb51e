/* train.c: amprun train: what it reads and writes, and what is kept however training ends. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "amp/train.h"
#include "amp/weights.h"
#include "base/file.h"
#include "tools/amprun/train/training.h"
#include "tools/amprun/weights.h"
#include "tools/outputs.h"

enum { SIGNALLED = 128 };
#define DEFAULT_SECONDS 300.0

/* ---- the files --------------------------------------------------------------------------------------------------- */

/* The schema of a table goes beside the parameters (saving_schema). */
static void output_schema(Outputs *files, const char *option, const char *path, char beside[AMP_FILE_PATH]) {
    struct stat st;
    if (!path || (!stat(path, &st) && !S_ISREG(st.st_mode))) return;
    snprintf(beside, AMP_FILE_PATH, "%s.schema", path);
    outputs_output(files, option, beside, OUTPUT_SCHEMA);
}

/* All that is written is compared with all that is read, and tried, before anything is trained.  --checkpoint may be
 * the file of --resume: it is read before, and replaced as a whole. */
static int check_files(const Args *a) {
    Outputs files = {.tool = "amprun", .report = report_text, .force = a->force};
    WeightInputs weights;
    char data[8][AMP_FILE_PATH], eval[8][AMP_FILE_PATH], save[AMP_FILE_PATH], best[AMP_FILE_PATH];
    outputs_input(&files, "the model", a->model);
    weights_inputs(&weights, &files, a);
    outputs_input_but(&files, "--resume", a->resume, "--checkpoint");
    for (int i = 0; i < 8 && data_file(a->data, i, data[i], sizeof data[i]); i++)
        outputs_input(&files, "--data", data[i]);
    for (int i = 0; a->eval_data && i < 8 && data_file(a->eval_data, i, eval[i], sizeof eval[i]); i++)
        outputs_input(&files, "--eval-data", eval[i]);
    outputs_output(&files, "--save", a->save, OUTPUT_PARAMS);
    outputs_output(&files, "--save-best", a->best_file, OUTPUT_PARAMS);
    outputs_output(&files, "--checkpoint", a->checkpoint, OUTPUT_CHECKPOINT);
    if (data_is_table(a->data)) {
        output_schema(&files, "--save", a->save, save);
        output_schema(&files, "--save-best", a->best_file, best);
    }
    outputs_output(&files, "--log", a->log, OUTPUT_LOG);
    outputs_folder(&files, "--tensorboard", a->tensorboard);
    outputs_output(&files, "--profile", a->profile, OUTPUT_TRACE);
    return weights_outputs_check(&weights, &files);
}

/* --log and --tensorboard. */
static int open_logs(Training *t, int64_t iteration) {
    const Args *a = t->args;
    if (a->resume && !t->known) t->position.evaluated = iteration * t->per_step / t->batches.count;
    if (a->tensorboard && events_open(&t->events, a->tensorboard, iteration + 1)) return 1;
    if (!a->log) return 0;
    return a->resume ? log_go_on(&t->log, a->log, iteration, t->position.evaluated) : log_open(&t->log, a->log);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

/* Parameters that are not finite replace nothing: what is there may be the last good state. */
static int check_finite(Training *t, const Run *kept, const char *option, const char *path) {
    int64_t damaged = t->args->allowed & ALLOW_NAN ? 0 : saving_damage(kept, &t->infinite);
    if (!damaged) return 0;
    return report_text("%s %s: not written, as %" PRId64
                       " numbers of the parameters are not finite; --allow nan writes "
                       "them all the same",
                       option, path, damaged);
}

/* The file: of rank 0, and where ranks have shares of what it holds, of each that sends its share; else NULL. */
static const char *checkpoint_file(const Training *t) {
    const bool sends = t->ranks->rank && amp_session_has_shares(t->run.session);
    return sends ? t->args->sends_checkpoint : t->args->checkpoint;
}

static int write_checkpoint(Training *t) {
    const char *path = checkpoint_file(t);
    if (check_finite(t, &t->run, "--checkpoint", path)) return 1;
    log_sync(&t->log); /* never older than the checkpoint */
    t->saved = amp_seconds();
    t->unsaved = 0;
    return saving_checkpoint(&t->run, path, &t->position);
}

static bool is_due_by_time(const Training *t) {
    const double seconds = t->args->every_seconds > 0 ? t->args->every_seconds : DEFAULT_SECONDS;
    return !t->args->every_steps && amp_seconds() - t->saved >= seconds;
}

/* By the clock, which each rank reads differently: rank 0 asks the others when ranks meet. */
bool training_checkpoint_is_asked(const Training *t) {
    return amp_session_has_shares(t->run.session) && checkpoint_file(t) && is_due_by_time(t);
}

int training_checkpoint(Training *t) {
    int failed = training_catch_up(t);
    return failed ? failed : write_checkpoint(t);
}

int training_checkpoint_if_due(Training *t) {
    const Args *a = t->args;
    t->unsaved++;
    if (!checkpoint_file(t)) return 0;
    const bool by_time = !amp_session_has_shares(t->run.session) && is_due_by_time(t);
    const bool due = a->every_steps ? t->unsaved >= a->every_steps : by_time;
    return due ? training_checkpoint(t) : 0;
}

/* However training ended.  Each file is tried whatever became of the other. */
static int keep(Training *t) {
    const Args *a = t->args;
    const Run *kept = training_kept(t);
    int failed = !kept;
    if (kept && a->save)
        failed |= check_finite(t, kept, "--save", a->save) || saving_params(kept, a, "--save", a->save) ||
                  saving_schema(t->position.schema, "--save", a->save);
    if (checkpoint_file(t)) failed |= write_checkpoint(t);
    return failed;
}

/* A step that failed halfway leaves nothing to read, nor does a device that has failed.  What ranks had under way on
 * their devices when one failed was ended, and with it what weights were made of it; and of shares, those of the others
 * do not come any more.  Setting the scaler as it is waits for what was started, which giving up would end. */
static bool has_whole_step(const Training *t) {
    amp_scaler_state scaler;
    int64_t count;
    if (amp_session_has_shares(t->run.session)) return false;
    return !amp_session_get_scaler(t->run.session, &scaler, NULL) &&
           !amp_params_count_nonfinite(t->run.params, &count, NULL, NULL) &&
           !amp_session_set_scaler(t->run.session, &scaler, NULL);
}

static int keep_nothing(const Training *t) {
    if (t->args->save || t->args->checkpoint)
        report_text("--save and --checkpoint were not written: %s; go on from the last checkpoint",
                    amp_session_has_shares(t->run.session)
                        ? "other ranks have shares of the moments, and may have updated their weights"
                        : "a step was under way on the devices, so the weights are of no whole step");
    return 1;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* |why|: "SIGINT". */
static void report_stop(const Training *t, const char *why, int64_t iteration) {
    const Args *a = t->args;
    if (t->ranks->rank) return; /* rank 0 has kept it, and says so */
    char kept[2 * AMP_FILE_PATH] = "; nothing was asked to be kept (--save, --checkpoint)";
    if (a->checkpoint) snprintf(kept, sizeof kept, "; go on with --resume %s", a->checkpoint);
    else if (a->save) snprintf(kept, sizeof kept, "; its parameters are in %s", a->save);
    report_text("%s: training ended after step %" PRId64 " of %" PRId64 "%s", why, iteration, t->total_steps, kept);
}

static int nothing_left(Training *t, int64_t iteration) {
    progress_print(&t->progress, "nothing is left to train: %s is at step %" PRId64 " of %" PRId64 "\n",
                   t->args->resume ? t->args->resume : "training", iteration, t->total_steps);
    return keep(t);
}

/* What decides which samples a rank takes, and when ranks meet. */
static int agree(const Training *t, int64_t iteration) {
    const RankOption options[] = {{"number of samples in --data", t->train.count},
                                  {"number of samples to evaluate on", t->has_test ? t->test.count : 0},
                                  {"--seed", (int64_t)t->position.seed},
                                  {"--batch", t->batch},
                                  {"--tokens", t->tokens},
                                  {"--length", t->run.length},
                                  {"number of steps (--steps, --epochs)", t->total_steps},
                                  {"step to go on from (--resume)", iteration},
                                  {"--patience", t->args->patience}};
    return ranks_agree(t->ranks, options, sizeof options / sizeof *options);
}

static int run(Training *t) {
    amp_error err = {0};
    amp_scaler_state scaler;
    const Args *a = t->args;
    FILE *to = a->log && !strcmp(a->log, "-") ? stderr : stdout;
    if (amp_session_get_scaler(t->run.session, &scaler, &err)) return report(&err);
    const int wrong = profile_open(&t->profile, a, &t->run, t->total_steps - scaler.iteration, false);
    if (wrong) return wrong;
    if (agree(t, scaler.iteration)) return 1;
    progress_start(&t->progress, a->quiet ? NULL : to);
    if (scaler.iteration >= t->total_steps) return nothing_left(t, scaler.iteration); /* may be too large to multiply */
    if (open_logs(t, scaler.iteration)) return 1;
    t->saved = amp_seconds();
    int failed = training_run(t, scaler.iteration);
    const bool whole = !failed || has_whole_step(t);
    if (failed) ranks_give_up(t->ranks);
    ranks_does(t->ranks, AMP_RANK_SAVES);
    const int signal = t->ranks->count > 1 ? t->stopped_by : stopping_signal();
    bool kept = whole ? !keep(t) : !keep_nothing(t);
    failed |= log_close(&t->log) | events_close(&t->events) | t->profile.failed;
    if (!whole) return 1;
    if (amp_session_get_scaler(t->run.session, &scaler, &err)) return report(&err);
    /* Where a report ended it, steps may have been started after that. */
    if (failed && kept) report_stop(t, "after this error", t->ahead.count ? t->last.iteration : scaler.iteration);
    if (failed || !kept) return 1;
    if (!signal || scaler.iteration >= t->total_steps) return 0;
    report_stop(t, stopping_name(signal), scaler.iteration);
    return SIGNALLED + signal;
}

static int train_on(Ranks *ranks, const Args *a) {
    const Args mine = ranks_args(ranks, a);
    Training t = {.args = &mine, .ranks = ranks};
    int failed = check_files(&mine);
    if (!failed) failed = training_open(&t);
    if (!failed) failed = weights_check_like(&t.run, &mine);
    if (!failed) failed = run(&t);
    if (failed && failed < SIGNALLED) ranks_end(ranks, failed);
    training_close(&t);
    return failed;
}

int command_train(const Args *a) {
    Ranks ranks;
    int failed = ranks_open(&ranks, a);
    if (!failed) failed = train_on(&ranks, a);
    ranks_close(&ranks);
    return failed;
}
