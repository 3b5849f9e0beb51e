/* session_results.c: what runs left, read after them: losses and metrics, metrics of averages, and the values of a
 * training step by name, in sessions that keep them; and how it comes back from device memory. */
#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/model/matrix_layout.h"

/* ---- reading back ------------------------------------------------------------------------------------------------ */

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

size_t amp_session_sums_count(const amp_session *s) { return 1 + 2 * (size_t)amp_summed_count(s->model); }
static size_t figures_bytes(const amp_session *s) { return (size_t)amp_measure_count(s->model) * sizeof(double); }
static size_t sums_bytes(const amp_session *s) { return amp_session_sums_count(s) * sizeof(double); }
static size_t work_bytes(const amp_session *s) { return (size_t)amp_summed_count(s->model) * sizeof(double); }
static size_t losses_bytes(const amp_session *s) { return (size_t)(amp_loss_count(s->model) + 1) * sizeof(double); }
static size_t first_kept_bytes(const amp_session *s) { return (size_t)(s->model->state_count + 1) * sizeof(int64_t); }
static size_t averages_bytes(const amp_session *s) { return (size_t)(s->model->all_input_count + 1) * sizeof(float); }
/* The numbers of a report that is kept. */
static size_t numbers_count(const amp_session *s) {
    return (size_t)amp_loss_count(s->model) + (size_t)amp_metric_count(s->model);
}
static size_t kept_bytes(const amp_session *s) { return (AMP_KEPT_REPORTS * numbers_count(s) + 1) * sizeof(double); }

static void place_kept(const amp_session *s, amp_kept_reports *kept) {
    for (size_t i = 0; i < AMP_KEPT_REPORTS; i++) {
        kept->calls[i].losses = kept->numbers + i * numbers_count(s);
        kept->calls[i].metrics = kept->calls[i].losses + amp_loss_count(s->model);
    }
}

amp_status amp_session_make_readback(amp_session *s, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    amp_session_readback *r = s->readback = amp_alloc_zeroed(a, sizeof *r);
    if (r) {
        r->measured.figures = amp_alloc_zeroed(a, figures_bytes(s));
        r->measured.sums = amp_alloc_zeroed(a, sums_bytes(s));
        r->measured.work = amp_alloc_zeroed(a, work_bytes(s));
        r->measured.losses = amp_alloc_zeroed(a, losses_bytes(s));
        r->measured.averages = amp_alloc_zeroed(a, averages_bytes(s));
        r->measured.first_kept = amp_alloc_zeroed(a, first_kept_bytes(s));
        r->kept.numbers = amp_alloc_zeroed(a, kept_bytes(s));
        if (r->kept.numbers) place_kept(s, &r->kept);
        const amp_measured *m = &r->measured;
        if (m->figures && m->sums && m->work && m->losses && m->averages && m->first_kept && r->kept.numbers)
            return AMP_OK;
    }
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its losses and metrics", s->model->desc.name);
}

