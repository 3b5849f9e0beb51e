/* policy.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/standard_streams.h"

static amp_policy_options options_of(const Command *c) {
    return (amp_policy_options){.struct_size = sizeof(amp_policy_options),
                                .json = c->json != NULL,
                                .diagnostic = c->compile.diagnostic,
                                .dependency = c->compile.dependency,
                                .user = c->compile.user};
}

static amp_status list(Command *c, amp_compile_result **out, amp_error *err) {
    const amp_policy_options options = options_of(c);
    return amp_policy_list(&options, out, err);
}

static amp_status show(Command *c, amp_compile_result **out, amp_error *err) {
    const amp_policy_options options = options_of(c);
    return amp_policy_text(c->arguments[1], &options, out, err);
}

static amp_status check(Command *c, amp_compile_result **out, amp_error *err) {
    const amp_policy_options options = options_of(c);
    return amp_policy_check(c->arguments[1], &options, out, err);
}

static amp_status diff(Command *c, amp_compile_result **out, amp_error *err) {
    const amp_policy_options options = options_of(c);
    return amp_policy_diff(c->arguments[1], c->arguments[2], &options, out, err);
}

typedef struct Subcommand {
    const char *word;
    int policies; /* that it takes */
    const char *takes;
    amp_status (*run)(Command *c, amp_compile_result **out, amp_error *err);
} Subcommand;

static const Subcommand subcommands[] = {
    {"list", 0, "takes no policy", list},
    {"show", 1, "takes one policy, a built-in name or a file", show},
    {"check", 1, "takes one policy, a built-in name or a file", check},
    {"diff", 2, "takes two policies, built-in names or files", diff},
};

/* To a file or a pipe as it is, to be copied. */
static void print_text(const void *data, size_t size) {
    if (standard_streams_terminal(stdout)) print_plain(stdout, data, size);
    else standard_streams_note(fwrite(data, 1, size, stdout) != size);
}

static int run(Command *c, const Subcommand *sub) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    for (int i = 1; i <= sub->policies; i++) command_note_policy(c, "the policy", c->arguments[i]);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    amp_status status = sub->run(c, &result, &err);
    if (status) return command_report(status, &err);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    if (sub->run == show) print_text(data, size);
    else failed = command_tell(c, data, size);
    amp_compile_result_release(result);
    return failed;
}

int command_policy(Command *c) {
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
        const Subcommand *sub = &subcommands[i];
        if (strcmp(c->arguments[0], sub->word) != 0) continue;
        if (c->argument_count != 1 + sub->policies)
            return fprintf(stderr, "ampc: policy %s: %s; see ampc --help\n", sub->word, sub->takes), 2;
        if (c->json && sub->run == show)
            return command_fail("policy show: --json %s: it prints the text as it is; see policy check", c->json);
        return run(c, sub);
    }
    return command_fail("policy %s: it is list, show, check or diff; see ampc --help", c->arguments[0]);
}
