/* ampc: the command line over libampc (amp/compile.h). */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amp/compile.h"
#include "base/alloc.h"
#include "base/file.h"
#include "tools/ampc_signals.h"
#include "tools/ampc_options.h"
#include "tools/dependency_file.h"
#include "tools/diagnostic_colours.h"
#include "tools/outputs.h"
#include "tools/standard_streams.h"

enum { MAX_DEFINES = 256 };

typedef struct Command {
    amp_compile_options compile;
    amp_define defines[MAX_DEFINES];
    amp_explain_options which; /* explain: of which ops */
    const char *against, *against_precision, *against_policy;
    const char *json, *output, *dump_pass, *dump_dir;
    DependencyFile dependencies; /* and what outputs are compared with */
    Outputs files;
    char *input; /* what was read from standard input; NULL: nothing */
    size_t input_size;
    int explain, dump, dump_count, time_passes, failed;
    double timed;    /* with --time-passes: seconds that rows have said */
    char *last_text; /* with --time-passes: the module after the pass before, without its first line */
    size_t last_size;
} Command;

static int fail(const char *format, const char *what) {
    fprintf(stderr, "ampc: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
    return 2;
}

/* ---- what the library reports ---------------------------------------------------------------- */

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

/* Compares the file with all that has been read by now, and replaces it as a whole.  "-" is standard output. */
static int write_file(Command *c, const char *option, const char *path, OutputKind kind, const void *data,
                      size_t size) {
    amp_error err = {0};
    if (!strcmp(path, "-")) { /* reported at the end */
        standard_streams_note(fwrite(data, 1, size, stdout) != size);
        return 0;
    }
    int wrong = outputs_check_one(&c->files, option, path, kind);
    if (wrong) return wrong;
    if (!amp_file_replace(path, data, size, NULL, &err)) return 0;
    fprintf(stderr, "ampc: %s %s\n", option, err.message);
    return 1;
}

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
    if (c->dump && (!c->dump_pass || !strcmp(c->dump_pass, pass))) print_plain(stdout, text, size);
    if (!c->dump_dir) return;
    char path[AMP_FILE_PATH];
    snprintf(path, sizeof path, "%s/%02d-%s.ir", c->dump_dir, c->dump_count++, pass);
    if (!c->failed) c->failed = write_file(c, "--dump-dir", path, OUTPUT_IR, text, size);
}