void amp_session_free_readback(amp_session *s) {
    const amp_allocator *a = &s->memory.allocator;
    amp_session_readback *r = s->readback;
    if (!r) return;
    amp_free(a, r->measured.figures, figures_bytes(s));
    amp_free(a, r->measured.sums, sums_bytes(s));
    amp_free(a, r->measured.work, work_bytes(s));
    amp_free(a, r->measured.losses, losses_bytes(s));
    amp_free(a, r->measured.averages, averages_bytes(s));
    amp_free(a, r->measured.first_kept, first_kept_bytes(s));
    amp_free(a, r->kept.numbers, kept_bytes(s));
    amp_free(a, r->host, r->bytes + r->header_bytes);
    amp_free(a, r, sizeof *r);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

/* A step that was skipped, once it is known of. */
static void say_skipped(const amp_session *s) {
    const float *scale = amp_session_scale(s);
    const int32_t *hits = amp_session_floor_hits(s);
    const int64_t *iteration = amp_session_iteration(s);
    if (!s->log.say || !amp_session_skipped_blocks(s)) return;
    long long number = iteration ? (long long)*iteration : 0;
    double before = (double)s->readback->measured.used_scale, now = scale ? (double)*scale : 1;
    if (hits && *hits)
        amp_log_say(&s->log, AMP_LOG_WARNING,
                    "iteration %lld skipped: gradients are not finite, and the loss scale is at its floor of %.9g",
                    number, now);
    else
        amp_log_say(&s->log, AMP_LOG_INFO,
                    "iteration %lld skipped: gradients are not finite; the loss scale goes from %.9g to %.9g", number,
                    before, now);
}

/* Of the last step, some to be finished. */
static void copy_metrics(const amp_session *s, double *metrics) {
    const double *of = &s->readback->measured.figures[1 + amp_loss_count(s->model)];
    memcpy(metrics, of, (size_t)amp_metric_count(s->model) * sizeof *metrics);
}

static void keep_report(const amp_session *s, const amp_readback_run *run) {
    amp_kept_reports *kept = &s->readback->kept;
    amp_kept_report *k = &kept->calls[kept->arrived++ % AMP_KEPT_REPORTS];
    const float *scale = amp_session_scale(s);
    const int32_t *hits = amp_session_floor_hits(s);
    amp_session_fill_report(s, run->complete, &k->report);
    k->scale = scale ? *scale : 1;
    k->floor_hits = hits ? *hits : 0;
    memcpy(k->losses, s->readback->measured.losses, (size_t)amp_loss_count(s->model) * sizeof *k->losses);
    copy_metrics(s, k->metrics);
}

/* Of a step that is divided apply_step has the figures of all its micro-batches, of all ranks. */
static const amp_bound_program *measured_by(const amp_session *s, const amp_readback_run *run) {
    const amp_bound_program *last = &s->programs[AMP_RUN_APPLY_STEP];
    const bool has = run->complete && last->program && amp_program_result(last->program, AMP_RESULT_LOSS) >= 0;
    return has ? last : &s->programs[AMP_RUN_TRAIN_STEP];
}

static void note_step(const amp_session *s, const amp_readback_run *run) {
    amp_measured *m = &s->readback->measured;
    amp_bound_program_measures(measured_by(s, run), s->model, amp_measure_count(s->model), m->figures);
    memcpy(m->losses, &m->figures[1], (size_t)amp_loss_count(s->model) * sizeof *m->losses);
    if (run->complete) say_skipped(s);
    if (run->complete) amp_session_note_kept(s, run->too_few);
    if (!run->reported) keep_report(s, run);
}

static void take_metrics(const amp_session *s, double *metrics) {
    const amp_bound_program *b = &s->programs[AMP_RUN_METRICS];
    for (int32_t i = 0, first = 1 + amp_loss_count(s->model); amp_metric_name(s->model, i); i++) {
        int32_t result = amp_measure_result(s->model, b->program, first + i);
        if (result >= 0) metrics[i] = amp_bound_program_scalar(b, result);
    }
}

/* The report may have been given without its metrics, or dropped, and its place taken. */
static void note_metrics(const amp_session *s, int64_t call) {
    amp_kept_reports *kept = &s->readback->kept;
    if (call >= kept->given) take_metrics(s, kept->calls[call % AMP_KEPT_REPORTS].metrics);
    kept->finished = call + 1;
}

static void note_run(const amp_session *s, const amp_readback_run *run) {
    if (run->step) note_step(s, run);
    if (run->finishes) note_metrics(s, run->call);
}

/* The scale is the one before the run, which the copy replaces. */
static void take_in(const amp_session *s, const void *scalars) {
    amp_session_readback *r = s->readback;
    amp_readback_run run = r->pending[0];
    const float *scale = amp_session_scale(s);
    if (run.step) r->measured.used_scale = scale ? *scale : 1;
    memcpy(r->host, scalars, r->bytes);
    memmove(&r->pending[0], &r->pending[1], sizeof run * (size_t)--r->pending_count);
    note_run(s, &run);
    amp_session_note_fault(s, &run);
}

amp_status amp_session_settle(const amp_session *s, bool wait, amp_error *err) {
    while (s->readback->pending_count) {
        const void *scalars;
        AMP_TRY(calls_of(s)->finish_readback(s->device, wait, &scalars, err));
        if (!scalars) break;
        take_in(s, scalars);
    }
    return amp_session_tell_fault(s, err);
}

amp_status amp_session_take_in_oldest(const amp_session *s, amp_error *err) {
    const void *scalars;
    AMP_TRY(calls_of(s)->finish_readback(s->device, true, &scalars, err));
    take_in(s, scalars);
    return AMP_OK;
}

/* Of more calls than are kept the oldest report is dropped, whether it has arrived or not. */
static void count_call(amp_kept_reports *kept) {
    if (++kept->made - kept->given > AMP_KEPT_REPORTS) kept->given = kept->made - AMP_KEPT_REPORTS;
}

amp_status amp_session_start_readback(const amp_session *s, const amp_readback_run *run, amp_error *err) {
    amp_session_readback *r = s->readback;
    if (calls_of(s)) {
        if (r->pending_count == AMP_READBACKS) AMP_TRY(amp_session_take_in_oldest(s, err));
        AMP_TRY(calls_of(s)->start_readback(s->device, err));
        r->pending[r->pending_count++] = *run;
    }
    if (run->step && !run->reported) count_call(&r->kept);
    if (!calls_of(s)) note_run(s, run);
    return AMP_OK;
}

amp_status amp_session_write_scalars(const amp_session *s, amp_error *err) {
    if (!calls_of(s) || !s->readback->state_bytes) return AMP_OK;
    return calls_of(s)->write(s->device, s->readback->block, s->readback->host, s->readback->state_bytes, err);
}

/* ---- losses and metrics of the last step ------------------------------------------------------------------------- */

amp_status amp_session_get_metrics(const amp_session *session, double *metrics, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(amp_session_check_training(session, "amp_session_get_metrics", err));
    if (!metrics) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_metrics: metrics is NULL");
    if (!session->step.last.n) return amp_fail(err, AMP_WRONG_STATE, "amp_session_get_metrics: no step yet");
    AMP_TRY(amp_session_settle(session, true, err));
    const amp_measured *m = &session->readback->measured;
    memcpy(m->work, m->figures, figures_bytes(session));
    AMP_TRY(amp_session_compute_figures(session, AMP_RUN_METRICS, m->work, err));
    memcpy(metrics, &m->work[1 + amp_loss_count(session->model)],
           (size_t)amp_metric_count(session->model) * sizeof *metrics);
    return AMP_OK;
}

amp_status amp_session_get_losses(const amp_session *session, double *losses, amp_error *err) {
    if (!session || !losses)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_losses: session or losses is NULL");
    AMP_TRY(amp_session_settle(session, true, err));
    memcpy(losses, session->readback->measured.losses, (size_t)amp_loss_count(session->model) * sizeof *losses);
    return AMP_OK;
}

/* ---- figures that are computed from others ----------------------------------------------------------------------- */

static void give_inputs(const amp_session *s, const amp_bound_program *b, const double *figures) {
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        const int32_t measure = amp_measure_named(s->model, s->model->inputs[buffer->index].name);
        float *at = &s->readback->measured.averages[buffer->index];
        *at = measure < 0 ? NAN : (float)figures[measure];
        b->buffers[i] = at;
    }
}

