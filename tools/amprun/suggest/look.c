/* look.c: see suggesting.h: steps are taken again without fusion, so that all that ops read and make is in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/amprun/suggest/suggesting.h"
#include "tools/outputs.h"

enum { LOOKS = 4 };

typedef struct Look { /* at a step */
    Suggesting *s;
    Evidence *evidence;
    Twin twin;
    char folder[TEMPORARY_PATH], checkpoint[TEMPORARY_PATH + 16];
    Batches batches;
    int64_t iteration;
    bool is_due;
} Look;

/* Every so often, up to the last step. */
static bool is_spread(int64_t index, int64_t count) {
    const int64_t between = count > LOOKS ? count / LOOKS : 1;
    return index % between == between - 1;
}

/* The steps with statistics, as far as they are taken again: some of them, and each that is said to have infinities. */
static bool is_told_of(const Suggesting *s, int64_t iteration) {
    const Recorded *r = &s->recorded;
    int64_t index = -1, count = 0;
    for (; count < r->stats_count && r->stats[count] <= s->plan.steps; count++)
        if (r->stats[count] == iteration) index = count;
    if (!count) return is_spread(iteration - 1, s->plan.steps);
    for (int i = 0; i < s->evidence.count; i++) {
        const RecordedTensor *t = s->evidence.op[i].overflow;
        if (t && t->infinities_at == iteration) return true;
    }
    return index >= 0 && is_spread(index, count);
}

static int look_before(void *user, const Run *run, const void *const *inputs, amp_sizes sizes) {
    Look *l = user;
    amp_error err = {0};
    l->is_due = l->s->is_recorded ? is_told_of(l->s, l->iteration) : is_spread(l->iteration - 1, l->s->plan.steps);
    if (!l->is_due) return 0;
    if (!l->batches.count && amp_checkpoint_save(run->session, l->checkpoint, NULL, &err)) return report(&err);
    return batches_add(&l->batches, inputs, sizes, &err) ? report(&err) : 0;
}

static int look_after(void *user, const amp_step_report *report_of) {
    Look *l = user;
    amp_error err = {0};
    TwinStep step;
    const int64_t iteration = l->iteration++;
    (void)report_of;
    if (!l->is_due) return 0;
    const TwinState state = {.checkpoint = l->checkpoint};
    amp_status status = twin_step(&l->twin, &state, &l->batches.step[0], &step, &err);
    if (!status) status = evidence_add(l->evidence, &l->twin, iteration, &err);
    batches_clear(&l->batches);
    return status ? report(&err) : 0;
}

static int make_folder(Look *l) {
    if (!temporary_make_folder("amprun-suggest", l->folder))
        return report_text("%s: %s; TMPDIR names a folder for temporary files", l->folder, strerror(errno));
    snprintf(l->checkpoint, sizeof l->checkpoint, "%s/checkpoint", l->folder);
    return 0;
}

int suggesting_look(Suggesting *s, const Lines *lines, Evidence *e, Lines *proposed) {
    amp_error err = {0};
    Look l = {.s = s, .evidence = e, .iteration = 1};
    Run run = {0};
    char *bytes = NULL;
    size_t size = 0;
    TrialResult ignored;
    if (make_folder(&l)) return 1;
    int failed = trial_open(&run, &s->plan, lines, s->seed, &bytes, &size);
    const TwinSource source = {
        .args = s->plan.args, .bytes = bytes, .size = size, .capacity = s->plan.batch, .seed = s->seed};
    if (!failed) l.batches = batches_new(run.model);
    if (!failed && twin_open(&l.twin, &source, &(TwinForm){0}, &err)) failed = report(&err);
    const TrialVisitor visitor = {&l, look_before, look_after};
    if (!failed) failed = trial_run(&run, &s->plan, s->seed, &visitor, &ignored);
    if (!failed && proposed) evidence_propose(e, run.model, lines, s->is_recorded, proposed);
    (void)unlink(l.checkpoint);
    (void)rmdir(l.folder);
    batches_free(&l.batches);
    twin_close(&l.twin);
    run_close(&run);
    free(bytes);
    return failed;
}
