/* recorded_lines.c: see suggesting.h.  An infinity that a later op swallows, as sigmoid does, makes no step fail, and a
 * number that became zero none either: statistics alone show them.  A line has to prove itself: what was infinite is
 * finite with it, at the same iteration, and the loss is not worse; what was too small has to gain more than the noise
 * of seeds. */
#include <math.h>

#include "tools/amprun/suggest/suggesting.h"

/* Masks write infinities in any type. */
static int drop_infinite(Suggesting *s, Lines *lines) {
    Evidence seen = {0};
    Lines all = s->f32, left = {.count = 0};
    lines_append(&all, lines, 0, lines->count);
    const int failed = suggesting_look(s, &all, &seen, NULL);
    for (int i = 0; !failed && i < lines->count; i++) {
        const OpEvidence *e = evidence_find(&seen, lines->line[i].path);
        if (e && isfinite(e->largest)) lines_append(&left, lines, i, 1);
    }
    evidence_free(&seen);
    *lines = left;
    return failed;
}

/* Keeps |lines| where the loss is at least |gain| lower with them; negative: where it is no more than that higher. */
static int keep_better(Suggesting *s, const Lines *lines, double gain) {
    TrialResult result;
    Lines all = s->f32;
    lines_append(&all, lines, 0, lines->count);
    if (suggesting_train(s, &all, s->seed, &result)) return 1;
    if (!result.is_finite || result.loss > s->first.loss - gain) return 0;
    s->f32 = all;
    s->first = result;
    return 0;
}

int suggesting_find_recorded(Suggesting *s) {
    Lines overflow = {.count = 0}, tiny = {.count = 0};
    if (!s->first.is_finite) return 0;
    if (evidence_has_tiny(&s->evidence) && suggesting_look(s, &s->f32, &s->evidence, NULL))
        return 1; /* what reads it */
    evidence_propose_f32(&s->evidence, s->model, &s->f32, &overflow, &tiny);
    if (overflow.count && drop_infinite(s, &overflow)) return 1;
    if (!overflow.count && !tiny.count) return 0;
    if (suggesting_find_noise(s)) return 1;
    if (overflow.count && keep_better(s, &overflow, -s->noise)) return 1;
    return tiny.count ? keep_better(s, &tiny, s->noise) : 0;
}
