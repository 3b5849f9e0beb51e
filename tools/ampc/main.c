/* main.c: the command line over libampc (amp/compile.h): arguments, and which command they ask for. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/compile.h"
#include "base/alloc.h"
#include "tools/ampc/ampc_options.h"
#include "tools/ampc/ampc_signals.h"
#include "tools/ampc/command.h"
#include "tools/ampc/compile.h"
#include "tools/ampc/diagnostic_colours.h"
#include "tools/ampc/diff.h"
#include "tools/ampc/explain.h"
#include "tools/ampc/lint.h"
#include "tools/ampc/lsp.h"
#include "tools/ampc/policy.h"
#include "tools/ampc/suggest.h"
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

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static int add_define(Command *c, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text) return command_fail("-D %s: write -D NAME=VALUE", text);
    if (c->compile.define_count == MAX_DEFINES) return command_fail("-D %s: too many definitions", text);
    *equals = 0;
    c->defines[c->compile.define_count++] = (amp_define){text, equals + 1};
    return 0;
}

static int add_override(Command *c, char *text) {
    char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return command_fail("--override %s: write --override PATH=WORD, 'h.0.*=f32' say", text);
    if (c->compile.override_count == MAX_OVERRIDES) return command_fail("--override %s: too many of them", text);
    *equals = 0;
    c->overrides[c->compile.override_count++] = (amp_override){.path = text, .word = equals + 1};
    return 0;
}

static int add_allow(Command *c, char *text) {
    if (c->lint.allow_count == MAX_ALLOWED) return command_fail("--allow %s: too many of them", text);
    c->allowed[c->lint.allow_count++] = text;
    return 0;
}

/* "elaborate, autocast, ..." */
static void print_passes(FILE *to) {
    for (int i = 0; amp_compile_pass(i); i++) fprintf(to, "%s%s", i ? ", " : "", amp_compile_pass(i));
    fputc('\n', to);
}

static int check_pass(const char *option, const char *pass) {
    if (is_pass(pass)) return 0;
    fprintf(stderr, "ampc: %s=%s: there is no such pass; the passes are ", option, pass);
    print_passes(stderr);
    return 2;
}

static int leave_out(Command *c, char *pass) {
    const size_t used = strlen(c->no_pass), size = strlen(pass) + 1;
    if (used + 1 + size > sizeof c->no_pass) return command_fail("--no-pass=%s: too many of them", pass);
    if (used) c->no_pass[used] = ',';
    memcpy(c->no_pass + used + (used > 0), pass, size);
    c->compile.no_pass = c->no_pass;
    return 0;
}

static int choose_emit(Command *c, char *what) {
    static const char *const names[] = {"so", "c", "ir", "cu", "ptx", "o"};
    for (int i = 0; i < 6; i++)
        if (!strcmp(what, names[i])) {
            c->compile.emit = (amp_emit)i;
            return 0;
        }
    return command_fail("--emit %s: so, o, c, ir, cu or ptx", what);
}

/* -MD or -MF FILE: |word| is what follows the M. */
static int take_dependencies(Command *c, const char *word, char **argv) {
    bool named = !strcmp(word, "F");
    if (!named && strcmp(word, "D")) return command_fail("-M%s: there is no such option; see ampc --help", word);
    if (named && !argv[optind]) return command_fail("%s: needs a value; see ampc --help", "-MF");
    c->dependencies.wanted = true;
    if (named) c->dependencies.path = argv[optind++];
    return 0;
}

static int take_stop(Command *c, char *text) {
    c->compile.stop_after = text;
    return check_pass("--stop-after", text);
}

static int take_dump(Command *c, char *text) {
    c->dump = 1;
    c->dump_pass = text;
    return text ? check_pass("--dump-ir", text) : 0;
}

/* What is printed about ampc itself. */
static int print_about(const Command *c, int option, const char *form) {
    if (option == O_DESCRIBE && !options_describe(&ampc_tool, form, stdout))
        return command_fail("--describe %s: bash, zsh, fish or man", form);
    if (option == O_VERSION) printf("ampc %s\n", amp_compile_version());
    if (option != O_HELP) return 1;
    options_help(&ampc_tool, c->command ? ampc_commands[c->command].name : NULL, stdout);
    print_passes(stdout);
    return 1;
}

/* Of options whose values need more than their place (OTHER). */
static int (*const takers[O_STDIO + 1])(Command *c, char *text) = {
    ['D'] = add_define,   [O_OVERRIDE] = add_override, [O_ALLOW] = add_allow, [O_EMIT] = choose_emit,
    [O_STOP] = take_stop, [O_NO_PASS] = leave_out,     [O_DUMP] = take_dump,
};