static amp_status run_figures(const amp_session *s, const amp_bound_program *b, const amp_readback_run *run,
                              amp_error *err) {
    AMP_TRY(amp_session_run_bound(s, b, amp_model_least_sizes(s->model), err));
    return amp_session_start_readback(s, run, err);
}

amp_status amp_session_start_metrics(const amp_session *s, int64_t call, amp_error *err) {
    const amp_kept_report *k = &s->readback->kept.calls[call % AMP_KEPT_REPORTS];
    const int32_t losses = amp_loss_count(s->model);
    double *figures = s->readback->measured.work;
    figures[0] = k->report.loss;
    memcpy(&figures[1], k->losses, (size_t)losses * sizeof *figures);
    memcpy(&figures[1 + losses], k->metrics, (size_t)amp_metric_count(s->model) * sizeof *figures);
    give_inputs(s, &s->programs[AMP_RUN_METRICS], figures);
    return run_figures(s, &s->programs[AMP_RUN_METRICS], &(amp_readback_run){.finishes = true, .call = call}, err);
}

amp_status amp_session_compute_figures(const amp_session *s, int program, double *figures, amp_error *err) {
    const amp_bound_program *b = &s->programs[program];
    if (!b->program) return AMP_OK;
    give_inputs(s, b, figures);
    AMP_TRY(run_figures(s, b, &(amp_readback_run){.step = false}, err));
    AMP_TRY(amp_session_settle(s, true, err));
    for (int32_t i = 0; i < amp_measure_count(s->model); i++) {
        const int32_t result = amp_measure_result(s->model, b->program, i);
        if (result >= 0) figures[i] = amp_bound_program_scalar(b, result);
    }
    return AMP_OK;
}

