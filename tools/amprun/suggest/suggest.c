/* suggest.c: amprun suggest: lines for a model's precision block, found and proven by training it.
 *
 *     train K steps, traced -> lines that leave in f32 what overflows -> train again, until every loss is finite
 *     look at some of those steps without fusion -> lines that lower what f16 would hold -> train with them
 *
 * A line that lowers an op stays where the loss differs by no more than another seed's does.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/amprun/suggest/evidence.h"
#include "tools/amprun/suggest/trial.h"
#include "tools/amprun/trace/tracer.h"
#include "tools/temporary.h"

enum { DEFAULT_STEPS = 100, ROUNDS = 4, LOOKS = 4, TRIALS_MOST = 16 };
/* Of the loss: a smaller difference is none, whatever seeds say. */
#define SMALLEST_NOISE 0.005

typedef struct Suggesting {
    TrialPlan plan;
    Dataset data;
    uint64_t seed;
    Lines f32, low;
    TrialResult before, first, other, last; /* as the model is; with f32 lines, and by another seed; with all lines */
    Evidence evidence;
    double noise;
    int trials;
} Suggesting;

/* ---- what overflows ---------------------------------------------------------------------------------------------- */

typedef struct Tracing {
    Tracer tracer;
    Lines *lines;
    bool grew;
} Tracing;

static int trace_before(void *user, const Run *run, const void *const *inputs, int64_t n) {
    (void)run;
    return tracer_before(&((Tracing *)user)->tracer, inputs, n);
}

static int trace_after(void *user, const amp_step_report *report) {
    Tracing *t = user;
    Verdict verdict;
    char why[LINE_TEXT];
    if (!tracer_after(&t->tracer, report, &verdict) || verdict.is_expected) return 0;
    for (int i = 0; i < verdict.line_count; i++) {
        snprintf(why, sizeof why, "iteration %" PRId64 ": %s, %s", verdict.iteration,
                 amp_trace_fault_name(verdict.finding.fault), verdict.finding.path);
        if (!lines_have(t->lines, verdict.line[i])) t->grew |= lines_add(t->lines, verdict.line[i], "f32", why);
    }
    return 0;
}

/* One traced training; |*grew|: there are more lines than before. */
static int train_traced(Suggesting *s, TrialResult *out, bool *grew) {
    Tracing tracing = {.lines = &s->f32};
    Run run = {0};
    char *bytes = NULL;
    size_t size = 0;
    int failed = trial_open(&run, &s->plan, &s->f32, s->seed, &bytes, &size);
    const TwinSource source = {
        .args = s->plan.args, .bytes = bytes, .size = size, .capacity = s->plan.batch, .seed = s->seed};
    const TrialVisitor visitor = {&tracing, trace_before, trace_after};
    if (!failed) failed = tracer_open(&tracing.tracer, &source, &run);
    if (!failed) failed = trial_run(&run, &s->plan, s->seed, &visitor, out);
    tracer_close(&tracing.tracer);
    run_close(&run);
    free(bytes);
    *grew = tracing.grew;
    return failed;
}

static int find_f32(Suggesting *s) {
    bool grew = true;
    for (int round = 0; grew && round < ROUNDS; round++) {
        if (train_traced(s, &s->first, &grew)) return 1;
        if (round == 0) s->before = s->first;
    }
    return 0;
}

/* ---- what is safe to lower --------------------------------------------------------------------------------------- */

static int train(Suggesting *s, const Lines *lines, uint64_t seed, TrialResult *out) {
    Run run = {0};
    int failed = trial_open(&run, &s->plan, lines, seed, NULL, &(size_t){0});
    if (!failed) failed = trial_run(&run, &s->plan, seed, NULL, out);
    run_close(&run);
    return failed;
}

typedef struct Look { /* at a step */
    Suggesting *s;
    Twin twin;
    char checkpoint[320];
    Batches batches;
    int64_t step;
    bool is_due;
} Look;

