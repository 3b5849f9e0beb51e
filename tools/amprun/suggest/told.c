/* told.c: see suggesting.h: what was found, for people and for programs. */
#include <inttypes.h>

#include "tools/amprun/suggest/suggesting.h"

static void print_lines(const Lines *lines) {
    for (int i = 0; i < lines->count; i++)
        printf("    \"%s\": %s   # %s\n", lines->line[i].path, lines->line[i].word, lines->line[i].why);
}

static void print_trial(const char *what, const TrialResult *r) {
    if (!r->is_finite) printf("%s: not every loss is finite, %" PRId64 " steps skipped\n", what, r->skipped);
    else printf("%s: every loss is finite, %.6g at the end, %" PRId64 " steps skipped\n", what, r->loss, r->skipped);
}

/* Whether the steps of the log are the steps that were taken. */
static void print_retaken(const Suggesting *s) {
    const Recorded *r = &s->recorded;
    const Retake *taken = &s->retake;
    printf("%s: %s, %" PRId64 " of its %" PRId64 " steps of %" PRId64 " samples\n", r->log, s->args.model,
           s->plan.steps, r->count, s->plan.batch);
    if (!taken->differs_at) {
        printf("taken again, they give what the log says, bit for bit\n");
        return;
    }
    const RecordedStep *logged = &r->step[taken->differs_at - 1];
    printf("taken again, iteration %" PRId64 " has the loss %.9g at scale %.9g, and the log says %.9g at %.9g: another "
           "model, other data, options or machine; what follows is of the steps as they were taken here\n",
           taken->differs_at, taken->loss, taken->scale, logged->loss, logged->scale);
}

/* What was recorded after the last step that is taken again. */
static void print_left(const Suggesting *s) {
    int64_t at = s->plan.steps + 1;
    while (at <= s->recorded.count && !recorded_is_bad(&s->recorded, at)) at++;
    if (at <= s->recorded.count)
        printf("iteration %" PRId64 ", which was not finite or skipped, is not among them; --steps %" PRId64
               " takes it, too\n",
               at, at);
}

void suggesting_print(const Suggesting *s) {
    if (s->is_recorded) print_retaken(s), print_left(s);
    else printf("%s: %" PRId64 " steps of %" PRId64 " samples\n", s->plan.args->model, s->plan.steps, s->plan.batch);
    print_trial("as it is", &s->before);
    if (s->has_fp32) print_trial("in fp32", &s->fp32);
    if (s->before.is_finite && suggesting_is_far(s, &s->before))
        printf("the loss is far above the one in fp32, though it is finite\n");
    if (s->f32.count) {
        printf("left in f32, because the lower type does not hold it\n");
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
    if (s->first.is_finite && suggesting_is_far(s, &s->first))
        printf("no line is known that brings the loss near the one in fp32\n");
    if (s->unmended[0] && !s->first.is_finite) printf("no line mends %s\n", s->unmended);
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

static void json_retaken(const Suggesting *s) {
    const Retake *taken = &s->retake;
    printf(", \"log\": {\"steps\": %" PRId64 ", \"same\": %s", s->recorded.count, taken->differs_at ? "false" : "true");
    if (taken->differs_at) {
        printf(", \"differs_at\": %" PRId64 ", ", taken->differs_at);
        json_number(stdout, "loss", taken->loss);
        json_more(stdout, "logged", s->recorded.step[taken->differs_at - 1].loss);
    }
    printf("}");
}

void suggesting_json(const Suggesting *s) {
    printf("{\"steps\": %" PRId64 ", \"batch\": %" PRId64, s->plan.steps, s->plan.batch);
    if (s->is_recorded) json_retaken(s);
    json_lines("f32", &s->f32);
    json_lines("low", &s->low);
    json_trial("before", &s->before);
    if (s->has_fp32) json_trial("fp32", &s->fp32);
    json_trial("with_f32", &s->first);
    if (s->low.count) json_trial("with_all", &s->last);
    json_more(stdout, "noise", s->noise);
    printf("}\n");
}