/* ---- values: the list, by name, each name once ------------------------------------------------------------------- */

static bool is_value(const amp_model_buffer *b) {
    return b->kind == AMP_BUFFER_TEMP || b->kind == AMP_BUFFER_OUTPUT || b->kind == AMP_BUFFER_WATCH;
}

/* A value may be stored in several layouts, which hold the same numbers: the result is taken, else the first of them.
 */
static int by_name(const void *a, const void *b) {
    const amp_value *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    if ((x->result < 0) != (y->result < 0)) return x->result < 0 ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static int32_t collect(const amp_bound_program *in, amp_value *values) {
    const amp_program *p = in->program;
    int32_t count = 0;
    for (int32_t i = 0; p && i < p->result_count; i++)
        if (p->results[i].kind == AMP_RESULT_GRADIENT)
            values[count++] = (amp_value){p->results[i].name, p->results[i].buffer, i, in};
    for (int32_t i = 0; p && i < p->buffer_count; i++)
        if (is_value(&p->buffers[i])) values[count++] = (amp_value){p->buffers[i].name, i, -1, in};
    return count;
}

static int32_t drop_repetitions(amp_value *values, int32_t count) {
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++)
        if (!kept || strcmp(values[kept - 1].name, values[i].name)) values[kept++] = values[i];
    return kept;
}

static size_t most_values(const amp_bound_program *in) {
    return in->program ? (size_t)in->program->result_count + (size_t)in->program->buffer_count : 0;
}

static size_t list_bytes(const amp_session *s) {
    return (most_values(&s->programs[AMP_RUN_TRAIN_STEP]) + most_values(&s->programs[AMP_RUN_APPLY_STEP])) *
           sizeof *s->values.list;
}

amp_status amp_session_list_values(amp_session *s, amp_error *err) {
    s->values.list = amp_alloc_zeroed(&s->memory.allocator, list_bytes(s));
    if (!s->values.list)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its values", s->model->desc.name);
    int32_t count = collect(&s->programs[AMP_RUN_TRAIN_STEP], s->values.list);
    count += collect(&s->programs[AMP_RUN_APPLY_STEP], s->values.list + count);
    qsort(s->values.list, (size_t)count, sizeof *s->values.list, by_name);
    s->values.count = drop_repetitions(s->values.list, count);
    return AMP_OK;
}

void amp_session_free_values(amp_session *s) {
    if (s->values.list) amp_free(&s->memory.allocator, s->values.list, list_bytes(s));
}

const char *amp_session_value_name(const amp_session *session, int32_t index) {
    return session && index >= 0 && index < session->values.count ? session->values.list[index].name : NULL;
}