static int is_pass(const char *name) {
    for (int i = 0; amp_compile_pass(i); i++)
        if (!strcmp(amp_compile_pass(i), name)) return 1;
    return 0;
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

static void on_dependency(void *user, const char *path) {
    Command *c = user;
    const char *kept = dependency_file_add(&c->dependencies, path);
    if (kept) outputs_input(&c->files, "the file", kept);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int add_define(Command *c, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text) return fail("-D %s: write -D NAME=VALUE", text);
    if (c->compile.define_count == MAX_DEFINES) return fail("-D %s: too many definitions", text);
    *equals = 0;
    c->defines[c->compile.define_count++] = (amp_define){text, equals + 1};
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

static int leave_out(Command *c, const char *pass) {
    if (!strcmp(pass, "fuse")) c->compile.no_fuse = 1;
    else if (!strcmp(pass, "layout")) c->compile.no_layout = 1;
    else if (!strcmp(pass, "simplify")) c->compile.no_simplify = 1;
    else return fail("--no-pass=%s: only fuse, layout and simplify can be left out", pass);
    return 0;
}

static int choose_emit(Command *c, const char *what) {
    static const char *const names[] = {"so", "c", "ir", "cu", "ptx", "o"};
    for (int i = 0; i < 6; i++)
        if (!strcmp(what, names[i])) {
            c->compile.emit = (amp_emit)i;
            return 0;
        }
    return fail("--emit %s: so, o, c, ir, cu or ptx", what);
}

/* A positive whole number; |wrong|: the message that says so, of the text. */
static int set_count(const char *wrong, const char *text, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno || *end || *out <= 0 ? fail(wrong, text) : 0;
}

/* -MD or -MF FILE: |word| is what follows the M. */
static int take_dependencies(Command *c, const char *word, char **argv) {
    bool named = !strcmp(word, "F");
    if (!named && strcmp(word, "D")) return fail("-M%s: there is no such option; see ampc --help", word);
    if (named && !argv[optind]) return fail("%s: needs a value; see ampc --help", "-MF");
    c->dependencies.wanted = true;
    if (named) c->dependencies.path = argv[optind++];
    return 0;
}

/* 0: go on; 1: done; 2: wrong */
static int take_option(Command *c, int option, char **argv) {
    switch (option) {
    case 'o': c->output = optarg; return 0;
    case 'D': return add_define(c, optarg);
    case 'M': return take_dependencies(c, optarg, argv);
    case O_PRECISION: c->compile.precision = optarg; return 0;
    case O_EVAL_PRECISION: c->compile.eval_precision = optarg; return 0;
    case O_POLICY: c->compile.policy = optarg; return 0;
    case O_EMIT: return choose_emit(c, optarg);
    case O_STOP: c->compile.stop_after = optarg; return check_pass("--stop-after", optarg);
    case O_NO_PASS: return leave_out(c, optarg);
    case O_DUMP:
        c->dump = 1;
        c->dump_pass = optarg;
        return optarg ? check_pass("--dump-ir", optarg) : 0;
    case O_DUMP_DIR: c->dump_dir = optarg; return 0;
    case O_TIME: c->time_passes = 1; return 0;
    case O_CC: c->compile.c_compiler = optarg; return 0;
    case O_ISA: c->compile.isa = optarg; return 0;
    case O_TARGET: c->compile.target = optarg; return 0;
    case O_GPU_ARCH: c->compile.gpu_arch = optarg; return 0;
    case O_MAX_OPS: return set_count("--max-ops %s: a positive whole number", optarg, &c->compile.max_ops);
    case O_BATCH_HINT: return set_count("--batch-hint %s: a positive whole number", optarg, &c->compile.batch_hint);
    case O_SYMBOL: c->compile.symbol = optarg; return 0;
    case O_NO_FILES: c->compile.no_files = 1; return 0;
    case O_JSON: c->json = optarg; return 0;
    case O_DTYPE: c->which.dtype = optarg; return 0;
    case O_OP: c->which.op = optarg; return 0;
    case O_RULE: c->which.rule = optarg; return 0;
    case O_AGAINST: c->against = optarg; return 0;
    case O_AGAINST_PRECISION: c->against_precision = optarg; return 0;
    case O_AGAINST_POLICY: c->against_policy = optarg; return 0;
    case O_FORCE: c->files.force = true; return 0;
    case 'v':
    case O_VERBOSE: c->compile.progress = on_progress; return 0;
    case O_COLOR: return standard_streams_colour_when(optarg) ? 0 : fail("--color %s: auto, always or never", optarg);
    case O_DESCRIBE:
        return options_describe(&ampc_tool, optarg, stdout) ? 1 : fail("--describe %s: bash, zsh, fish or man", optarg);
    case 'h':
    case O_HELP:
        options_help(&ampc_tool, c->explain ? "explain" : NULL, stdout);
        print_passes(stdout);
        return 1;
    case O_VERSION: printf("ampc %s\n", amp_compile_version()); return 1;
    default: return 2;
    }
}

static int refuse_option(int option, char **argv) {
    char letter[] = {'-', (char)optopt, 0};
    const char *text = optopt && optopt < O_PRECISION ? letter : argv[optind - 1];
    return fail(option == ':' ? "%s: needs a value; see ampc --help" : "%s: there is no such option; see ampc --help",
                text);
}

static int is_for_explain(int option) {
    const ToolOption *o = options_find(&ampc_tool, option == 'h' ? O_HELP : option == 'v' ? O_VERBOSE : option);
    return o && o->commands & EXPLAIN;
}

static int refuse_for_explain(int option) {
    const ToolOption *o = options_find(&ampc_tool, option == 'v' ? O_VERBOSE : option);
    fprintf(stderr, "ampc: %s%s: explain does not take this; see ampc --help\n", o && o->name ? "--" : "-",
            !o        ? "M"
            : o->name ? o->name
                      : o->letter);
    return 2;
}

/* Options of explain alone. */
static int refuse_compilation(const Command *c) {
    const struct {
        const char *name, *value;
    } options[] = {{"json", c->json},
                   {"dtype", c->which.dtype},
                   {"op", c->which.op},
                   {"rule", c->which.rule},
                   {"against", c->against},
                   {"against-precision", c->against_precision},
                   {"against-policy", c->against_policy}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].value) {
            fprintf(stderr, "ampc: --%s %s: only with ampc explain\n", options[i].name, options[i].value);
            return 2;
        }
    return 0;
}

static int read_arguments(Command *c, int argc, char **argv) {
    struct option long_options[OPTIONS_MOST];
    options_long(&ampc_tool, long_options);
    if (argc > 1 && !strcmp(argv[1], "explain")) {
        c->explain = 1;
        argv[1] = argv[0];
        argc--, argv++;
    }
    for (int option; (option = getopt_long(argc, argv, ":o:D:M:hv", long_options, NULL)) != -1;) {
        if (option == '?' || option == ':') return refuse_option(option, argv);
        if (c->explain && !is_for_explain(option)) return refuse_for_explain(option);
        int done = take_option(c, option, argv);
        if (done) return done;
    }
    if (optind == argc) return fail("no model was given; see ampc --help%s", "");
    c->compile.name = argv[optind++];
    if (c->explain && optind < argc) c->which.path = argv[optind++];
    if (optind < argc) return fail("%s: one argument too many; see ampc --help", argv[optind]);
    return c->explain ? 0 : refuse_compilation(c);
}

/* ---- the two commands ------------------------------------------------------------------------ */

/* "dir/mlp.amp" -> "dir/mlp.so" */
static void default_output(Command *c, char *out, size_t size) {
    static const char *const endings[] = {".so", ".c", ".ir", ".cu", ".ptx", ".o"};
    const char *name = c->compile.name, *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    int stem = dot ? (int)(dot - name) : (int)strlen(name);
    snprintf(out, size, "%.*s%s", stem, name, endings[c->compile.emit]);
}

static int report(amp_status status, const amp_error *err) {
    if (status != AMP_BAD_SOURCE) { /* the diagnostics have said it */
        fputs("ampc: ", stderr);
        print_plain(stderr, err->message, strlen(err->message));
        fputc('\n', stderr);
    }
    return status == AMP_INVALID_ARGUMENT ? 2 : 1;
}

static OutputKind output_kind(amp_emit emit) {
    static const OutputKind kinds[] = {OUTPUT_MODEL, OUTPUT_C, OUTPUT_IR, OUTPUT_CUDA, OUTPUT_PTX, OUTPUT_OBJECT};
    return kinds[emit];
}

static int write_rules(Command *c, const char *path, const char *output) {
    size_t size;
    if (!path) return 0;
    char *text = dependency_file_text(&c->dependencies, output, &size);
    if (!text) return fprintf(stderr, "ampc: -MF %s: no memory for the list of files\n", path), 1;
    int failed = write_file(c, "-MF", path, OUTPUT_RULES, text, size);
    free(text);
    return failed;
}

/* Compiles, then writes: only then is it known which files were read. */
static int compile_to(Command *c, const char *output, const char *rules) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    outputs_output(&c->files, "-o", output, output_kind(c->compile.emit));
    outputs_output(&c->files, "-MF", rules, OUTPUT_RULES);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    const double start = amp_seconds();
    amp_status status = amp_compile(&c->compile, &result, &err);
    if (status) return report(status, &err);
    if (c->time_passes) end_times(c, amp_seconds() - start);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    failed = c->failed ? c->failed : outputs_check(&c->files); /* now with all that was read */
    if (!failed && output) failed = write_file(c, "-o", output, output_kind(c->compile.emit), data, size);
    amp_compile_result_release(result);
    return failed ? failed : write_rules(c, rules, output);
}