/* 0: go on; 1: done; 2: wrong */
static int take_option(Command *c, const ToolOption *o) {
    const OptionForm form = o->into.form;
    void *const to = (char *)c + o->into.at;
    char *end;
    errno = 0;
    if (o->id >= O_DESCRIBE && o->id <= O_VERSION) return print_about(c, o->id, optarg);
    if (takers[o->id]) return takers[o->id](c, optarg);
    if (o->id == O_COLOR && !standard_streams_colour_when(optarg))
        return command_fail("--color %s: auto, always or never", optarg);
    if (o->id == O_VERBOSE) c->compile.progress = on_progress;
    if (form == INTO_TEXT) *(const char **)to = optarg;
    if (form == INTO_FLAG) *(int32_t *)to = 1;
    if (form != INTO_COUNT || ((*(int64_t *)to = strtoll(optarg, &end, 10)) > 0 && !errno && !*end)) return 0;
    fprintf(stderr, "ampc: --%s %s: a positive whole number\n", o->name, optarg);
    return 2;
}

static int refuse_option(int option, char **argv) {
    char letter[] = {'-', (char)optopt, 0};
    const char *text = optopt && optopt < O_PRECISION ? letter : argv[optind - 1];
    return command_fail(
        option == ':' ? "%s: needs a value; see ampc --help" : "%s: there is no such option; see ampc --help", text);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* By the order of ampc_commands, but for suggest, which is amprun's. */
static const struct {
    int (*run)(Command *c);
    int most;         /* arguments that are no options */
    const char *none; /* what is said where there are none; NULL: it takes none */
} commands[] = {
    {command_compile, 1, "no model was given; see ampc --help%s"},
    {command_explain, 2, "no model was given; see ampc --help%s"},
    {command_lint, 1, "no model was given; see ampc --help%s"},
    {command_diff, 3, "diff: give two models, or a model and one or two policies; see ampc --help%s"},
    {command_policy, 3, "policy: say list, show, check or diff; see ampc --help%s"},
    {command_lsp, 0, NULL},
};

/* The index of a command: that of the first argument, else compiling, which has no word. */
static int find_command(const char *word) {
    for (int i = 1; ampc_commands[i].name; i++)
        if (word && !strcmp(word, ampc_commands[i].name)) return i;
    return 0;
}

/* "--json: only with ampc explain", "--emit: explain does not take this" */
static int refuse_for_command(const Command *c, const ToolOption *o) {
    const char *dashes = o && o->name ? "--" : "-", *name = !o ? "M" : o->name ? o->name : o->letter;
    if (c->command) {
        fprintf(stderr, "ampc: %s%s: %s does not take this; see ampc --help\n", dashes, name,
                ampc_commands[c->command].name);
        return 2;
    }
    fprintf(stderr, "ampc: %s%s: only with ampc ", dashes, name);
    for (int i = 1, told = 0; ampc_commands[i].name; i++)
        if (o->commands >> i & 1) fprintf(stderr, "%s%s", told++ ? ", " : "", ampc_commands[i].name);
    fputc('\n', stderr);
    return 2;
}

static bool takes_option(const Command *c, const ToolOption *o) {
    return o ? o->commands >> c->command & 1 : !c->command; /* -MD and -MF are read as -M */
}

static int read_options(Command *c, int argc, char **argv) {
    struct option long_options[OPTIONS_MOST];
    options_long(&ampc_tool, long_options);
    for (int option; (option = getopt_long(argc, argv, ":o:D:M:hv", long_options, NULL)) != -1;) {
        if (option == '?' || option == ':') return refuse_option(option, argv);
        const ToolOption *o = options_find(&ampc_tool, option == 'h' ? O_HELP : option == 'v' ? O_VERBOSE : option);
        if (!takes_option(c, o)) return refuse_for_command(c, o);
        int done = o ? take_option(c, o) : take_dependencies(c, optarg, argv);
        if (done) return done;
    }
    return 0;
}

static int read_arguments(Command *c, int argc, char **argv) {
    c->command = find_command(argc > 1 ? argv[1] : NULL);
    if (c->command) {
        argv[1] = argv[0];
        argc--, argv++;
    }
    int done = read_options(c, argc, argv);
    if (done) return done;
    if (optind == argc && commands[c->command].none) return command_fail(commands[c->command].none, "");
    while (optind < argc && c->argument_count < commands[c->command].most)
        c->arguments[c->argument_count++] = argv[optind++];
    return optind < argc ? command_fail("%s: one argument too many; see ampc --help", argv[optind]) : 0;
}

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
    ampc_signals_watch();
    int wrong = read_arguments(&c, argc, argv);
    if (wrong) return wrong == 1 ? standard_streams_flush("ampc") : wrong;
    int failed = commands[c.command].run(&c);
    command_free(&c);
    ampc_signals_end();
    return standard_streams_flush("ampc") ? 1 : failed;
}
