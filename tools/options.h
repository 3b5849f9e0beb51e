/* options.h: the commands and options of a tool as one table.  It says what is read and where it goes, what goes
 * together, and what --help, the option list of the man page and the completions for shells tell.
 *
 * An option is one row: its name, its value, its place in what the tool keeps its options in (|form|, by a macro such
 * as INTO), and its help.  What it needs and what it excludes are rows of the rules.
 */
#ifndef AMP_TOOLS_OPTIONS_H
#define AMP_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ValueKind { VALUE_TEXT, VALUE_FILE, VALUE_FOLDER } ValueKind;

typedef enum OptionForm {
    INTO_NONE,   /* nowhere: it may be given */
    INTO_TEXT,   /* const char *: the value; "" of an optional one */
    INTO_FLAG,   /* bool or int32_t: 1 */
    INTO_COUNT,  /* int64_t: a whole number from 1 to 2147483647 */
    INTO_CHOICE, /* bool: which of the two |words| it is */
    INTO_WORDS,  /* unsigned: bit i for each word i of |words|, with commas between */
    INTO_LIST,   /* array of const char *, the last of which stays NULL: may be given several times */
    INTO_PAIR,   /* const char *, and the next word into |second| */
    INTO_TAKER,  /* |take| */
    ABOUT_COLOR, /* what every tool has; these need no place */
    ABOUT_DESCRIBE,
    ABOUT_HELP,
    ABOUT_VERSION
} OptionForm;

typedef struct OptionsRead OptionsRead;
/* Keeps a value in r->args.  NULL, or what is wrong with it: "a positive number is wanted". */
typedef const char *(*OptionTaker)(OptionsRead *r, char *text);

typedef struct ToolOption {
    const char *name;   /* "batch" of --batch; NULL: none */
    const char *letter; /* "o" of -o, "MF" of -MF; NULL: none */
    const char *value;  /* "FILE", as help shows it; NULL: takes none */
    ValueKind kind;
    bool optional;                      /* --dump-ir[=PASS] */
    const char *words;                  /* all that the value can be: "cpu cuda both"; NULL: anything */
    const char *(*word)(int32_t index); /* in place of |words|: each, NULL past the end; --help lists them last */
    const char *preset;                 /* what is there without the option; NULL: nothing to say */
    const char *help;                   /* sentences; the first alone is what a completion shows */
    unsigned commands;                  /* bit i: commands[i] takes it */
    OptionForm form;
    size_t at, size, second; /* offsets in OptionsRead.args, and the size of what is there */
    OptionTaker take;
} ToolOption;

#define INTO(form_, args, field) .form = INTO_##form_, .at = offsetof(args, field), .size = sizeof(((args *)0)->field)
#define INTO_TWO(args, field, next) INTO(PAIR, args, field), .second = offsetof(args, next)
#define TAKEN_BY(function) .form = INTO_TAKER, .take = (function)

/* Rows that every tool has: of --color, and about itself. */
#define OPTION_COLOR                                                                                                   \
    .form = ABOUT_COLOR, .name = "color", .value = "auto|always|never", .words = "auto always never",                  \
    .preset = "auto", .help = "Whether to colour what is printed. auto: on a terminal, unless NO_COLOR is set."
#define OPTION_DESCRIBE                                                                                                \
    .form = ABOUT_DESCRIBE, .name = "describe", .value = "FORM", .words = "bash zsh fish man",                         \
    .help =                                                                                                            \
        "Prints these options for other programs. bash, zsh, fish: a completion; man: the list of the manual page."
#define OPTION_HELP .form = ABOUT_HELP, .name = "help", .letter = "h", .help = "Prints this."
#define OPTION_VERSION .form = ABOUT_VERSION, .name = "version", .help = "Prints the version."

/* Lists of options are names with | between.  "dist=mpi": the option with that value, or one such as mpi:0. */
typedef struct OptionRule {
    unsigned commands;                 /* of which it holds; 0: all */
    const char *of, *needs, *excludes; /* one of |of| needs one of |needs|; it excludes all of |excludes| */
    const char *why;                   /* is told after it; NULL: nothing */
    const char *says;                  /* what is told instead of "takes --OF only with --NEEDS: WHY" */
} OptionRule;

typedef struct ToolCommand {
    const char *name;      /* "train"; "": what is done without a command */
    const char *arguments; /* "MODEL.so --data SPEC" */
    const char *help;
    const char *words; /* all that its first argument can be: "list show"; NULL: anything */
    const char *needs; /* options, with spaces between: "inputs weights|resume" */
    const char *none;  /* what is told where no argument is given: "no model was given"; NULL: may be left out */
    int most;          /* arguments */
} ToolCommand;

typedef struct Tool {
    const char *name;
    const ToolCommand *commands; /* ends with a NULL name */
    const ToolOption *options;   /* ends with a NULL help */
    const OptionRule *rules;     /* ends with a NULL |of|; the first that is broken is told */
    const char *notes;           /* after the options */
    const char *(*version)(void);
} Tool;

enum { OPTIONS_MOST = 128, OPTIONS_MESSAGE = 4096 };

struct OptionsRead {
    const Tool *tool;
    void *args;                      /* where values go */
    char **argv;                     /* after the command; from optind on its arguments */
    int argc, command;               /* index of |commands|; -1: only about the tool */
    const char *given[OPTIONS_MOST]; /* value by option, "" of one without; NULL: not given */
    char message[OPTIONS_MESSAGE];   /* what is wrong, with where to look; "": nothing */
    bool told;                       /* --help or the like was printed */
};

/* Reads the command, its options and the number of its arguments into |r|, which has |tool| and |args|.  0: go on; 1:
 * what was asked for is printed; 2: r->message says what is wrong.  Options after a wrong one are kept all the same. */
int options_read(OptionsRead *r, int argc, char **argv);

/* A whole number from 1 to 2147483647.  NULL, or what is wrong. */
const char *options_whole(const char *text, int64_t *out);

/* |command|: what is said of it alone; NULL: of all. */
void options_help(const Tool *t, const char *command, FILE *to);
/* |form|: "bash", "zsh" or "fish": a completion script; "man": the option list of a man page.  False: another form. */
bool options_describe(const Tool *t, const char *form, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
