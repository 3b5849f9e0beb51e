/* metric.c: see metric.h. */
#include "runtime/metric.h"

#include <math.h>
#include <string.h>

static const char prefix[] = "metric.";

static const char *name_of(const amp_model_result *r) {
    return strncmp(r->name, prefix, sizeof prefix - 1) ? NULL : r->name + sizeof prefix - 1;
}

static const amp_program *program_of(const amp_model *m) { return m->eval ? m->eval : m->train_step; }

const char *amp_metric_name(const amp_model *m, int32_t index) {
    const amp_program *p = program_of(m);
    for (int32_t i = 0; p && i < p->result_count; i++)
        if (name_of(&p->results[i]) && index-- == 0) return name_of(&p->results[i]);
    return NULL;
}

int32_t amp_metric_count(const amp_model *m) {
    int32_t count = 0;
    while (amp_metric_name(m, count)) count++;
    return count;
}

static double read_one(const amp_bound_program *bound, const char *metric) {
    const amp_program *p = bound->program;
    for (int32_t i = 0; i < p->result_count; i++) {
        const char *name = name_of(&p->results[i]);
        if (name && !strcmp(name, metric)) return amp_bound_program_scalar(bound, i);
    }
    return NAN;
}

void amp_metrics_read(const amp_bound_program *bound, const amp_model *m, double *metrics) {
    const char *name;
    for (int32_t i = 0; (name = amp_metric_name(m, i)); i++) metrics[i] = read_one(bound, name);
}
