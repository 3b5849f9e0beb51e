/* model.c: a model's tables: copying them, and looking things up. */
#include "runtime/model/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/model_tables.h"

enum { TABLE_LIMIT = 1 << 24 /* elements; more is damage */ };

/* ---- copying ----------------------------------------------------------------------------------------------------- */

/* Fields that the model's compiler did not know yet read as zero; fields that we do not know are left out. */
amp_status amp_model_copy_table(const amp_model_copying *c, const amp_model_table *table, const char *what,
                                size_t elem_size, void **out, int32_t *count) {
    size_t given = table->elem_size, common = given < elem_size ? given : elem_size;
    *out = NULL;
    *count = 0;
    if (table->count == 0) return AMP_OK;
    if (table->count > TABLE_LIMIT || !table->data || given == 0)
        return amp_fail(c->err, AMP_BAD_FILE, "%s: the table of %s is damaged (%u elements of %zu bytes)", c->where,
                        what, table->count, given);
    char *copy = amp_alloc_zeroed(c->allocator, table->count * elem_size);
    if (!copy) return amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory for the table of %s", c->where, what);
    for (uint32_t i = 0; i < table->count; i++)
        memcpy(copy + i * elem_size, (const char *)table->data + i * given, common);
    *out = copy;
    *count = (int32_t)table->count;
    return AMP_OK;
}

void amp_model_free_table(const amp_allocator *a, void *data, int32_t count, size_t elem_size) {
    amp_free(a, data, (size_t)count * elem_size);
}

void amp_model_free_programs(amp_model *m) {
    for (int32_t i = 0; i < m->program_count; i++) {
        amp_program *p = &m->programs[i];
        amp_model_free_table(&m->allocator, p->buffers, p->buffer_count, sizeof *p->buffers);
        amp_model_free_table(&m->allocator, p->kernels, p->kernels ? p->kernel_count : 0, sizeof *p->kernels);
        amp_model_free_table(&m->allocator, p->cuda_kernels, p->kernel_count, sizeof *p->cuda_kernels);
        amp_model_free_table(&m->allocator, p->results, p->result_count, sizeof *p->results);
    }
    amp_model_free_table(&m->allocator, m->programs, m->program_count, sizeof *m->programs);
}

void amp_model_find_programs(amp_model *m) {
    m->accumulate = m->desc.accumulate > 1 ? m->desc.accumulate : 1;
    m->train_step = amp_model_program_named(m, m->accumulate > 1 ? "micro_step" : "train_step");
    if (m->accumulate > 1) m->apply_step = amp_model_program_named(m, "apply_step");
    m->eval = amp_model_program_named(m, "eval");
    m->infer = amp_model_program_named(m, "infer");
    m->eval_fp32 = amp_model_program_named(m, "eval_fp32");
    m->infer_fp32 = amp_model_program_named(m, "infer_fp32");
    m->metrics = amp_model_program_named(m, "metrics");
    m->refresh = amp_model_program_named(m, "refresh");
}

/* ---- looking things up ------------------------------------------------------------------------------------------- */

bool amp_model_trains(const amp_model *m) { return m->train_step && (m->accumulate == 1 || m->apply_step); }

bool amp_model_has_fp32(const amp_model *m) { return m->infer_fp32 || (m->desc.low && !strcmp(m->desc.low, "f32")); }

const amp_program *amp_model_program_named(const amp_model *model, const char *name) {
    for (int32_t i = 0; i < model->program_count; i++)
        if (!strcmp(model->programs[i].name, name)) return &model->programs[i];
    return NULL;
}

int32_t amp_model_state_index(const amp_model *model, const char *name) {
    for (int32_t i = 0; i < model->state_count; i++)
        if (!strcmp(model->states[i].name, name)) return i;
    return -1;
}

int32_t amp_program_result_index(const amp_program *program, const char *name) {
    for (int32_t i = 0; i < program->result_count; i++)
        if (!strcmp(program->results[i].name, name)) return i;
    return -1;
}

int64_t amp_model_dim_at(const amp_model_dim *dim, int64_t n) { return dim->of_n ? dim->mul * n / dim->div : dim->mul; }

int64_t amp_model_state_elements(const amp_model_state *state) {
    int64_t count = 1;
    for (uint32_t i = 0; i < state->rank; i++) count *= state->dims[i];
    return count;
}

/* ---- measures ---------------------------------------------------------------------------------------------------- */

static const char loss_prefix[] = "loss.", metric_prefix[] = "metric.";

static const char *after(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) ? NULL : name + length;
}

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

typedef struct MeasureName { /* in two parts */
    const char *prefix, *name;
} MeasureName;

static MeasureName name_of(const amp_model *m, int32_t measure) {
    int32_t losses = amp_loss_count(m);
    if (measure == 0) return (MeasureName){"loss", ""};
    if (measure <= losses) return (MeasureName){loss_prefix, amp_loss_name(m, measure - 1)};
    return (MeasureName){metric_prefix, amp_metric_name(m, measure - 1 - losses)};
}

static bool is_named(const char *text, const MeasureName *measure) {
    const char *name = after(text, measure->prefix);
    return name && !strcmp(name, measure->name);
}

int32_t amp_measure_named(const amp_model *m, const char *text) {
    int32_t count = amp_measure_count(m);
    for (int32_t i = 0; i < count; i++) {
        MeasureName measure = name_of(m, i);
        if (is_named(text, &measure)) return i;
    }
    return -1;
}

int32_t amp_measure_result(const amp_model *m, const amp_program *p, int32_t measure) {
    MeasureName wanted = name_of(m, measure);
    for (int32_t i = 0; i < p->result_count; i++)
        if (is_named(p->results[i].name, &wanted)) return i;
    return -1;
}
