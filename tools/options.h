/* options.h: the options of a tool as one table, from which its --help, the option list of its man page and its
 * completions for shells are made. */
#ifndef AMP_TOOLS_OPTIONS_H
#define AMP_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ValueKind { VALUE_TEXT, VALUE_FILE, VALUE_FOLDER } ValueKind;

/* Where a value goes in what the tool keeps its options in: at an offset.  NONE: the tool has a function for it. */
typedef enum OptionForm { INTO_NONE, INTO_TEXT, INTO_FLAG, INTO_COUNT, INTO_LIST, INTO_PAIR } OptionForm;
typedef struct OptionPlace {
    OptionForm form;
    size_t at, second; /* INTO_PAIR: the next word goes to |second| */
} OptionPlace;
#define INTO(form, args, field, second)                                                                                \
    { INTO_##form, offsetof(args, field), second }

typedef struct ToolOption {
    int id;             /* what getopt_long returns */
    const char *name;   /* "batch" of --batch; NULL: none */
    const char *letter; /* "o" of -o; NULL: none */
    const char *value;  /* "FILE", as help shows it; NULL: takes none */
    ValueKind kind;
    bool optional;      /* --dump-ir[=PASS] */
    const char *words;  /* all that the value can be: "cpu cuda both"; NULL: anything */
    const char *preset; /* what is there without the option; NULL: nothing to say */
    const char *help;   /* sentences; the first alone is what a completion shows */
    unsigned commands;  /* bit i: commands[i] takes it */
    OptionPlace into;
} ToolOption;

typedef struct ToolCommand {
    const char *name;      /* "train"; "": what is done without a command */
    const char *arguments; /* "MODEL.so --data SPEC" */
    const char *help;
    const char *words; /* all that its first argument can be: "list show"; NULL: anything */
} ToolCommand;

typedef struct Tool {
    const char *name;
    const ToolCommand *commands; /* ends with a NULL name */
    const ToolOption *options;   /* ends with id 0 */
    const char *notes;           /* after the options */
} Tool;

enum { OPTIONS_MOST = 64 };

/* For getopt_long. */
void options_long(const Tool *t, struct option out[OPTIONS_MOST]);
const ToolOption *options_find(const Tool *t, int id); /* NULL: no such option */

/* |command|: what is said of it alone; NULL: of all. */
void options_help(const Tool *t, const char *command, FILE *to);
/* |form|: "bash", "zsh" or "fish": a completion script; "man": the option list of a man page.  False: another form. */
bool options_describe(const Tool *t, const char *form, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
