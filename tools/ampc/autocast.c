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

/* The model is written by now. */
static int write_page(Command *c, const char *model) {
    amp_error err = {0};
    amp_compile_result *page = NULL;
    amp_onnx_options o = c->onnx;
    size_t size;
    o.output = NULL;
    o.html = 1;
    const amp_status status = amp_onnx_autocast(model, &o, NULL, &page, &err);
    if (status) return command_report(status, &err);
    const void *data = amp_compile_result_data(page, &size);
    const int failed = command_write_file(c, "--html", c->html, OUTPUT_REPORT, data, size);
    amp_compile_result_release(page);
    return failed;
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
    outputs_output(&c->files, "--html", c->html, OUTPUT_REPORT);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    command_take_onnx(c);
    const amp_status status = amp_onnx_autocast(model, &c->onnx, NULL, &report, &err);
    if (status) return command_report(status, &err);
    size_t size;
    const void *data = amp_compile_result_data(report, &size);
    if (c->json || !c->html) failed = command_tell(c, data, size);
    amp_compile_result_release(report);
    return failed || !c->html ? failed : write_page(c, model);
}
