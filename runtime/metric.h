/* metric.h: what a program measures: results "loss", "loss.NAME" and "metric.NAME" of train_step and eval; and metrics
 * that the program "metrics" computes from averages of those. */
#ifndef AMP_RUNTIME_METRIC_H
#define AMP_RUNTIME_METRIC_H

#include "runtime/session.h"

/* Those of the model's evaluation, then those that are computed from averages. */
int32_t amp_metric_count(const amp_model *model);
/* "acc"; NULL past the end. */
const char *amp_metric_name(const amp_model *model, int32_t index);
/* Named losses. */
int32_t amp_loss_count(const amp_model *model);
const char *amp_loss_name(const amp_model *model, int32_t index);

/* "loss", then the named losses, then the metrics. */
int32_t amp_measure_count(const amp_model *model);
/* Adds what a run left in |bound|; a measure that the program does not compute is NaN. */
void amp_measures_add(const amp_bound_program *bound, const amp_model *model, double *sums);

#endif
