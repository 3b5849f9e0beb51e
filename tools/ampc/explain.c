/* explain.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdbool.h>
#include <stdio.h>

#include "tools/ampc/report_parts.h"

static bool compares(const Command *c) { return c->against || c->against_precision || c->against_policy; }

/* What the model is compared with: the same options, but for those that say what differs.  A policy that is chosen
 * brings its own precision, and the other way round. */
static int take_other_side(Command *c, amp_compile_options *other) {
    *other = c->compile;
    if (c->against_precision || c->against_policy) {
        other->precision = c->against_precision;
        other->policy = c->against_policy;
    }
    command_note_policy(c, "--against-policy", c->against_policy);
    return c->against ? command_take_model(c, "--against", c->against, other) : 0;
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static amp_status make_report(Command *c, const amp_compile_options *other, amp_compile_result **out, amp_error *err) {
    amp_compile_options quiet = c->compile;
    ReportParts parts;
    const Gpu *gpu = NULL;
    command_find_gpu(c, &gpu); /* a wrong name was refused before */
    amp_status status = report_parts_gather(c, compares(c) ? other : NULL, gpu, &parts, err);
    c->which.parts = parts.part;
    c->which.part_count = (size_t)parts.count;
    quiet.diagnostic = NULL; /* told while the parts were gathered */
    if (!status) status = amp_explain(&quiet, &c->which, out, err);
    report_parts_free(&parts);
    return status;
}

/* JSON and text are of the comparison where there is one. */
static amp_status make(Command *c, const amp_compile_options *other, amp_compile_result **out, amp_error *err) {
    if (c->which.form == AMP_EXPLAIN_HTML) return make_report(c, other, out, err);
    if (compares(c) && c->which.form != AMP_EXPLAIN_DOT) return amp_compare(other, &c->compile, &c->which, out, err);
    return amp_explain(&c->compile, &c->which, out, err);
}

/* What can be written; text, which is last, where nothing else is asked for. */
typedef struct Output {
    const char *option, *path;
    amp_explain_form form;
    OutputKind kind;
} Output;
enum { OUTPUTS = 4 };

static void list_outputs(const Command *c, Output out[OUTPUTS]) {
    out[0] = (Output){"--json", c->json, AMP_EXPLAIN_JSON, OUTPUT_EXPLANATION};
    out[1] = (Output){"--dot", c->dot, AMP_EXPLAIN_DOT, OUTPUT_DRAWING};
    out[2] = (Output){"--html", c->html, AMP_EXPLAIN_HTML, OUTPUT_REPORT};
    out[3] = (Output){NULL, c->json || c->dot || c->html ? NULL : "-", AMP_EXPLAIN_TEXT, OUTPUT_EXPLANATION};
}

static int tell_one(Command *c, const amp_compile_options *other, const Output *o) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    size_t size;
    c->which.form = o->form;
    amp_status status = make(c, other, &result, &err);
    if (status) return command_report(status, &err);
    const void *data = amp_compile_result_data(result, &size);
    const int failed =
        o->option ? command_write_file(c, o->option, o->path, o->kind, data, size) : command_tell(c, data, size);
    amp_compile_result_release(result);
    return failed;
}

static int tell(Command *c, const amp_compile_options *other) {
    Output outputs[OUTPUTS];
    list_outputs(c, outputs);
    for (int i = 0; i < OUTPUTS; i++)
        if (outputs[i].option) outputs_output(&c->files, outputs[i].option, outputs[i].path, outputs[i].kind);
    int failed = outputs_check(&c->files);
    c->which.struct_size = sizeof c->which;
    c->which.batch = c->batch;
    for (int i = 0; i < OUTPUTS && !failed; i++)
        if (outputs[i].path) failed = tell_one(c, other, &outputs[i]);
    return failed;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* What only one form has, and a comparison has not. */
static int check_options(const Command *c) {
    const Gpu *gpu;
    if (c->which.sort && compares(c) && !c->html)
        return command_fail("--sort %s: a comparison is in the order of the model", c->which.sort);
    return c->gpu ? command_find_gpu(c, &gpu) : 0;
}

int command_explain(Command *c) {
    amp_compile_options other;
    if (c->argument_count > 1) c->which.path = c->arguments[1];
    int failed = check_options(c);
    if (!failed) failed = command_take_model(c, "the model", c->arguments[0], &c->compile);
    if (failed) return failed;
    command_note_policy(c, "--policy", c->compile.policy);
    if (c->log) outputs_input(&c->files, "--log", c->log);
    failed = take_other_side(c, &other);
    return failed ? failed : tell(c, &other);
}
