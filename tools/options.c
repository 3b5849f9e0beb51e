/* options.c: see options.h. */
#include "tools/options.h"

#include <string.h>

enum { HELP_INDENT = 26, HELP_WIDTH = 110 };

/* ---- help -------------------------------------------------------------------------------------------------------- */

/* "-o FILE", "--dump-ir[=PASS]", "--stop-after PASS" */
static int print_names(FILE *to, const ToolOption *o) {
    int n = 0;
    if (o->letter) n += fprintf(to, "-%s%s", o->letter, o->name ? ", " : "");
    if (o->name) n += fprintf(to, "--%s", o->name);
    if (o->value) n += fprintf(to, o->optional ? "[=%s]" : " %s", o->value);
    return n;
}

/* Words of |text| from |column| on, wrapped. Returns the column after them. */
static int print_wrapped(FILE *to, const char *text, int column) {
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column + 1 + n > HELP_WIDTH) column = fprintf(to, "\n%*s", HELP_INDENT, "") - 1;
        else if (column > HELP_INDENT) column += fprintf(to, " ");
        column += fprintf(to, "%.*s", n, text);
        text += n + strspn(text + n, " ");
    }
    return column;
}

/* "train, step: ", where not all commands take it */
static int print_commands(FILE *to, const Tool *t, const ToolOption *o, int column) {
    unsigned all = 0;
    for (int i = 0; t->commands[i].name; i++) all |= 1u << i;
    if ((o->commands & all) == all) return column;
    const char *separator = "[";
    for (int i = 0; t->commands[i].name; i++)
        if (o->commands >> i & 1) {
            column += fprintf(to, "%s%s", separator, *t->commands[i].name ? t->commands[i].name : "compile");
            separator = ", ";
        }
    return column + fprintf(to, "]");
}

static bool is_wanted(const ToolCommand *c, const char *command) { return !command || !strcmp(c->name, command); }

static unsigned wanted_commands(const Tool *t, const char *command) {
    unsigned wanted = 0;
    for (int i = 0; t->commands[i].name; i++) wanted |= (unsigned)is_wanted(&t->commands[i], command) << i;
    return wanted;
}

/* The words of an option between |before| and |after|; false: it has none. */
static bool print_words(FILE *to, const char *before, const ToolOption *o, const char *after) {
    if (!o->words && !o->word) return false;
    fprintf(to, "%s%s", before, o->words ? o->words : "");
    for (int i = 0; o->word && o->word(i); i++) fprintf(to, "%s%s", i ? " " : "", o->word(i));
    fputs(after, to);
    return true;
}

/* "PASS: elaborate autocast ...", once for options that share |word|. */
static void print_lists(FILE *to, const Tool *t, unsigned commands) {
    const char *(*listed)(int32_t) = NULL;
    for (const ToolOption *o = t->options; o->help; o++) {
        if (!(o->commands & commands) || !o->word || o->word == listed) continue;
        fputs(o->value, to);
        print_words(to, ": ", o, "\n");
        listed = o->word;
    }
}

void options_help(const Tool *t, const char *command, FILE *to) {
    const char *word = "usage:";
    for (const ToolCommand *c = t->commands; c->name; c++) {
        if (!is_wanted(c, command)) continue;
        fprintf(to, "%s %s%s%s%s\n           %s\n", word, t->name, *c->name ? " " : "", c->name, c->arguments, c->help);
        word = "      ";
    }
    fputc('\n', to);
    for (const ToolOption *o = t->options; o->help; o++) {
        if (!(o->commands & wanted_commands(t, command))) continue;
        int column = 2 + fprintf(to, "  ") - 2 + print_names(to, o);
        column += fprintf(to, "%*s", column < HELP_INDENT ? HELP_INDENT - column : 2, "");
        if (column > HELP_INDENT) column = fprintf(to, "\n%*s", HELP_INDENT, "") - 1;
        if (!command) column = print_commands(to, t, o, column);
        column = print_wrapped(to, o->help, column);
        if (o->preset) {
            column = print_wrapped(to, "Default:", column);
            column = print_wrapped(to, o->preset, column);
            fputc('.', to);
        }
        fputc('\n', to);
    }
    fprintf(to, "\n%s", t->notes);
    print_lists(to, t, wanted_commands(t, command));
}

