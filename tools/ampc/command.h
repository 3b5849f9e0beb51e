/* command.h: a command of ampc as its arguments say it, and what all commands do alike. */
#ifndef AMP_TOOLS_AMPC_COMMAND_H
#define AMP_TOOLS_AMPC_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "amp/compile.h"
#include "amp/onnx.h"
#include "tools/outputs.h"
#include "tools/roofline/gpus.h"

enum {
    MAX_DEFINES = 256,
    MAX_OVERRIDES = 256,
    MAX_ALLOWED = 256,
    MAX_KEPT = 1000,
    MAX_ARGUMENTS = 3,
    MAX_NO_PASS = 1000
};

/* ---- dependency_file.c: -MD: which files a model was made from, as a rule that make and Ninja read --------------- */

/* Zeroed: nothing is collected. */
typedef struct DependencyFile {
    bool wanted;
    const char *path; /* NULL: the output's name and ".d" */
    char **files;     /* each once, in the order in which they were read */
    size_t count;
    bool out_of_memory;
} DependencyFile;

/* The path as it is kept, or NULL where it was there already. */
const char *dependency_file_add(DependencyFile *d, const char *path);
/* "OUTPUT: FILE...", and for each file but the first a rule without a recipe, so that removing an include is no error
 * of make.  The caller frees it; NULL: no memory. */
char *dependency_file_text(const DependencyFile *d, const char *output, size_t *size);
void dependency_file_free(DependencyFile *d);

/* ---- a command --------------------------------------------------------------------------------------------------- */

typedef struct Command {
    const char *arguments[MAX_ARGUMENTS]; /* that are no options */
    int argument_count;
    amp_compile_options compile;
    amp_define defines[MAX_DEFINES];
    amp_override overrides[MAX_OVERRIDES];
    char no_pass[MAX_NO_PASS]; /* passes to leave out, with commas between */
    amp_explain_options which; /* explain: of which ops */
    amp_lint_options lint;
    const char *allowed[MAX_ALLOWED + 1]; /* of |lint|; NULL after the last */
    amp_onnx_options onnx;
    const char *kept[MAX_KEPT + 1], *assumed[MAX_KEPT + 1]; /* of |onnx|, likewise */
    const char *against, *against_precision, *against_policy;
    const char *gpu;        /* diff: of the modelled time; NULL: the usual one */
    int64_t batch;          /* diff, lint: samples of a step; 0: the usual number */
    const char *dot, *html; /* explain: files for those forms */
    const char *log;        /* explain --html: of a training; NULL: none */
    const char *json, *output, *dump_dir;
    const char *dump_pass;       /* "": all; NULL: none */
    DependencyFile dependencies; /* and what outputs are compared with */
    Outputs files;
    char *input; /* what was read from standard input; NULL: nothing */
    size_t input_size;
    int dump_count, time_passes, failed;
    bool verbose;
    double timed;    /* with --time-passes: seconds that rows have said */
    char *last_text; /* with --time-passes: the module after the pass before, without its first line */
    size_t last_size;
} Command;

extern const struct Tool ampc_tool; /* commands and options: options.h */

/* What every command returns: 0 success, 1 the model or a file was refused, 2 wrong arguments; the message is told. */

/* "ampc: FORMAT of |what|": 2. */
int command_fail(const char *format, const char *what);
/* What a call of the library said, where diagnostics have not said it already: 1 or 2. */
int command_report(amp_status status, const amp_error *err);

/* Compares the file with all that has been read by now, and replaces it as a whole.  "-" is standard output. */
int command_write_file(Command *c, const char *option, const char *path, OutputKind kind, const void *data,
                       size_t size);
/* What is told: JSON to the file of --json, or text to standard output. */
int command_tell(Command *c, const void *data, size_t size);

/* |name| as the model of |to|: a file, which no output replaces, or "-": standard input, which is read now, can be one
 * model only, and is "stdin" in messages.  |what|: "the model", or the option that names it. */
int command_take_model(Command *c, const char *what, const char *name, amp_compile_options *to);
/* A policy that may be a file, which no output replaces. */
void command_note_policy(Command *c, const char *option, const char *policy);
/* That of --gpu; without it H100. */
int command_find_gpu(const Command *c, const Gpu **out);

/* ---- commands, each in the file of its name ---------------------------------------------------------------------- */

/* A model to a model.so, or to what --emit says. */
int command_compile(Command *c);
/* Why each op of the model has its dtype, or with --against what differs. */
int command_explain(Command *c);
/* What the model's precision makes slow or unsafe.  0: nothing, 1: findings, 2: the model was refused, or wrong
 * arguments. */
int command_lint(Command *c);
/* What differs between two models, or between a model under one policy and under another. */
int command_diff(Command *c);
int command_policy(Command *c);   /* list, show, check and diff */
int command_autocast(Command *c); /* an ONNX model with low types, and why */

/* autocast.c: what options say goes into |c->onnx|. */
void command_take_onnx(Command *c);

/* compile.c: the number of --emit's word; -1: there is none such. */
int emit_named(const char *word);

/* diagnostic_colours.c: |text| as amp_compile_options.diagnostic gives it.  Where |to| takes colours
 * (standard_streams_colour), the words error, warning, note and help are coloured, and the carets below a line of the
 * model. */
void print_diagnostic(FILE *to, const char *text);

/* ---- ampc_signals.c: a signal that ends ampc while C compilers run ends them first, and their temporary files ---- */

/* SIGINT, SIGTERM, SIGHUP, unless they are ignored.  Before compilers run they end ampc at once, as without this. */
void ampc_signals_watch(void);
/* amp_compile_options.cancelled. */
int32_t ampc_signals_cancelled(void *user);
/* Ends ampc by the signal that was caught, if any. */
void ampc_signals_end(void);

#endif
