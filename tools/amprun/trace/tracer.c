/* tracer.c: see tracer.h.
 *
 * A step changes what it began from, unless it is skipped, so that the state before it must be known.  Every few steps
 * the whole state is written to a file, and the batches since then are kept: from there the steps are taken again by a
 * second session of the same model, which has the same bits, up to the state before the one that is looked for.  That
 * step is then taken by twins: by the model without fusion, which names the op; with a loss scale of 1, which tells
 * scaled gradients that overflow, as they may, from a fault; in f32; and with lines added to the precision block.
 */
#include "amp/weights.h"
#include "tools/amprun/trace/tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/error.h"
#include "base/file.h"

enum {
    SNAPSHOT_STEPS = 32,
    EXPECTED_MOST = 3, /* skipped steps with a finite loss that are looked at, while they stay few in a row, */
    STREAK = 4,        /* and skipped steps in a row that are looked at whatever there was before */
    ALARMS_MOST = 5,
    FILE_PATH = TEMPORARY_PATH + 16
};
static const size_t SNAPSHOT_BYTES = (size_t)64 << 20; /* of batches */

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const char *path_of(const Tracer *t, const char *name, char out[FILE_PATH]) {
    snprintf(out, FILE_PATH, "%s/%s", t->folder, name);
    return out;
}

static void remove_file(const Tracer *t, const char *name) {
    char path[FILE_PATH];
    (void)unlink(path_of(t, name, path));
}

static int make_folder(Tracer *t) {
    if (temporary_make_folder("amprun-trace", t->folder)) return 0;
    report_text("--trace-nonfinite: %s: %s; TMPDIR names a folder for temporary files", t->folder, strerror(errno));
    t->folder[0] = 0;
    return 1;
}

#define SNAPSHOT "snapshot"
#define BEFORE "before"
#define BEFORE_PARAMS "before.params"

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int read_model(Tracer *t) {
    amp_error err = {0};
    if (t->source.bytes) return 0;
    if (amp_file_read_regular(t->args->model, 0, NULL, &t->bytes, &t->source.size, &err)) return report(&err);
    t->source.bytes = t->bytes;
    return 0;
}

/* Said now, not at the first fault. */
static int check_text(const Tracer *t) {
    static const char none[] = AMP_MODEL_NO_IR;
    const size_t length = sizeof none - 1;
    const char *bytes = t->source.bytes;
    size_t at, size;
    if (amp_elf_section(bytes, t->source.size, AMP_MODEL_IR_SECTION, &at, &size, NULL)) return 0;
    if (size < length || memcmp(bytes + at, none, length) != 0) return 0;
    return report_text("%s: compiled with --no-ir: compile %.*s again", t->args->model, (int)(size - length),
                       bytes + at + length) +
           1;
}

int tracer_open(Tracer *t, const TwinSource *source, const Run *run) {
    *t = (Tracer){.args = source->args, .run = run, .source = *source, .batches = batches_new(run->model)};
    if (t->args->device && !strcmp(t->args->device, "null"))
        return report_text("--trace-nonfinite: the device null computes nothing to trace") + 1;
    return read_model(t) || check_text(t) || make_folder(t);
}