static int compile(Command *c) {
    char output[AMP_FILE_PATH], rules[AMP_FILE_PATH + 2];
    if (c->dump && !c->output && c->compile.emit == AMP_EMIT_SO) { /* to look, not to build */
        c->compile.emit = AMP_EMIT_IR;
        if (c->dump_pass) c->compile.stop_after = c->dump_pass;
        return compile_to(c, NULL, NULL);
    }
    if (c->input && !c->output) return fail("the model is read from standard input: give -o%s", "");
    if (c->output) snprintf(output, sizeof output, "%s", c->output);
    else default_output(c, output, sizeof output);
    if (!strcmp(output, "-") && c->dependencies.wanted && !c->dependencies.path)
        return fail("-MD with -o %s: give -MF FILE", output);
    snprintf(rules, sizeof rules, "%s.d", output);
    return compile_to(c, output, !c->dependencies.wanted ? NULL : c->dependencies.path ? c->dependencies.path : rules);
}

static bool compares(const Command *c) { return c->against || c->against_precision || c->against_policy; }

/* What the model is compared with: the same options, but for those that say what differs.  A policy that is chosen
 * brings its own precision, and the other way round. */
static amp_compile_options other_side(const Command *c) {
    amp_compile_options other = c->compile;
    if (c->against && strcmp(c->against, "-")) {
        other.name = c->against;
        other.text = NULL;
    } else if (c->against) {
        other.name = "stdin";
        other.text = c->input;
        other.text_size = c->input_size;
    }
    if (c->against_precision || c->against_policy) {
        other.precision = c->against_precision;
        other.policy = c->against_policy;
    }
    return other;
}

