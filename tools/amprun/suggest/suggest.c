/* suggest.c: amprun suggest: lines for a model's precision block, found and proven by training it.
 *
 *     train K steps, traced -> lines that leave in f32 what overflows -> train again, until every loss is finite
 *     look at some of those steps without fusion -> lines that lower what f16 would hold -> train with them
 *
 *     train the same steps in fp32: where the loss ends far above that, what differs first is left in f32, too
 *
 * With a log (--stats) the steps are those that it has, and the first training is that one again; its statistics add
 * what was infinite though the loss was finite, and say more steps than are looked at.
 * A line that lowers an op stays where the loss differs by no more than another seed's does.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/suggest/suggesting.h"

enum { DEFAULT_STEPS = 100, RECORDED_STEPS = 1000, TRIALS_MOST = 16 };
/* Of the loss: a smaller difference is none, whatever seeds say. */
#define SMALLEST_NOISE 0.005

/* ---- trainings --------------------------------------------------------------------------------------------------- */

int suggesting_train(Suggesting *s, const Lines *lines, uint64_t seed, TrialResult *out) {
    Run run = {0};
    int failed = trial_open(&run, &s->plan, lines, seed, NULL, &(size_t){0});
    if (!failed) failed = trial_run(&run, &s->plan, seed, NULL, out);
    run_close(&run);
    return failed;
}

int suggesting_find_noise(Suggesting *s) {
    if (s->has_noise) return 0;
    if (suggesting_train(s, &s->f32, s->seed + 1, &s->other)) return 1;
    s->has_noise = true;
    s->noise = fmax(fabs(s->other.loss - s->first.loss), SMALLEST_NOISE * fabs(s->first.loss));
    return 0;
}

/* ---- what is safe to lower --------------------------------------------------------------------------------------- */

static bool is_within_noise(const Suggesting *s, const TrialResult *r) {
    return r->is_finite && fabs(r->loss - s->first.loss) <= s->noise;
}

/* Keeps those of |proposed| with which training is as before: all at once, else by halves. */
static int keep_harmless(Suggesting *s, const Lines *proposed, int first, int count) {
    Lines lines = s->f32;
    TrialResult result;
    if (!count || s->trials++ >= TRIALS_MOST) return 0;
    lines_append(&lines, &s->low, 0, s->low.count);
    lines_append(&lines, proposed, first, count);
    if (suggesting_train(s, &lines, s->seed, &result)) return 1;
    if (is_within_noise(s, &result)) {
        lines_append(&s->low, proposed, first, count);
        s->last = result;
        return 0;
    }
    if (count == 1) return 0;
    return keep_harmless(s, proposed, first, count / 2) ||
           keep_harmless(s, proposed, first + count / 2, count - count / 2);
}

static int find_low(Suggesting *s) {
    Lines proposed = {.count = 0};
    if (!s->first.is_finite || suggesting_is_far(s, &s->first)) return 0;
    if (suggesting_look(s, &s->f32, &s->evidence, &proposed)) return 1;
    if (!proposed.count) return 0;
    return suggesting_find_noise(s) || keep_harmless(s, &proposed, 0, proposed.count);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int check_samples(const Suggesting *s, bool is_same_data) {
    const Recorded *r = &s->recorded;
    if (!s->is_recorded || !is_same_data || !r->samples || r->samples == s->data.count) return 0;
    return report_text("%s: has %" PRId64 " samples to train on, and had %" PRId64 " when %s was written; put the data "
                       "back as they were, or give --data SPEC",
                       s->args.data, s->data.count, r->samples, r->log);
}

/* What --eval-split and --eval-data of a log leave to train on; without them all of it is. */
static int open_samples(Suggesting *s, const amp_model_info *info) {
    const Args *a = &s->args;
    const bool itself = data_splits_itself(a->data), is_split = a->eval_split > 0 && !a->eval_data;
    const DataOptions options = {.whole = !s->is_recorded || a->eval_data, .held = itself ? a->eval_split : 0};
    if (data_open(&s->data, a->data, PART_TRAIN, s->model, (amp_sizes){1, s->plan.length}, info->input_count, &options))
        return 1;
    if (!is_split || itself) return 0;
    const int64_t held = data_held_out(&s->data, a->eval_split);
    return held > 0 && held < s->data.count ? data_split(&s->data, held, &s->held) : 0;
}

static int open_data(Suggesting *s, bool is_same_data) {
    amp_error err = {0};
    amp_model_info info;
    if (amp_model_load(s->args.model, NULL, &s->model, &err)) return report(&err);
    amp_model_get_info(s->model, &info);
    s->plan.length = s->args.length ? s->args.length : info.length_most;
    if (!info.can_train) return report_text("%s: has no train block; write one in its model file", s->args.model);
    if (open_samples(s, &info) || check_samples(s, is_same_data)) return 1;
    const BatchLimits limits = {s->plan.batch, s->args.tokens, info.least_batch};
    return batch_list_cut(&s->plan.batches, &s->data, &limits);
}

/* The steps of a log, as many as it has. */
static int64_t steps_of(const Suggesting *s) {
    const int64_t asked = s->args.steps, recorded = s->recorded.count;
    if (!s->is_recorded) return asked ? asked : DEFAULT_STEPS;
    const int64_t most = asked ? asked : RECORDED_STEPS;
    return recorded < most ? recorded : most;
}

static int run(Suggesting *s, const Args *a) {
    s->args = *a;
    if (a->stats_log) {
        s->is_recorded = true;
        int failed = recorded_open(&s->recorded, a->stats_log);
        if (!failed) failed = recorded_arguments(&s->recorded, &s->args);
        if (failed) return failed;
    }
    if (s->args.device && !strcmp(s->args.device, "null"))
        return report_text("--device null: computes nothing to suggest by") + 1;
    s->seed = s->args.seed;
    s->plan = (TrialPlan){.args = &s->args,
                          .data = &s->data,
                          .batch = s->args.batch ? s->args.batch : DEFAULT_BATCH,
                          .steps = steps_of(s),
                          .as_is = s->is_recorded};
    s->retake = (Retake){.recorded = &s->recorded, .evidence = &s->evidence};
    int failed = open_data(s, !a->data) || suggesting_find_overflow(s) || suggesting_train_fp32(s);
    if (!failed && s->is_recorded) failed = suggesting_find_recorded(s);
    return failed || suggesting_find_difference(s) || find_low(s);
}

int command_suggest(const Args *a) {
    if (!a->model && !a->stats_log) return report_text("suggest: no model was given; see amprun --help") + 1;
    Suggesting *s = calloc(1, sizeof *s);
    if (!s) return report_text("suggest: no memory");
    const int failed = run(s, a);
    if (!failed && a->as_json) suggesting_json(s);
    else if (!failed) suggesting_print(s);
    evidence_free(&s->evidence);
    recorded_close(&s->recorded);
    batch_list_free(&s->plan.batches);
    data_close(&s->held);
    data_close(&s->data);
    amp_model_release(s->model);
    free(s);
    return failed;
}