void tracer_close(Tracer *t) {
    twin_close(&t->same);
    batches_free(&t->batches);
    if (t->bytes) amp_free(NULL, t->bytes, t->source.size + 1);
    if (!t->folder[0]) return;
    remove_file(t, SNAPSHOT);
    remove_file(t, BEFORE);
    remove_file(t, BEFORE_PARAMS);
    (void)rmdir(t->folder);
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static bool is_complete(const Batches *b) { return !b->count || b->step[b->count - 1].count == b->micro_batches; }

static amp_status keep(Tracer *t, const void *const *inputs, amp_sizes sizes, amp_error *err) {
    char path[FILE_PATH];
    Batches *b = &t->batches;
    const bool is_due = b->count >= SNAPSHOT_STEPS || b->bytes >= SNAPSHOT_BYTES;
    if (is_complete(b) && (is_due || !b->count)) {
        batches_clear(b);
        AMP_TRY(amp_checkpoint_save(t->run->session, path_of(t, SNAPSHOT, path), NULL, err));
    }
    return batches_add(b, inputs, sizes, err);
}

int tracer_before(Tracer *t, const void *const *inputs, amp_sizes sizes) {
    amp_error err = {0};
    if (t->is_off || !keep(t, inputs, sizes, &err)) return 0;
    return report_text("--trace-nonfinite: %s", err.message);
}

void tracer_forget(Tracer *t) { batches_clear(&t->batches); }

/* ---- the state before the step ----------------------------------------------------------------------------------- */

typedef struct Replay { /* the same model again */
    amp_params *params;
    amp_session *session;
    int64_t damaged; /* numbers of the parameters that are not finite */
} Replay;

static amp_status replay_open(Replay *r, const Tracer *t, amp_error *err) {
    char path[FILE_PATH];
    const amp_params_options params = {.struct_size = sizeof params, .zeros = 1};
    const amp_session_options options = run_options_again(t->args, t->source.capacity, t->source.seed);
    AMP_TRY(amp_params_create(t->run->model, &params, &r->params, err));
    AMP_TRY(amp_session_create(t->run->model, r->params, &options, &r->session, err));
    AMP_TRY(amp_checkpoint_load(r->session, path_of(t, SNAPSHOT, path), NULL, 0, err));
    return amp_params_count_nonfinite(r->params, &r->damaged, NULL, err);
}

static void replay_close(Replay *r) {
    amp_session_release(r->session);
    amp_params_release(r->params);
}

/* A state's new value was not finite. */
static bool is_kept(const amp_step_report *report) { return report->states_kept && !report->too_few; }

/* Before the parameters learn it: a loss or a parameter that is not finite though the step was not skipped. */
static amp_status is_first_bad(const Replay *r, const amp_step_report *report, bool *out, amp_error *err) {
    int64_t damaged = 0;
    AMP_TRY(amp_params_count_nonfinite(r->params, &damaged, NULL, err));
    *out = !report->skipped && (!isfinite(report->loss) || damaged > r->damaged || is_kept(report));
    return AMP_OK;
}

/* Leaves the state before the step in files; |*step|: which of the batches it takes. */
static amp_status find_step(const Tracer *t, Replay *r, int *step, amp_scaler_state *at, amp_error *err) {
    char path[FILE_PATH];
    bool is_bad = false;
    for (int i = 0; i < t->batches.count && !is_bad; i++) {
        amp_step_report report;
        *step = i;
        AMP_TRY(amp_session_get_scaler(r->session, at, err));
        AMP_TRY(amp_checkpoint_save(r->session, path_of(t, BEFORE, path), NULL, err));
        AMP_TRY(amp_params_save(r->params, path_of(t, BEFORE_PARAMS, path), NULL, err));
        AMP_TRY(batches_run(&t->batches.step[i], r->session, &report, err));
        AMP_TRY(is_first_bad(r, &report, &is_bad, err));
    }
    return AMP_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

typedef struct Case {
    const StepBatch *batch;
    TwinState whole, unscaled; /* for twins of the same states */
    TwinState params;          /* for others */
    char before[FILE_PATH], before_params[FILE_PATH];
} Case;

/* What a twin that was made for one step said. */
typedef struct Trial {
    bool is_done, is_finite;
    double loss;
    /* Where it is not: ops to leave in f32 next, the most likely first; the op itself, what made what it read, and what
     * reads its result. */
    char next[1 + AMP_TRACE_READERS + AMP_TRACE_INPUTS][256];
    int next_count;
} Trial;

static void add_next(Trial *t, const char *path) {
    if (path) snprintf(t->next[t->next_count++], sizeof t->next[0], "%s", path);
}

static void list_next(Trial *t, const amp_trace_finding *f) {
    add_next(t, f->decided);
    for (int32_t i = 0; i < f->input_count; i++) add_next(t, f->inputs[i].decided);
    for (int i = 0; i < AMP_TRACE_READERS; i++) add_next(t, f->read_by[i]);
}

static Trial try_form(const Tracer *t, const TwinForm *form, const TwinState *state, const Case *c) {
    Twin twin;
    TwinStep step;
    amp_error err = {0};
    Trial trial = {.is_done =
                       !twin_open(&twin, &t->source, form, &err) && !twin_step(&twin, state, c->batch, &step, &err)};
    if (trial.is_done) {
        trial.is_finite = step.finding.fault == AMP_TRACE_NONE;
        trial.loss = step.report.loss;
        list_next(&trial, &step.finding);
    }
    twin_close(&twin);
    return trial;
}

static void ask_fp32(const Tracer *t, const Case *c, Verdict *v) {
    static const TwinForm fp32 = {.policy = "fp32"};
    if (v->finding.fault == AMP_TRACE_DATA || v->finding.fault == AMP_TRACE_STATE) return;
    const Trial trial = try_form(t, &fp32, &c->params, c);
    if (!trial.is_done) return;
    v->fp32 = trial.is_finite ? ANSWER_YES : ANSWER_NO;
    v->fp32_loss = trial.loss;
}

/* Whether only the loss scale makes gradients overflow. */
static bool is_finite_unscaled(Tracer *t, const Case *c) {
    amp_error err = {0};
    TwinStep step;
    return !twin_step(&t->same, &c->unscaled, c->batch, &step, &err) && !step.finding.fault;
}

static bool is_among(const Tracer *t, int count, const char *path) {
    for (int i = 0; i < count; i++)
        if (!strcmp(t->line[i], path)) return true;
    return false;
}

static const char *choose_next(const Tracer *t, int count, const Trial *trial) {
    for (int i = 0; i < trial->next_count; i++)
        if (!is_among(t, count, trial->next[i])) return trial->next[i];
    return NULL;
}

/* Leaves the op in f32, then the next one that overflows, until the step is finite.  With all of them in f32 a model
 * has no loss scale, so the state is that of a twin in other types. */
static void find_lines(Tracer *t, const Case *c, Verdict *v) {
    amp_override lines[VERDICT_LINES];
    Trial trial = {.is_done = true};
    list_next(&trial, &v->finding);
    for (int count = 0; count < VERDICT_LINES && trial.is_done && !trial.is_finite;) {
        const char *path = choose_next(t, count, &trial);
        if (!path) return;
        snprintf(t->line[count], sizeof t->line[count], "%s", path);
        lines[count] = (amp_override){.path = t->line[count], .word = "f32"};
        v->line[count] = t->line[count];
        count++;
        trial = try_form(t, &(TwinForm){.overrides = lines, .override_count = (size_t)count}, &c->params, c);
        if (trial.is_done && trial.is_finite) v->line_count = count;
    }
}

static int64_t first_infinite(const float *data, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(data[i])) return i;
    return -1;
}

static int64_t find_sample(const Batches *b, const MicroBatch *micro, const char *name) {
    for (int32_t i = 0; i < b->inputs; i++) {
        amp_tensor_info input;
        amp_error err;
        int64_t count = 1;
        if (amp_model_input_at(b->model, i, micro->sizes, &input, &err) || strcmp(input.name, name) != 0) continue;
        for (int d = 0; d < input.rank; d++) count *= input.dims[d];
        const int64_t at = input.dtype == AMP_DT_F32 ? first_infinite(micro->arrays[i], count) : -1;
        if (at >= 0 && count >= micro->sizes.n) return at / (count / micro->sizes.n);
    }
    return -1;
}

/* ---- the verdict ------------------------------------------------------------------------------------------------- */

static bool is_repeated(Tracer *t, const amp_trace_finding *f) {
    const bool is = t->last == f->fault && !strncmp(t->last_path, f->path, sizeof t->last_path - 1);
    t->last = f->fault;
    snprintf(t->last_path, sizeof t->last_path, "%s", f->path);
    return is;
}

static amp_status examine(Tracer *t, const Case *c, Verdict *v, amp_error *err) {
    TwinStep step;
    if (!t->same.session) AMP_TRY(twin_open(&t->same, &t->source, &(TwinForm){0}, err));
    AMP_TRY(twin_step(&t->same, &c->whole, c->batch, &step, err));
    v->finding = step.finding;
    v->micro = step.micro;
    if (step.report.complete) v->loss = step.report.loss;
    if (v->finding.fault == AMP_TRACE_DATA)
        v->sample = find_sample(&t->batches, &c->batch->micro[step.micro], v->finding.path);
    if (v->finding.is_gradient && t->run->info.scaler) v->is_expected = is_finite_unscaled(t, c);
    if (v->is_expected || !v->finding.fault) return AMP_OK;
    v->is_repeated = is_repeated(t, &v->finding);
    if (v->is_repeated) return AMP_OK;
    ask_fp32(t, c, v);
    if (v->fp32 == ANSWER_YES) find_lines(t, c, v);
    return AMP_OK;
}

static amp_status judge(Tracer *t, Verdict *v, amp_error *err) {
    Replay r = {0};
    Case c = {0};
    int step = 0;
    amp_status status = replay_open(&r, t, err);
    if (!status) status = find_step(t, &r, &step, &c.params.at, err);
    replay_close(&r);
    if (status) return status;
    c.batch = &t->batches.step[step];
    c.whole.checkpoint = c.unscaled.checkpoint = path_of(t, BEFORE, c.before);
    if (t->run->info.scaler) c.unscaled.scale = 1;
    c.params.params = path_of(t, BEFORE_PARAMS, c.before_params);
    v->iteration -= t->batches.count - 1 - step;
    v->updates = c.params.at.step;
    return examine(t, &c, v, err);
}

/* Steps that are skipped with a finite loss are what a loss scale is for: few of them are looked at. */
static bool is_of_interest(Tracer *t, const amp_step_report *report) {
    t->streak = report->skipped ? t->streak + 1 : 0;
    if (t->is_off) return false;
    if (!isfinite(report->loss) || is_kept(report)) return true;
    return report->skipped && (t->expected < EXPECTED_MOST || t->streak >= STREAK || report->at_floor);
}

bool tracer_after(Tracer *t, const amp_step_report *report, Verdict *v) {
    amp_error err = {0};
    *v = (Verdict){.iteration = report->iteration, .loss = report->loss, .scale = report->scale, .sample = -1};
    v->is_state = is_kept(report);
    if (!is_of_interest(t, report)) return false;
    if (judge(t, v, &err)) {
        t->is_off = true;
        report_text("--trace-nonfinite: %s; nothing more is traced", err.message);
        return false;
    }
    batches_clear(&t->batches); /* what comes is taken again from the state after this step */
    if (v->is_expected) t->expected++;
    else v->is_last = t->is_off = ++t->alarms >= ALARMS_MOST;
    return true;
}
