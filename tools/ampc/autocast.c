/* autocast.c: see command.h. */
#include "tools/ampc/command.h"

#include <string.h>

#include "tools/standard_streams.h"

static size_t count(const char *const *list) {
    size_t n = 0;
    while (list[n]) n++;
    return n;
}

void command_take_onnx(Command *c) {
    amp_onnx_options *o = &c->onnx;
    o->output = c->output;
    o->force = c->files.force;
    o->json = c->json != NULL;
    o->all = c->which.all;
    o->precision = c->compile.precision;
    o->policy = c->compile.policy;
    o->keep_count = count(c->kept);
    o->assume_count = count(c->assumed);
    o->batch_hint = c->compile.batch_hint;
    o->diagnostic = c->compile.diagnostic;
    o->dependency = c->compile.dependency;
    o->user = c->compile.user;
}

int command_autocast(Command *c) {
    amp_error err = {0};
    amp_compile_result *report = NULL;
    const char *model = c->arguments[0];
    if (!strcmp(model, "-") || (c->output && !strcmp(c->output, "-")))
        return command_fail("autocast: %s: an ONNX model may have a file beside it; give the names of files", "-");
    outputs_input(&c->files, "the model", model);
    command_note_policy(c, "--policy", c->compile.policy);
    outputs_input(&c->files, "--ranges", c->onnx.ranges);
    outputs_output(&c->files, "-o", c->output, OUTPUT_ONNX);
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    command_take_onnx(c);
    const amp_status status = amp_onnx_autocast(model, &c->onnx, NULL, &report, &err);
    if (status) return command_report(status, &err);
    size_t size;
    const void *data = amp_compile_result_data(report, &size);
    failed = command_tell(c, data, size);
    amp_compile_result_release(report);
    return failed;
}
