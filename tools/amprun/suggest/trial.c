/* trial.c: see suggesting.h. */
#include "tools/amprun/suggest/suggesting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/train/feed.h"
#include "tools/amprun/weights.h"

/* ---- lines ------------------------------------------------------------------------------------------------------- */

bool lines_have(const Lines *l, const char *path) {
    for (int i = 0; i < l->count; i++)
        if (!strcmp(l->line[i].path, path)) return true;
    return false;
}

bool lines_add(Lines *l, const char *path, const char *word, const char *why) {
    if (l->count == LINES_MOST) return false;
    Line *line = &l->line[l->count++];
    snprintf(line->path, sizeof line->path, "%s", path);
    snprintf(line->why, sizeof line->why, "%s", why);
    line->word = word;
    return true;
}

void lines_append(Lines *to, const Lines *from, int first, int count) {
    for (int i = first; i < first + count && to->count < LINES_MOST; i++) to->line[to->count++] = from->line[i];
}

void lines_overrides(const Lines *l, amp_override *out) {
    for (int i = 0; i < l->count; i++)
        out[i] = (amp_override){.path = l->line[i].path, .word = l->line[i].word, .because = l->line[i].why};
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static amp_status compile(const TrialPlan *plan, const Lines *lines, amp_compile_result **out, amp_error *err) {
    amp_override overrides[LINES_MOST];
    lines_overrides(lines, overrides);
    const amp_compile_options options = {.struct_size = sizeof options,
                                         .name = plan->args->model,
                                         .policy = plan->policy,
                                         .overrides = overrides,
                                         .override_count = (size_t)lines->count,
                                         .isa = plan->args->cpu.isa ? plan->args->cpu.isa : "native",
                                         .target = run_target(plan->args)};
    return amp_compile(&options, out, err);
}

static int open_run(Run *run, const TrialPlan *plan, const void *bytes, size_t size, uint64_t seed) {
    amp_error err = {0};
    const Args *a = plan->args;
    const amp_params_options params = {.struct_size = sizeof params, .seed = seed};
    const amp_session_options session = run_options_again(a, plan->batch, seed);
    const amp_model_options from = {.struct_size = sizeof from, .bytes = bytes, .size = size};
    if (amp_model_load(a->model, &from, &run->model, &err)) return report(&err);
    amp_model_get_info(run->model, &run->info);
    if (amp_params_create(run->model, &params, &run->params, &err)) return report(&err);
    if (a->weights && weights_load(run, a, false)) return 1;
    return amp_session_create(run->model, run->params, &session, &run->session, &err) ? report(&err) : 0;
}

/* A copy in |*bytes|, where it is asked for. */
static int keep_copy(const TrialPlan *plan, const void *data, size_t size, char **bytes) {
    if (!bytes) return 0;
    *bytes = malloc(size);
    if (!*bytes) return report_text("%s: no memory for a copy", plan->args->model);
    memcpy(*bytes, data, size);
    return 0;
}

/* The model as it is, with the very kernels that a training has. */
static int open_as_is(Run *run, const TrialPlan *plan, uint64_t seed, char **bytes, size_t *size) {
    amp_error err = {0};
    Args args = *plan->args;
    char *data = NULL;
    args.seed = seed;
    args.verbose = false;
    if (run_open(run, &args, plan->batch, NULL)) return 1;
    if (!bytes) return 0;
    if (amp_file_read_regular(args.model, 0, NULL, &data, size, &err)) return report(&err);
    const int failed = keep_copy(plan, data, *size, bytes);
    amp_free(NULL, data, *size + 1);
    return failed;
}

int trial_open(Run *run, const TrialPlan *plan, const Lines *lines, uint64_t seed, char **bytes, size_t *size) {
    amp_error err = {0};
    amp_compile_result *compiled = NULL;
    if (plan->as_is && !lines->count) return open_as_is(run, plan, seed, bytes, size);
    if (compile(plan, lines, &compiled, &err)) return report(&err);
    const void *made = amp_compile_result_data(compiled, size);
    int failed = open_run(run, plan, made, *size, seed);
    failed = failed || keep_copy(plan, made, *size, bytes);
    amp_compile_result_release(compiled);
    return failed;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int run_step(const Run *run, Feed *feed, int64_t step, const TrialVisitor *visitor, amp_step_report *report_to) {
    amp_error err = {0};
    for (int64_t micro = 0; micro < run->info.accumulate; micro++) {
        const void *const *inputs;
        amp_sizes sizes;
        if (amp_dataset_next(feed->filled, &inputs, &sizes, &err)) return report(&err);
        if (visitor && visitor->before(visitor->user, run, inputs, sizes)) return 1;
        const amp_status status = amp_step(run->session, inputs, sizes, report_to, &err);
        if (status && status != AMP_SCALE_AT_FLOOR) return feed_report(feed, step * run->info.accumulate + micro, &err);
    }
    return visitor ? visitor->after(visitor->user, report_to) : 0;
}

int trial_run(const Run *run, const TrialPlan *plan, uint64_t seed, const TrialVisitor *visitor, TrialResult *out) {
    const FeedPlan feeding = {plan->data,         &plan->batches, seed,    {plan->batch, plan->length},
                              plan->args->tokens, .step = 1,      .own = 1};
    const int64_t tail = plan->steps - plan->steps / 4;
    Feed feed = {0};
    int64_t counted = 0;
    *out = (TrialResult){.is_finite = true};
    int failed = feed_open(&feed, run->model, &feeding, 0);
    for (int64_t i = 0; !failed && i < plan->steps; i++) {
        amp_step_report report_of;
        failed = run_step(run, &feed, i, visitor, &report_of);
        if (failed) break;
        out->is_finite = out->is_finite && isfinite(report_of.loss);
        out->skipped += report_of.skipped != 0;
        if (i == 0) out->begin = report_of.loss;
        if (i < tail && plan->steps >= 4) continue;
        out->loss += report_of.loss;
        counted++;
    }
    if (counted) out->loss /= (double)counted;
    feed_close(&feed);
    return failed;
}
