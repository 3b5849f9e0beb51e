/* step_report.h: what a step costs on both sides of a comparison, for people and for tools. */
#ifndef AMP_TOOLS_AMPC_STEP_REPORT_H
#define AMP_TOOLS_AMPC_STEP_REPORT_H

#include "base/json.h"
#include "tools/ampc/step_cost.h"

typedef struct StepPair {
    const Gpu *gpu;
    int64_t batch;
    StepCost before, after;
    amp_error missing; /* why steps are not compared; an empty message: they are */
} StepPair;

void step_report_print(const StepPair *p); /* to standard output */
void step_report_put(amp_json_writer *w, const char *key, const StepPair *p);

#endif