/* ---- a man page -------------------------------------------------------------------------------------------------- */

static void print_roff(FILE *to, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '-') fputs("\\-", to);
        else if (*text == '\\') fputs("\\e", to);
        else fputc(*text, to);
    }
}

static void describe_man(const Tool *t, FILE *to) {
    for (const ToolOption *o = t->options; o->help; o++) {
        fputs(".TP\n", to);
        if (o->letter) fprintf(to, "\\fB\\-%s\\fR%s", o->letter, o->name ? ", " : "");
        if (o->name) fputs("\\fB", to), print_roff(to, "--"), print_roff(to, o->name), fputs("\\fR", to);
        if (o->value) fputs(o->optional ? "[=\\fI" : " \\fI", to), print_roff(to, o->value), fputs("\\fR", to);
        if (o->value && o->optional) fputc(']', to);
        fputc('\n', to);
        if (print_commands(to, t, o, 0)) fputc('\n', to);
        print_roff(to, o->help);
        if (o->preset) fputs(" Default: ", to), print_roff(to, o->preset), fputc('.', to);
        fputc('\n', to);
    }
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* The first sentence, without what a quote or a bracket of a shell would end. */
static void print_summary(FILE *to, const ToolOption *o) {
    for (const char *s = o->help; *s && strncmp(s, ". ", 2) && strncmp(s, ": ", 2); s++)
        if (!strchr("'[]\\\"`$", *s) && !(*s == '.' && !s[1])) fputc(*s, to);
}

static void bash_names(FILE *to, const ToolOption *o, const char *separator) {
    if (o->letter) fprintf(to, "%s-%s", separator, o->letter);
    if (o->name) fprintf(to, "%s--%s", o->letter ? separator : separator, o->name);
}

static void describe_bash(const Tool *t, FILE *to) {
    fprintf(to, "# Completion of %s for bash, made by %s --describe bash.\n_%s() {\n", t->name, t->name, t->name);
    fputs("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=''\n    case $prev in\n",
          to);
    for (const ToolOption *o = t->options; o->help; o++) {
        if (!o->value || o->optional) continue;
        fprintf(to, "    %s%s%s%s%s) ", o->letter ? "-" : "", o->letter ? o->letter : "",
                o->letter && o->name ? " | " : "", o->name ? "--" : "", o->name ? o->name : "");
        if (print_words(to, "COMPREPLY=($(compgen -W '", o, "' -- \"$cur\")) ;;\n")) continue;
        if (o->kind == VALUE_TEXT) fputs("COMPREPLY=() ;;\n", to);
        else fprintf(to, "COMPREPLY=($(compgen -%c -- \"$cur\")) ;;\n", o->kind == VALUE_FILE ? 'f' : 'd');
    }
    fputs("    *)\n        case ${COMP_WORDS[1]} in\n", to);
    int unnamed = -1;
    for (int i = 0; t->commands[i].name; i++) {
        if (!*t->commands[i].name) {
            unnamed = i;
            continue;
        }
        fprintf(to, "        %s) words='", t->commands[i].name);
        for (const ToolOption *o = t->options; o->help; o++)
            if (o->commands >> i & 1) bash_names(to, o, " ");
        fputs("' ;;\n", to);
    }
    fputs("        *) words='", to);
    for (const ToolOption *o = t->options; o->help; o++)
        if (unnamed < 0 ? o->commands == ~0u : o->commands >> unnamed & 1) bash_names(to, o, " ");
    fputs("' ;;\n        esac\n        COMPREPLY=()\n        if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "
          "\"$words\" -- "
          "\"$cur\"))\n        else\n            ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W '",
          to);
    for (int i = 0; t->commands[i].name; i++) fprintf(to, " %s", t->commands[i].name);
    fputs("' -- \"$cur\"))\n", to);
    for (const ToolCommand *c = t->commands; c->name; c++)
        if (c->words)
            fprintf(to,
                    "            [[ $COMP_CWORD != 2 || ${COMP_WORDS[1]} != %s ]] || COMPREPLY=($(compgen -W '%s' -- "
                    "\"$cur\"))\n",
                    c->name, c->words);
    fprintf(to,
            "            COMPREPLY+=($(compgen -f -- \"$cur\"))\n        fi ;;\n    esac\n}\n"
            "complete -o filenames -F _%s %s\n",
            t->name, t->name);
}

static void zsh_option(FILE *to, const ToolOption *o, const char *name, bool is_long) {
    fprintf(to, " \\\n            '*%s%s%s[", is_long ? "--" : "-", name, o->value && o->optional ? "=-" : "");
    print_summary(to, o);
    fputc(']', to);
    if (o->value) {
        fprintf(to, "%s", o->optional ? "::" : ":");
        for (const char *s = o->value; *s; s++)
            if (!strchr("':\\", *s)) fputc(*s, to);
        if (!print_words(to, ":(", o, ")"))
            fputs(o->kind == VALUE_FILE ? ":_files" : o->kind == VALUE_FOLDER ? ":_files -/" : ": ", to);
    }
    fputc('\'', to);
}

static void describe_zsh(const Tool *t, FILE *to) {
    fprintf(to, "#compdef %s\n# Completion of %s for zsh, made by %s --describe zsh.\n_%s() {\n    local -a commands=(",
            t->name, t->name, t->name, t->name);
    for (const ToolCommand *c = t->commands; c->name; c++)
        if (*c->name) fprintf(to, " '%s'", c->name);
    fputs(" )\n    if ((CURRENT == 2)); then compadd -a commands; fi\n    case $words[2] in\n", to);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; t->commands[i].name; i++) {
            bool named = *t->commands[i].name;
            if (named == (pass == 1)) continue;
            fprintf(to, "    %s)\n        _arguments", named ? t->commands[i].name : "*");
            for (const ToolOption *o = t->options; o->help; o++) {
                if (!(o->commands >> i & 1)) continue;
                if (o->letter) zsh_option(to, o, o->letter, false);
                if (o->name) zsh_option(to, o, o->name, true);
            }
            if (t->commands[i].words) fprintf(to, " \\\n            '2:what:(%s)'", t->commands[i].words);
            fputs(" \\\n            '*:file:_files' ;;\n", to);
        }
    fprintf(to, "    esac\n}\n_%s \"$@\"\n", t->name);
}

