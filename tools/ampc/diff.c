/* diff.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/ampc/step_cost.h"
#include "tools/standard_streams.h"

typedef struct Sides {
    amp_compile_options before, after;
} Sides;

/* ---- which two --------------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* A built-in name, with whatever version, or a file that is called so. */
static bool is_policy(const char *word) {
    const size_t base = strcspn(word, "@");
    for (int i = 0; amp_policy_name(i); i++)
        if (strcspn(amp_policy_name(i), "@") == base && !strncmp(amp_policy_name(i), word, base)) return true;
    return ends_in(word, ".policy");
}

static bool is_model(const char *word) {
    return ends_in(word, ".amp") || ends_in(word, ".ir") || ends_in(word, ".so") || !strcmp(word, "-");
}

static void take_policy(Command *c, const char *policy, amp_compile_options *to) {
    to->policy = policy;
    command_note_policy(c, "the policy", policy);
}

/* A model, as it is or under the first policy, and under the other. */
static int take_policies(Command *c, Sides *s) {
    const bool both = c->argument_count == 3;
    if (both && c->compile.policy)
        return command_fail("diff: --policy %s: the arguments have two policies already", c->compile.policy);
    for (int i = 1; i < c->argument_count; i++)
        if (is_model(c->arguments[i]))
            return command_fail("diff: %s is no policy: of three arguments the last two are; two models under one "
                                "policy are compared by ampc diff MODEL MODEL --policy POLICY",
                                c->arguments[i]);
    const int failed = command_take_model(c, "the model", c->arguments[0], &s->before);
    if (failed) return failed;
    s->after = s->before;
    if (both) take_policy(c, c->arguments[1], &s->before);
    take_policy(c, c->arguments[c->argument_count - 1], &s->after);
    return 0;
}

static int take_models(Command *c, Sides *s) {
    const char *other = c->arguments[1];
    if (!is_model(other) && access(other, F_OK) != 0) {
        command_fail("diff: %s is neither a file nor a built-in policy; ampc policy list names those", other);
        return 1;
    }
    const int failed = command_take_model(c, "the model", c->arguments[0], &s->before);
    return failed ? failed : command_take_model(c, "the model", other, &s->after);
}

static int take_sides(Command *c, Sides *s) {
    *s = (Sides){c->compile, c->compile};
    if (is_policy(c->arguments[0]))
        return command_fail("diff: %s is a policy, and the first argument is a model; ampc policy diff compares two "
                            "policies",
                            c->arguments[0]);
    if (c->argument_count < 2)
        return command_fail("diff: %s with what? Give another model, or one or two policies", c->arguments[0]);
    command_note_policy(c, "--policy", c->compile.policy);
    return c->argument_count == 3 || is_policy(c->arguments[1]) ? take_policies(c, s) : take_models(c, s);
}

/* ---- what differs ------------------------------------------------------------------------------------------------ */

/* Where one cannot be compiled and loaded (no C compiler, a model of another machine), that is told instead. */
static amp_status compare_steps(const Sides *s, StepPair *p, amp_error *err) {
    amp_status status = step_cost(&s->before, p->gpu, p->batch, &p->before, err);
    if (!status) status = step_cost(&s->after, p->gpu, p->batch, &p->after, err);
    if (!status || status == AMP_INVALID_ARGUMENT || status == AMP_CANCELLED || status == AMP_OUT_OF_MEMORY)
        return status;
    p->missing = *err;
    return AMP_OK;
}

/* The members of the comparison, which is one object, and "step". */
static int write_json(Command *c, const char *comparison, size_t size, const StepPair *p) {
    amp_json_writer w;
    amp_error err = {0};
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    step_report_put(&w, "step", p);
    amp_json_end_object(&w);
    while (size && comparison[size - 1] != '}') size--; /* the end of the line */
    amp_status status = amp_json_writer_status(&w, &err);
    char *joined = NULL;
    const int length = status ? -1 : asprintf(&joined, "%.*s,%s\n", (int)size - 1, comparison, w.data + 1);
    int failed = status       ? command_report(status, &err)
                 : length < 0 ? (fputs("ampc: --json: memory ran out\n", stderr), 1)
                              : command_tell(c, joined, (size_t)length);
    if (length >= 0) free(joined);
    amp_json_writer_free(&w);
    return failed;
}

static int tell(Command *c, const Sides *s, StepPair *p) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    c->which.struct_size = sizeof c->which;
    c->which.form = c->json ? AMP_EXPLAIN_JSON : AMP_EXPLAIN_TEXT;
    amp_status status = amp_compare(&s->before, &s->after, &c->which, &result, &err);
    if (!status) status = compare_steps(s, p, &err);
    int failed = status ? command_report(status, &err) : 0;
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    if (!failed && c->json) failed = write_json(c, data, size, p);
    else if (!failed) {
        failed = command_tell(c, data, size);
        step_report_print(p);
    }
    amp_compile_result_release(result);
    return failed;
}

/* ---- of ONNX ----------------------------------------------------------------------------------------------------- */

static bool is_onnx(const char *word) { return ends_in(word, ".onnx"); }

static int diff_onnx(Command *c) {
    amp_error err = {0};
    amp_compile_result *report = NULL;
    size_t size;
    if (c->argument_count != 2 || !is_onnx(c->arguments[0]) || !is_onnx(c->arguments[1]))
        return command_fail("diff: %s is an ONNX model, which is compared with another ONNX model alone",
                            c->arguments[is_onnx(c->arguments[0]) ? 0 : 1]);
    for (int i = 0; i < 2; i++) outputs_input(&c->files, "the model", c->arguments[i]);
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    command_take_onnx(c);
    const amp_status status = amp_onnx_compare(c->arguments[0], c->arguments[1], &c->onnx, &report, &err);
    if (status) return command_report(status, &err);
    const void *data = amp_compile_result_data(report, &size);
    failed = command_tell(c, data, size);
    amp_compile_result_release(report);
    return failed;
}

int command_diff(Command *c) {
    Sides s;
    StepPair p = {.batch = c->batch ? c->batch : 32};
    for (int i = 0; i < c->argument_count; i++)
        if (is_onnx(c->arguments[i])) return diff_onnx(c);
    int failed = command_find_gpu(c, &p.gpu);
    if (!failed) failed = take_sides(c, &s);
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    if (!failed) failed = outputs_check(&c->files);
    return failed ? failed : tell(c, &s, &p);
}
