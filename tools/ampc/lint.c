/* lint.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdio.h>

#include "tools/ampc/step_cost.h"

/* Statuses that other commands give to a model that was refused mean findings here. */
static int refused(int status) { return status ? 2 : 0; }

/* The modelled time of a step on --gpu.  What keeps the model from being compiled is told by amp_lint. */
static int take_times(Command *c) {
    const Gpu *gpu = NULL;
    StepCost cost;
    amp_error err = {0};
    const int failed = command_find_gpu(c, &gpu);
    if (failed) return failed;
    amp_status status = step_cost(&c->compile, gpu, c->batch ? c->batch : 32, &cost, &err);
    if (status == AMP_BAD_SOURCE) return 0;
    if (status) return command_report(status, &err);
    const char *why = cost.no_cuda[0] ? cost.no_cuda : cost.no_time;
    if (why[0]) {
        fprintf(stderr, "ampc: --gpu %s: no time of a step is known: %s\n", gpu->name, why);
        return 1;
    }
    c->lint.device = gpu->name;
    c->lint.microseconds = cost.microseconds;
    c->lint.microseconds_f32 = cost.microseconds_f32;
    return 0;
}

static int tell(Command *c) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    int32_t count = 0;
    size_t size;
    c->lint.json = c->json != NULL;
    c->lint.batch = c->batch;
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    int failed = outputs_check(&c->files);
    if (!failed && c->gpu) failed = take_times(c);
    if (failed) return refused(failed);
    amp_status status = amp_lint(&c->compile, &c->lint, &count, &result, &err);
    if (status) return refused(command_report(status, &err));
    const char *data = amp_compile_result_data(result, &size);
    if (c->json) failed = command_write_file(c, "--json", c->json, OUTPUT_EXPLANATION, data, size);
    else print_diagnostic(stdout, data);
    amp_compile_result_release(result);
    return failed ? refused(failed) : count ? 1 : 0;
}

int command_lint(Command *c) {
    int failed = command_take_model(c, "the model", c->arguments[0], &c->compile);
    if (failed) return refused(failed);
    command_note_policy(c, "--policy", c->compile.policy);
    return tell(c);
}