static const amp_value *find(const amp_session *s, const char *name) {
    for (int32_t low = 0, high = s->values.count; low < high;) {
        int32_t middle = low + (high - low) / 2, order = strcmp(name, s->values.list[middle].name);
        if (order == 0) return &s->values.list[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

/* ---- one value --------------------------------------------------------------------------------------------------- */

static void fill_dims(amp_tensor_info *info, const amp_model_dim *dims, uint32_t rank, amp_sizes sizes) {
    info->rank = (int32_t)rank;
    for (uint32_t i = 0; i < rank; i++) info->dims[i] = amp_model_dim_at(&dims[i], sizes);
}

static amp_tensor_info describe(const amp_session *s, const amp_value *v) {
    const amp_program *p = v->in->program;
    const amp_model_buffer *b = &p->buffers[v->buffer];
    amp_tensor_info info = {.name = v->name, .dtype = (amp_dtype)b->dtype};
    if (v->result >= 0) fill_dims(&info, p->results[v->result].dims, p->results[v->result].rank, s->step.last);
    else fill_dims(&info, b->dims, b->rank, s->step.last);
    if (v->result < 0 && b->padding) info.dims[b->rank - 1] -= b->padding;
    return info;
}

static size_t value_bytes(const amp_tensor_info *info) {
    size_t count = 1;
    for (int32_t i = 0; i < info->rank; i++) count *= (size_t)info->dims[i];
    return count * amp_dtype_size(amp_readable_dtype(info->dtype));
}

/* Where element |index| of a weight that is |hwio| is in its rows. */
static int64_t turned_index(const int64_t *d, int32_t rank, int64_t hwio, int64_t index) {
    int64_t row, col;
    if (rank == 2) return index / d[1] * d[1] + amp_turned_column(d[1] / hwio, hwio, index % d[1]);
    amp_hwio_place(d[1], d[2] * d[3], index, &row, &col);
    return row * d[0] + col;
}

/* |data| as it is stored becomes what the user sees. */
static amp_status turn_weight(const amp_session *s, const amp_tensor_info *info, int64_t hwio, float *data,
                              amp_error *err) {
    int64_t count = 1;
    for (int32_t i = 0; i < info->rank; i++) count *= info->dims[i];
    const size_t bytes = (size_t)count * sizeof *data;
    float *copy = amp_alloc(&s->memory.allocator, bytes);
    if (!copy) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read %s", s->model->desc.name, info->name);
    memcpy(copy, data, bytes);
    for (int64_t i = 0; i < count; i++) data[i] = copy[turned_index(info->dims, info->rank, hwio, i)];
    amp_free(&s->memory.allocator, copy, bytes);
    return AMP_OK;
}

amp_status amp_session_get_value(const amp_session *session, const char *name, amp_tensor_info *info, void *data,
                                 size_t bytes, amp_error *err) {
    AMP_TRY(amp_session_check_training(session, "amp_session_get_value", err));
    if (!name) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_value: name is NULL");
    if (!session->values.list)
        return amp_fail(err, AMP_WRONG_STATE, "amp_session_get_value: the session was created without keep_values");
    if (!session->step.last.n) return amp_fail(err, AMP_WRONG_STATE, "amp_session_get_value: no step yet");
    const amp_value *v = find(session, name);
    if (!v)
        return amp_fail(err, AMP_NOT_FOUND, "no value %s in memory; amp_session_value_name lists those that are", name);
    amp_tensor_info described = describe(session, v);
    if (data && bytes != value_bytes(&described))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "value %s takes %zu bytes, not %zu", name, value_bytes(&described),
                        bytes);
    if (info) *info = described;
    if (!data) return AMP_OK;
    AMP_TRY(amp_session_read_buffer(session, v->in, v->buffer, session->step.last, data, err));
    const uint32_t hwio = v->result >= 0 ? v->in->program->results[v->result].hwio : 0;
    return hwio ? turn_weight(session, &described, hwio, data, err) : AMP_OK;
}