static void describe_fish(const Tool *t, FILE *to) {
    fprintf(to, "# Completion of %s for fish, made by %s --describe fish.\n", t->name, t->name);
    for (const ToolCommand *c = t->commands; c->name; c++)
        if (*c->name) fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s\n", t->name, c->name);
    for (const ToolCommand *c = t->commands; c->name; c++)
        if (c->words)
            fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s' -a '%s'\n", t->name, c->name, c->words);
    for (const ToolOption *o = t->options; o->help; o++) {
        fprintf(to, "complete -c %s -n '", t->name);
        bool unnamed = false;
        for (int i = 0; t->commands[i].name; i++) unnamed |= !*t->commands[i].name && o->commands >> i & 1;
        if (unnamed) fputs("true", to);
        else fputs("__fish_seen_subcommand_from", to);
        for (int i = 0; !unnamed && t->commands[i].name; i++)
            if (o->commands >> i & 1) fprintf(to, " %s", t->commands[i].name);
        fputc('\'', to);
        if (o->letter) fprintf(to, " -%c %s", o->letter[1] ? 'o' : 's', o->letter);
        if (o->name) fprintf(to, " -l %s", o->name);
        if (o->value && !o->optional) fputs(o->words || o->word || o->kind == VALUE_TEXT ? " -x" : " -r -F", to);
        print_words(to, " -a '", o, "'");
        fputs(" -d '", to);
        print_summary(to, o);
        fputs("'\n", to);
    }
}

bool options_describe(const Tool *t, const char *form, FILE *to) {
    static const struct {
        const char *form;
        void (*describe)(const Tool *, FILE *);
    } forms[] = {{"bash", describe_bash}, {"zsh", describe_zsh}, {"fish", describe_fish}, {"man", describe_man}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].form, form)) {
            forms[i].describe(t, to);
            return true;
        }
    return false;
}
