/* compile.c: see command.h. */
#include "tools/ampc/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tools/standard_streams.h"

/* ---- what the library reports ------------------------------------------------------------------------------------ */

/* Ends the line of a pass, whose text tells whether it changed anything; the first line names the stage. */
static void end_timing(Command *c, const char *text, size_t size) {
    const char *body = memchr(text, '\n', size);
    size_t body_size = body ? size - (size_t)(body - text) : 0;
    int unchanged = c->last_text && body_size == c->last_size && !memcmp(body, c->last_text, body_size);
    fputs(unchanged ? " (unchanged)\n" : "\n", stderr);
    if (unchanged) return;
    free(c->last_text);
    c->last_text = body ? malloc(body_size) : NULL;
    c->last_size = body_size;
    if (c->last_text) memcpy(c->last_text, body, body_size);
}

static void on_dump(void *user, const char *pass, const char *text, size_t size) {
    Command *c = user;
    if (c->time_passes) end_timing(c, text, size);
    if (c->dump_pass && (!*c->dump_pass || !strcmp(c->dump_pass, pass))) print_plain(stdout, text, size);
    if (!c->dump_dir) return;
    char path[AMP_FILE_PATH];
    snprintf(path, sizeof path, "%s/%02d-%s.ir", c->dump_dir, c->dump_count++, pass);
    if (!c->failed) c->failed = command_write_file(c, "--dump-dir", path, OUTPUT_IR, text, size);
}

static bool is_pass(const char *name) {
    for (int i = 0; amp_compile_pass(i); i++)
        if (!strcmp(amp_compile_pass(i), name)) return true;
    return false;
}

static void print_seconds(const char *row, double seconds, const char *end) {
    fprintf(stderr, "%-12s %9.3f ms%s", row, 1e3 * seconds, end);
}

/* The library dumps a pass just after it has told its time. */
static void on_timing(void *user, const char *pass, double seconds) {
    Command *c = user;
    c->timed += seconds;
    print_seconds(pass, seconds, is_pass(pass) ? "" : "\n");
}

/* What no row has: reading and writing files, and the IR as text, which says whether a pass changed anything. */
static void end_times(const Command *c, double total) {
    print_seconds("other", total - c->timed, "\n");
    print_seconds("total", total, "\n");
}

/* ---- from the model to files ------------------------------------------------------------------------------------- */

/* By amp_emit. */
static const struct {
    const char *word; /* of --emit, and the ending of a file */
    OutputKind kind;
} emits[] = {{"so", OUTPUT_MODEL}, {"c", OUTPUT_C},     {"ir", OUTPUT_IR},
             {"cu", OUTPUT_CUDA},  {"ptx", OUTPUT_PTX}, {"o", OUTPUT_OBJECT}};

int emit_named(const char *word) {
    for (int i = 0; i < (int)(sizeof emits / sizeof *emits); i++)
        if (!strcmp(word, emits[i].word)) return i;
    return -1;
}

/* "dir/mlp.amp" -> "dir/mlp.so" */
static void default_output(Command *c, char *out, size_t size) {
    const char *name = c->compile.name, *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    int stem = dot ? (int)(dot - name) : (int)strlen(name);
    snprintf(out, size, "%.*s.%s", stem, name, emits[c->compile.emit].word);
}

static int write_rules(Command *c, const char *path, const char *output) {
    size_t size;
    if (!path) return 0;
    char *text = dependency_file_text(&c->dependencies, output, &size);
    if (!text) return fprintf(stderr, "ampc: -MF %s: no memory for the list of files\n", path), 1;
    int failed = command_write_file(c, "-MF", path, OUTPUT_RULES, text, size);
    free(text);
    return failed;
}

/* Compiles, then writes: only then is it known which files were read. */
static int compile_to(Command *c, const char *output, const char *rules) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    const OutputKind kind = emits[c->compile.emit].kind;
    outputs_output(&c->files, "-o", output, kind);
    outputs_output(&c->files, "-MF", rules, OUTPUT_RULES);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    const double start = amp_seconds();
    amp_status status = amp_compile(&c->compile, &result, &err);
    if (status) return command_report(status, &err);
    if (c->time_passes) end_times(c, amp_seconds() - start);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    failed = c->failed ? c->failed : outputs_check(&c->files); /* now with all that was read */
    if (!failed && output) failed = command_write_file(c, "-o", output, kind, data, size);
    amp_compile_result_release(result);
    return failed ? failed : write_rules(c, rules, output);
}

/* To look, not to build. */
static int dump(Command *c) {
    c->compile.emit = AMP_EMIT_IR;
    if (*c->dump_pass) c->compile.stop_after = c->dump_pass;
    return compile_to(c, NULL, NULL);
}

static int build(Command *c) {
    char output[AMP_FILE_PATH], rules[AMP_FILE_PATH + 2];
    if (c->input && !c->output) return command_fail("the model is read from standard input: give -o%s", "");
    if (c->output) snprintf(output, sizeof output, "%s", c->output);
    else default_output(c, output, sizeof output);
    if (!strcmp(output, "-") && c->dependencies.wanted && !c->dependencies.path)
        return command_fail("-MD with -o %s: give -MF FILE", output);
    snprintf(rules, sizeof rules, "%s.d", output);
    return compile_to(c, output, !c->dependencies.wanted ? NULL : c->dependencies.path ? c->dependencies.path : rules);
}

static int check_pass(const char *option, const char *pass) {
    if (!pass || !*pass || is_pass(pass)) return 0;
    fprintf(stderr, "ampc: %s=%s: there is no such pass; the passes are ", option, pass);
    for (int i = 0; amp_compile_pass(i); i++) fprintf(stderr, "%s%s", i ? ", " : "", amp_compile_pass(i));
    fputc('\n', stderr);
    return 2;
}

int command_compile(Command *c) {
    const int wrong = check_pass("--stop-after", c->compile.stop_after) + check_pass("--dump-ir", c->dump_pass);
    if (wrong) return 2;
    if (c->dependencies.path) c->dependencies.wanted = true;
    if (c->dump_pass || c->dump_dir || c->time_passes) c->compile.dump = on_dump;
    if (c->time_passes) c->compile.timing = on_timing;
    if (c->dump_dir && mkdir(c->dump_dir, 0777) && errno != EEXIST)
        return fprintf(stderr, "ampc: --dump-dir %s: %s\n", c->dump_dir, strerror(errno)), 1;
    const int failed = command_take_model(c, "the model", c->arguments[0], &c->compile);
    if (failed) return failed;
    command_note_policy(c, "--policy", c->compile.policy);
    return c->dump_pass && !c->output && c->compile.emit == AMP_EMIT_SO ? dump(c) : build(c);
}