static int explain(Command *c) {
    amp_error err = {0};
    amp_compile_result *result = NULL;
    outputs_output(&c->files, "--json", c->json, OUTPUT_EXPLANATION);
    int failed = outputs_check(&c->files);
    if (failed) return failed;
    const amp_compile_options other = other_side(c);
    c->which.struct_size = sizeof c->which;
    c->which.json = c->json != NULL;
    amp_status status = compares(c) ? amp_compare(&other, &c->compile, &c->which, &result, &err)
                                    : amp_explain_ops(&c->compile, &c->which, &result, &err);
    if (status) return report(status, &err);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    if (c->json) failed = write_file(c, "--json", c->json, OUTPUT_EXPLANATION, data, size);
    else print_plain(stdout, data, size);
    amp_compile_result_release(result);
    return failed;
}

static int read_input(Command *c) {
    amp_error err = {0};
    if (!amp_file_read("/dev/stdin", 0, NULL, &c->input, &c->input_size, &err)) return 0;
    fprintf(stderr, "ampc: %s\n", err.message);
    return 1;
}

static void note_policy(Command *c, const char *option, const char *policy) {
    if (policy && !access(policy, F_OK)) outputs_input(&c->files, option, policy);
}

/* "-": the model is read here, and diagnostics call it stdin. */
static int read_model(Command *c) {
    const bool piped = !strcmp(c->compile.name, "-"), against_piped = c->against && !strcmp(c->against, "-");
    if (piped && against_piped)
        return fail("--against %s: the model is read from standard input already; give a file", "-");
    if (!piped) outputs_input(&c->files, "the model", c->compile.name);
    if (c->against && !against_piped) outputs_input(&c->files, "--against", c->against);
    if ((piped || against_piped) && read_input(c)) return 1;
    if (piped) {
        c->compile.name = "stdin";
        c->compile.text = c->input;
        c->compile.text_size = c->input_size;
    }
    note_policy(c, "--policy", c->compile.policy);
    note_policy(c, "--against-policy", c->against_policy);
    return 0;
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
    c.compile = (amp_compile_options){.struct_size = sizeof c.compile,
                                      .defines = c.defines,
                                      .diagnostic = on_diagnostic,
                                      .dependency = on_dependency,
                                      .cancelled = ampc_signals_cancelled,
                                      .user = &c};
    ampc_signals_watch();
    int wrong = read_arguments(&c, argc, argv);
    if (wrong) return wrong == 1 ? standard_streams_flush("ampc") : wrong;
    if (c.dump || c.dump_dir || c.time_passes) c.compile.dump = on_dump;
    if (c.time_passes) c.compile.timing = on_timing;
    if (c.dump_dir && mkdir(c.dump_dir, 0777) && errno != EEXIST)
        return fprintf(stderr, "ampc: --dump-dir %s: %s\n", c.dump_dir, strerror(errno)), 1;
    int failed = read_model(&c);
    if (!failed) failed = c.explain ? explain(&c) : compile(&c);
    command_free(&c);
    ampc_signals_end();
    return standard_streams_flush("ampc") ? 1 : failed;
}
