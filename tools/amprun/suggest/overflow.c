/* overflow.c: see suggesting.h: each step that is not finite is traced, and the lines that mend it are added, until
 * every loss is finite. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/suggest/suggesting.h"
#include "tools/amprun/trace/tracer.h"

enum {
    ROUNDS = 4,
    TRACED_BEFORE = 31 /* steps before one that is not finite: a parameter may have become so earlier */
};

typedef struct Tracing {
    Suggesting *s;
    Tracer tracer;
    bool retakes; /* the steps of a log, by the model as it is */
    int64_t iteration;
    bool is_traced, grew;
} Tracing;

/* A log says which steps are worth it. */
static bool is_worth_tracing(const Tracing *t) {
    for (int64_t i = t->iteration; t->retakes && i <= t->iteration + TRACED_BEFORE; i++)
        if (recorded_is_bad(&t->s->recorded, i)) return true;
    return !t->retakes;
}

static int trace_before(void *user, const Run *run, const void *const *inputs, amp_sizes sizes) {
    Tracing *t = user;
    if (t->retakes && retake_before(&t->s->retake, &t->s->args, run)) return 1;
    t->is_traced = is_worth_tracing(t);
    if (t->is_traced) return tracer_before(&t->tracer, inputs, sizes);
    tracer_forget(&t->tracer);
    return 0;
}

static void add_line(Tracing *t, const Verdict *verdict, const char *path) {
    char why[LINE_TEXT];
    const OpEvidence *e = evidence_find(&t->s->evidence, path);
    snprintf(why, sizeof why, "iteration %" PRId64 ": %s, %.120s", verdict->iteration,
             amp_trace_fault_name(verdict->finding.fault), verdict->finding.path);
    if (e && e->overflow) {
        const size_t length = strlen(why);
        snprintf(why + length, sizeof why - length, "; ");
        evidence_say_overflow(e, why + length + 2, sizeof why - length - 2);
    }
    if (!lines_have(&t->s->f32, path)) t->grew |= lines_add(&t->s->f32, path, "f32", why);
}

static void note_unmended(Suggesting *s, const Verdict *v) {
    const amp_trace_finding *f = &v->finding;
    if (s->unmended[0] || v->line_count || !f->fault || v->is_repeated) return;
    snprintf(s->unmended, sizeof s->unmended, "iteration %" PRId64 ": %s, %.80s%s%.60s%s%s: %s", v->iteration,
             amp_trace_fault_name(f->fault), f->path, *f->op ? " (" : "", f->op, *f->op ? ")" : "",
             v->fp32 == ANSWER_NO ? ", and in fp32 the step is not finite either" : "", verdict_advice(v));
}

static int trace_after(void *user, const amp_step_report *report) {
    Tracing *t = user;
    Verdict verdict;
    t->iteration++;
    if (t->retakes && retake_after(&t->s->retake, report)) return 1;
    if (!t->is_traced || !tracer_after(&t->tracer, report, &verdict) || verdict.is_expected) return 0;
    note_unmended(t->s, &verdict);
    for (int i = 0; i < verdict.line_count; i++) add_line(t, &verdict, verdict.line[i]);
    return 0;
}

/* One traced training; |*grew|: there are more lines than before. */
static int train_traced(Suggesting *s, bool retakes, TrialResult *out, bool *grew) {
    Tracing tracing = {.s = s, .retakes = retakes, .iteration = 1};
    Run run = {0};
    char *bytes = NULL;
    size_t size = 0;
    int failed = trial_open(&run, &s->plan, &s->f32, s->seed, &bytes, &size);
    const TwinSource source = {
        .args = s->plan.args, .bytes = bytes, .size = size, .capacity = s->plan.batch, .seed = s->seed};
    const TrialVisitor visitor = {&tracing, trace_before, trace_after};
    if (!failed) failed = tracer_open(&tracing.tracer, &source, &run);
    if (!failed) failed = trial_run(&run, &s->plan, s->seed, &visitor, out);
    if (retakes) retake_end(&s->retake);
    tracer_close(&tracing.tracer);
    run_close(&run);
    free(bytes);
    *grew = tracing.grew;
    return failed;
}

int suggesting_find_overflow(Suggesting *s) {
    bool grew = true;
    for (int round = 0; grew && round < ROUNDS; round++) {
        if (train_traced(s, s->is_recorded && round == 0, &s->first, &grew)) return 1;
        if (round == 0) s->before = s->first;
    }
    return 0;
}