static int look_before(void *user, const Run *run, const void *const *inputs, int64_t n) {
    Look *l = user;
    amp_error err = {0};
    const int64_t between = l->s->plan.steps > LOOKS ? l->s->plan.steps / LOOKS : 1;
    l->is_due = l->step % between == between - 1;
    if (!l->is_due) return 0;
    if (!l->batches.count && amp_checkpoint_save(run->session, l->checkpoint, NULL, &err)) return report(&err);
    return batches_add(&l->batches, inputs, n, &err) ? report(&err) : 0;
}

static int look_after(void *user, const amp_step_report *report_of) {
    Look *l = user;
    amp_error err = {0};
    TwinStep step;
    (void)report_of;
    l->step++;
    if (!l->is_due) return 0;
    const TwinState state = {.checkpoint = l->checkpoint};
    amp_status status = twin_step(&l->twin, &state, &l->batches.step[0], &step, &err);
    if (!status) status = evidence_add(&l->s->evidence, &l->twin, &err);
    batches_clear(&l->batches);
    return status ? report(&err) : 0;
}

/* Leaves what ops read and made, and proposes what is safe. */
static int look(Suggesting *s, Lines *proposed) {
    amp_error err = {0};
    Look l = {.s = s};
    Run run = {0};
    char *bytes = NULL;
    size_t size = 0;
    TrialResult ignored;
    snprintf(l.checkpoint, sizeof l.checkpoint, "%.200s/amprun-suggest-%ld", temporary_folder(), (long)getpid());
    int failed = trial_open(&run, &s->plan, &s->f32, s->seed, &bytes, &size);
    const TwinSource source = {
        .args = s->plan.args, .bytes = bytes, .size = size, .capacity = s->plan.batch, .seed = s->seed};
    if (!failed) l.batches = batches_new(run.model);
    if (!failed && twin_open(&l.twin, &source, &(TwinForm){0}, &err)) failed = report(&err);
    const TrialVisitor visitor = {&l, look_before, look_after};
    if (!failed) failed = trial_run(&run, &s->plan, s->seed, &visitor, &ignored);
    if (!failed) evidence_propose(&s->evidence, run.model, &s->f32, proposed);
    (void)unlink(l.checkpoint);
    batches_free(&l.batches);
    twin_close(&l.twin);
    run_close(&run);
    free(bytes);
    return failed;
}

static bool is_within_noise(const Suggesting *s, const TrialResult *r) {
    return r->is_finite && fabs(r->loss - s->first.loss) <= s->noise;
}

static void append(Lines *to, const Lines *from, int first, int count) {
    for (int i = first; i < first + count && to->count < LINES_MOST; i++) to->line[to->count++] = from->line[i];
}

/* Keeps those of |proposed| with which training is as before: all at once, else by halves. */
static int keep_harmless(Suggesting *s, const Lines *proposed, int first, int count) {
    Lines lines = s->f32;
    TrialResult result;
    if (!count || s->trials++ >= TRIALS_MOST) return 0;
    append(&lines, &s->low, 0, s->low.count);
    append(&lines, proposed, first, count);
    if (train(s, &lines, s->seed, &result)) return 1;
    if (is_within_noise(s, &result)) {
        append(&s->low, proposed, first, count);
        s->last = result;
        return 0;
    }
    if (count == 1) return 0;
    return keep_harmless(s, proposed, first, count / 2) ||
           keep_harmless(s, proposed, first + count / 2, count - count / 2);
}

