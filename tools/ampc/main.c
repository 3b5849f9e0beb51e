/* main.c: the command line over libampc (amp/compile.h): arguments, and which command they ask for. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amp/compile.h"
#include "base/alloc.h"
#include "base/file.h"
#include "tools/ampc/command.h"
#include "tools/ampc/lsp/server.h"
#include "tools/options.h"
#include "tools/standard_streams.h"

/* ---- what the library reports ------------------------------------------------------------------------------------ */

static void on_diagnostic(void *user, const char *text, int32_t is_error) {
    (void)user, (void)is_error;
    print_diagnostic(stderr, text);
}

/* --verbose: "ampc: 3/17 autodiff". */
static int32_t on_progress(void *user, const char *stage, int32_t index, int32_t count) {
    (void)user;
    fprintf(stderr, "ampc: %d/%d %s\n", index + 1, count, stage);
    return 0;
}

static void on_dependency(void *user, const char *path) {
    Command *c = user;
    const char *kept = dependency_file_add(&c->dependencies, path);
    if (kept) outputs_input(&c->files, "the file", kept);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* The amprun that was built or installed with this ampc; false: it is not known where that would be. */
static bool find_beside(char path[AMP_FILE_PATH]) {
    static const char name[] = "amprun";
    const ssize_t length = readlink("/proc/self/exe", path, AMP_FILE_PATH - sizeof name);
    if (length <= 0) return false;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    memcpy(slash + 1, name, sizeof name);
    return true;
}

/* Becomes amprun, whose command suggest has the data and the trainings, with the arguments as they are.  Returns only
 * where that is not found: reports, and returns 1. */
static int suggest_become_amprun(char **argv) {
    char path[AMP_FILE_PATH], name[] = "amprun";
    const bool is_known = find_beside(path);
    argv[0] = name;
    if (is_known) execv(path, argv);
    if (!is_known || errno == ENOENT) execvp(name, argv);
    fprintf(stderr, "ampc: suggest: %s: %s; it trains the model, and must be beside ampc or in a folder of PATH\n",
            is_known ? path : name, strerror(errno));
    return 1;
}

static int command_lsp(Command *c) {
    (void)c;
    return server_run(stdin, stdout);
}

/* In the order of the table of commands, but for suggest, which is amprun's. */
static int (*const commands[])(Command *c) = {command_compile, command_explain,  command_lint, command_diff,
                                              command_policy,  command_autocast, command_lsp};

static void command_free(Command *c) {
    free(c->last_text);
    amp_free(NULL, c->input, c->input_size + 1);
    dependency_file_free(&c->dependencies);
    outputs_free(&c->files);
}

int main(int argc, char **argv) {
    static Command c = {.files = {.tool = "ampc"}};
    standard_streams_open();
    if (argc > 1 && !strcmp(argv[1], "suggest")) return suggest_become_amprun(argv);
    c.compile = (amp_compile_options){.struct_size = sizeof c.compile,
                                      .defines = c.defines,
                                      .overrides = c.overrides,
                                      .diagnostic = on_diagnostic,
                                      .dependency = on_dependency,
                                      .cancelled = ampc_signals_cancelled,
                                      .user = &c};
    c.lint = (amp_lint_options){.struct_size = sizeof c.lint, .allow = c.allowed};
    c.onnx = (amp_onnx_options){.struct_size = sizeof c.onnx, .keep = c.kept, .assume = c.assumed};
    ampc_signals_watch();
    OptionsRead read = {.tool = &ampc_tool, .args = &c};
    const int done = options_read(&read, argc, argv);
    if (done == 1) return standard_streams_flush("ampc");
    if (done) return command_fail("%s", read.message);
    while (optind < read.argc) c.arguments[c.argument_count++] = read.argv[optind++];
    while (c.allowed[c.lint.allow_count]) c.lint.allow_count++;
    if (c.verbose) c.compile.progress = on_progress;
    int failed = commands[read.command](&c);
    command_free(&c);
    ampc_signals_end();
    return standard_streams_flush("ampc") ? 1 : failed;
}
