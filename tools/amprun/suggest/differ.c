/* differ.c: see suggesting.h: where the loss ends far above the one of the same steps in fp32, lines are looked for by
 * what differs first: a step is taken by twins without fusion, as the model is and in fp32, from the same parameters,
 * and their ops are compared in the order of execution. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amp/train.h"
#include "tools/amprun/suggest/suggesting.h"
#include "tools/outputs.h"

enum { ROUNDS = 4 };
/* Of the loss in fp32, and of the loss that it began with: less is what rounding does. */
#define FAR_OF_LOSS 0.1
#define FAR_OF_FIRST 0.02
/* Of the numbers of a tensor, and of its largest. */
#define ZEROS_DIFFER 0.1
#define LARGEST_DIFFERS 0.2

bool suggesting_is_far(const Suggesting *s, const TrialResult *r) {
    const TrialResult *f = &s->fp32;
    if (!s->has_fp32 || !f->is_finite) return false;
    return !r->is_finite || r->loss - f->loss > FAR_OF_LOSS * fabs(f->loss) + FAR_OF_FIRST * fabs(f->begin);
}

int suggesting_train_fp32(Suggesting *s) {
    static const Lines none = {.count = 0};
    TrialPlan plan = s->plan;
    Run run = {0};
    plan.policy = "fp32";
    plan.as_is = false;
    int failed = trial_open(&run, &plan, &none, s->seed, NULL, &(size_t){0});
    if (!failed) failed = trial_run(&run, &plan, s->seed, NULL, &s->fp32);
    run_close(&run);
    s->has_fp32 = !failed;
    return failed;
}

/* ---- two steps --------------------------------------------------------------------------------------------------- */

typedef struct Comparing {
    Suggesting *s;
    Twin low, fp32;
    Batches batches;
    char folder[TEMPORARY_PATH], params[TEMPORARY_PATH + 16];
    amp_scaler_state at;
    int64_t iteration;
    char path[LINE_TEXT], why[LINE_TEXT]; /* what differs first; empty: nothing does */
} Comparing;

static double magnitude(const amp_trace_range *r) { return fmax(fabs(r->least), fabs(r->largest)); }

/* Writes how the low result differs; false: no more than rounding explains. */
static bool differs(const amp_trace_range *low, const amp_trace_range *fp32, int64_t iteration, char why[LINE_TEXT]) {
    const int64_t broken = low->infinities + low->nans, zeros = low->zeros - fp32->zeros;
    const char *where = "at iteration";
    if (broken > fp32->infinities + fp32->nans)
        snprintf(why, LINE_TEXT, "%" PRId64 " of %" PRId64 " numbers are infinite %s %" PRId64 ", and finite in fp32",
                 broken, low->count, where, iteration);
    else if ((double)zeros > ZEROS_DIFFER * (double)low->count)
        snprintf(why, LINE_TEXT, "%" PRId64 " of %" PRId64 " numbers become zero %s %" PRId64 ", and not in fp32",
                 zeros, low->count, where, iteration);
    else if (fabs(magnitude(low) - magnitude(fp32)) > LARGEST_DIFFERS * magnitude(fp32))
        snprintf(why, LINE_TEXT, "up to %.4g %s %" PRId64 ", and %.4g in fp32", magnitude(low), where, iteration,
                 magnitude(fp32));
    else return false;
    return true;
}

static amp_status find_op(const amp_trace *trace, const char *path, amp_trace_op *out, amp_error *err) {
    *out = (amp_trace_op){.struct_size = sizeof *out};
    for (int32_t i = 0;; i++) {
        AMP_TRY(amp_trace_op_at(trace, i, out, err));
        if (!strcmp(out->path, path)) return AMP_OK;
    }
}

