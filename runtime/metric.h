/* metric.h: metrics are the results "metric.NAME" of train_step and eval, in the order of the model's first such
 * program. */
#ifndef AMP_RUNTIME_METRIC_H
#define AMP_RUNTIME_METRIC_H

#include "runtime/bound_program.h"

int32_t amp_metric_count(const amp_model *model);
/* "acc"; NULL past the end. */
const char *amp_metric_name(const amp_model *model, int32_t index);
/* One double per metric; a metric that the program does not compute is NaN. */
void amp_metrics_read(const amp_bound_program *bound, const amp_model *model, double *metrics);

#endif