static int find_low(Suggesting *s) {
    Lines proposed = {.count = 0};
    if (!s->first.is_finite) return 0;
    if (look(s, &proposed) || !proposed.count) return proposed.count != 0;
    if (train(s, &s->f32, s->seed + 1, &s->other)) return 1;
    s->noise = fmax(fabs(s->other.loss - s->first.loss), SMALLEST_NOISE * fabs(s->first.loss));
    return keep_harmless(s, &proposed, 0, proposed.count);
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static void print_lines(const Lines *lines) {
    for (int i = 0; i < lines->count; i++)
        printf("    \"%s\": %s   # %s\n", lines->line[i].path, lines->line[i].word, lines->line[i].why);
}

static void print_trial(const char *what, const TrialResult *r) {
    if (!r->is_finite) printf("%s: not every loss is finite, %" PRId64 " steps skipped\n", what, r->skipped);
    else printf("%s: every loss is finite, %.6g at the end, %" PRId64 " steps skipped\n", what, r->loss, r->skipped);
}

static void print_result(const Suggesting *s) {
    printf("%s: %" PRId64 " steps of %" PRId64 " samples\n", s->plan.args->model, s->plan.steps, s->plan.batch);
    print_trial("as it is", &s->before);
    if (s->f32.count) {
        printf("left in f32, because it overflows\n");
        print_lines(&s->f32);
        print_trial("with these lines", &s->first);
    }
    if (s->low.count) {
        printf("safe in the lower type\n");
        print_lines(&s->low);
        print_trial("with all lines", &s->last);
        printf("another seed ends at %.6g: the difference is within %.3g\n", s->other.loss, s->noise);
    }
    if (!s->f32.count && !s->low.count) printf("no line is proposed\n");
}

static void json_lines(const char *key, const Lines *lines) {
    printf(", \"%s\": [", key);
    for (int i = 0; i < lines->count; i++) {
        printf("%s{\"path\": ", i ? ", " : "");
        json_text(stdout, lines->line[i].path);
        printf(", \"because\": ");
        json_text(stdout, lines->line[i].why);
        printf("}");
    }
    printf("]");
}

static void json_trial(const char *key, const TrialResult *r) {
    printf(", \"%s\": {\"finite\": %s, ", key, r->is_finite ? "true" : "false");
    json_number(stdout, "loss", r->loss);
    printf(", \"skipped\": %" PRId64 "}", r->skipped);
}

static void json_result(const Suggesting *s) {
    printf("{\"steps\": %" PRId64 ", \"batch\": %" PRId64, s->plan.steps, s->plan.batch);
    json_lines("f32", &s->f32);
    json_lines("low", &s->low);
    json_trial("before", &s->before);
    json_trial("with_f32", &s->first);
    if (s->low.count) json_trial("with_all", &s->last);
    printf(", ");
    json_number(stdout, "noise", s->noise);
    printf("}\n");
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int open_data(Suggesting *s, const Args *a) {
    amp_error err = {0};
    amp_model *model;
    amp_model_info info;
    const DataOptions options = {.whole = true};
    if (amp_model_load(a->model, NULL, &model, &err)) return report(&err);
    amp_model_get_info(model, &info);
    int failed = info.can_train ? data_open(&s->data, a->data, PART_TRAIN, model, info.input_count, &options)
                                : report_text("%s: has no train block; write one in its model file", a->model);
    s->plan.batches = failed ? 0 : (s->data.count + s->plan.batch - 1) / s->plan.batch;
    amp_model_release(model);
    return failed;
}

int command_suggest(const Args *a) {
    Suggesting *s = calloc(1, sizeof *s);
    if (!s) return report_text("%s: no memory", a->model);
    if (a->device && !strcmp(a->device, "null")) {
        free(s);
        return report_text("--device null: computes nothing to suggest by") + 1;
    }
    s->plan = (TrialPlan){.args = a,
                          .data = &s->data,
                          .batch = a->batch ? a->batch : DEFAULT_BATCH,
                          .steps = a->steps ? a->steps : DEFAULT_STEPS};
    s->seed = a->seed;
    int failed = open_data(s, a) || find_f32(s) || find_low(s);
    if (!failed && a->as_json) json_result(s);
    else if (!failed) print_result(s);
    evidence_free(&s->evidence);
    data_close(&s->data);
    free(s);
    return failed;
}