static amp_status compare(Comparing *c, amp_error *err) {
    amp_trace_op low = {.struct_size = sizeof low}, fp32;
    for (int32_t i = 0; !c->path[0]; i++) {
        const amp_status status = amp_trace_op_at(c->low.trace, i, &low, err);
        if (status) return status == AMP_NOT_FOUND ? AMP_OK : status;
        const bool is_low = low.result.dtype == AMP_DT_F16 || low.result.dtype == AMP_DT_BF16;
        if (!is_low || lines_have(&c->s->f32, low.path) || find_op(c->fp32.trace, low.path, &fp32, err)) continue;
        if (differs(&low.result, &fp32.result, c->iteration, c->why)) snprintf(c->path, sizeof c->path, "%s", low.path);
    }
    return AMP_OK;
}

/* The first step, and one in the middle. */
static bool is_due(const Comparing *c) {
    return !c->path[0] && (c->iteration == 1 || c->iteration == c->s->plan.steps / 2);
}

static int compare_before(void *user, const Run *run, const void *const *inputs, amp_sizes sizes) {
    Comparing *c = user;
    amp_error err = {0};
    if (!is_due(c)) return 0;
    if (!c->batches.count &&
        (amp_session_get_scaler(run->session, &c->at, &err) || amp_params_save(run->params, c->params, NULL, &err)))
        return report(&err);
    return batches_add(&c->batches, inputs, sizes, &err) ? report(&err) : 0;
}

static int compare_after(void *user, const amp_step_report *report_of) {
    Comparing *c = user;
    amp_error err = {0};
    TwinStep step;
    const TwinState state = {.params = c->params, .at = c->at};
    (void)report_of;
    amp_status status = AMP_OK;
    if (is_due(c)) {
        status = twin_step(&c->low, &state, &c->batches.step[0], &step, &err);
        if (!status) status = twin_step(&c->fp32, &state, &c->batches.step[0], &step, &err);
        if (!status) status = compare(c, &err);
        batches_clear(&c->batches);
    }
    c->iteration++;
    return status ? report(&err) : 0;
}

static int find_first(Comparing *c) {
    Suggesting *s = c->s;
    Run run = {0};
    TrialResult ignored;
    amp_error err = {0};
    char *bytes = NULL;
    size_t size = 0;
    int failed = trial_open(&run, &s->plan, &s->f32, s->seed, &bytes, &size);
    const TwinSource source = {
        .args = s->plan.args, .bytes = bytes, .size = size, .capacity = s->plan.batch, .seed = s->seed};
    if (!failed) c->batches = batches_new(run.model);
    if (!failed && twin_open(&c->low, &source, &(TwinForm){0}, &err)) failed = report(&err);
    if (!failed && twin_open(&c->fp32, &source, &(TwinForm){.policy = "fp32"}, &err)) failed = report(&err);
    const TrialVisitor visitor = {c, compare_before, compare_after};
    if (!failed) failed = trial_run(&run, &s->plan, s->seed, &visitor, &ignored);
    (void)unlink(c->params);
    (void)rmdir(c->folder);
    batches_free(&c->batches);
    twin_close(&c->low);
    twin_close(&c->fp32);
    run_close(&run);
    free(bytes);
    return failed;
}

static int make_folder(Comparing *c) {
    if (!temporary_make_folder("amprun-suggest", c->folder))
        return report_text("%s: %s; TMPDIR names a folder for temporary files", c->folder, strerror(errno));
    snprintf(c->params, sizeof c->params, "%s/params", c->folder);
    return 0;
}

int suggesting_find_difference(Suggesting *s) {
    for (int round = 0; round < ROUNDS && suggesting_is_far(s, &s->first); round++) {
        Comparing c = {.s = s, .iteration = 1};
        if (make_folder(&c)) return 1;
        if (find_first(&c)) return 1;
        if (!c.path[0] || !lines_add(&s->f32, c.path, "f32", c.why)) return 0;
        if (suggesting_train(s, &s->f32, s->seed, &s->first)) return 1;
    }
    return 0;
}
