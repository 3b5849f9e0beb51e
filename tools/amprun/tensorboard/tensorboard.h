/* tensorboard.h: --tensorboard: what a training writes for TensorBoard. */
#ifndef AMP_TOOLS_AMPRUN_TENSORBOARD_H
#define AMP_TOOLS_AMPRUN_TENSORBOARD_H

#include "tools/amprun/evaluate.h"
#include "tools/amprun/stats/stats.h"
#include "tools/amprun/tensorboard/events.h"

/* Scalars by the names that they have in --log. */
void tensorboard_step(EventFile *f, const Run *run, const amp_step_report *report, const double *losses,
                      const double *metrics, double samples_per_s);
/* Of an evaluation after |iteration|. */
void tensorboard_evaluation(EventFile *f, const Run *run, int64_t iteration, const Evaluation *test);
/* What --stats has counted in |iteration|, as histograms of magnitudes, in buckets from one power of two to the next:
 * "magnitude/NAME". */
void tensorboard_stats(EventFile *f, const Stats *stats, int64_t iteration);

#endif
