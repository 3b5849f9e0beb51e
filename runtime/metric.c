/* metric.c: see metric.h. */
#include "runtime/metric.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static const char loss_prefix[] = "loss.", metric_prefix[] = "metric.";

static const char *after(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) ? NULL : name + length;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* |*index| counts down over the results with the prefix. */
static const char *find_name(const amp_program *p, const char *prefix, int32_t *index) {
    for (int32_t i = 0; p && i < p->result_count; i++) {
        const char *name = after(p->results[i].name, prefix);
        if (name && (*index)-- == 0) return name;
    }
    return NULL;
}

static const amp_program *measuring(const amp_model *m) { return m->eval ? m->eval : m->train_step; }

const char *amp_metric_name(const amp_model *m, int32_t index) {
    const char *name = find_name(measuring(m), metric_prefix, &index);
    return name ? name : find_name(m->metrics, metric_prefix, &index);
}

const char *amp_loss_name(const amp_model *m, int32_t index) { return find_name(measuring(m), loss_prefix, &index); }

int32_t amp_metric_count(const amp_model *m) {
    int32_t count = 0;
    while (amp_metric_name(m, count)) count++;
    return count;
}

int32_t amp_loss_count(const amp_model *m) {
    int32_t count = 0;
    while (amp_loss_name(m, count)) count++;
    return count;
}

int32_t amp_measure_count(const amp_model *m) { return 1 + amp_loss_count(m) + amp_metric_count(m); }

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* The result <prefix><name>; -1: there is none. */
static int32_t result_of(const amp_program *p, const char *prefix, const char *name) {
    for (int32_t i = 0; i < p->result_count; i++) {
        const char *found = after(p->results[i].name, prefix);
        if (found && !strcmp(found, name)) return i;
    }
    return -1;
}

static double read_one(const amp_bound_program *bound, const char *prefix, const char *name) {
    int32_t result = result_of(bound->program, prefix, name);
    return result < 0 ? NAN : amp_bound_program_scalar(bound, result);
}

void amp_measures_add(const amp_bound_program *bound, const amp_model *m, double *sums) {
    const char *name;
    *sums++ += read_one(bound, "loss", "");
    for (int32_t i = 0; (name = amp_loss_name(m, i)); i++) *sums++ += read_one(bound, loss_prefix, name);
    for (int32_t i = 0; (name = amp_metric_name(m, i)); i++) *sums++ += read_one(bound, metric_prefix, name);
}

/* ---- metrics of averages ----------------------------------------------------------------------------------------- */

/* The average that an input of the program "metrics" stands for. */
static double average(const amp_model *m, const char *input, double loss, const double *losses, const double *metrics) {
    const char *name = after(input, loss_prefix), *metric = after(input, metric_prefix), *other;
    if (!strcmp(input, "loss")) return loss;
    for (int32_t i = 0; name && losses && (other = amp_loss_name(m, i)); i++)
        if (!strcmp(other, name)) return losses[i];
    for (int32_t i = 0; metric && (other = amp_metric_name(m, i)); i++)
        if (!strcmp(other, metric)) return metrics[i];
    return NAN;
}

static void give_averages(const amp_session *s, double loss, const double *losses, const double *metrics) {
    const amp_bound_program *b = &s->metrics;
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        float *at = &s->averages[buffer->index];
        *at = (float)average(s->model, s->model->inputs[buffer->index].name, loss, losses, metrics);
        b->buffers[i] = at;
    }
}

/* What it leaves in the session is read at once and not part of what the caller sees. */
static amp_status run_metrics(amp_session *s, amp_error *err) {
    AMP_TRY(amp_session_run_bound(s, &s->metrics, s->model->batch_multiple, err));
    AMP_TRY(amp_session_collect(s, &(amp_collection){.step = false}, err));
    return amp_session_settle(s, true, err);
}

amp_status amp_session_finish_metrics(const amp_session *s, double loss, const double *losses, double *metrics,
                                      amp_error *err) {
    if (!s || !metrics)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_finish_metrics: session or metrics is NULL");
    const amp_bound_program *b = &s->metrics;
    if (!b->program) return AMP_OK;
    give_averages(s, loss, losses, metrics);
    AMP_TRY(run_metrics((amp_session *)(uintptr_t)s, err));
    const char *name;
    for (int32_t i = 0; (name = amp_metric_name(s->model, i)); i++)
        if (result_of(b->program, metric_prefix, name) >= 0) metrics[i] = read_one(b, metric_prefix, name);
    return AMP_OK;
}
