/* explain.c: see explain.h. */
#include "tools/ampc/explain.h"

#include <stdbool.h>

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

static int tell(Command *c, const amp_compile_options *other) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    c->which.struct_size = sizeof c->which;
    c->which.json = c->json != NULL;
    c->which.batch = c->batch;
    amp_status status = compares(c) ? amp_compare(other, &c->compile, &c->which, &result, &err)
                                    : amp_explain_ops(&c->compile, &c->which, &result, &err);
    if (status) return command_report(status, &err);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    failed = command_tell(c, data, size);
    amp_compile_result_release(result);
    return failed;
}

int command_explain(Command *c) {
    amp_compile_options other;
    if (c->argument_count > 1) c->which.path = c->arguments[1];
    int failed = command_take_model(c, "the model", c->arguments[0], &c->compile);
    if (failed) return failed;
    command_note_policy(c, "--policy", c->compile.policy);
    failed = take_other_side(c, &other);
    return failed ? failed : tell(c, &other);
}
