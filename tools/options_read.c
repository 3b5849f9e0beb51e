/* options_read.c: reads arguments as the table of a tool says: see options.h. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "amp/base.h"
#include "tools/options.h"
#include "tools/standard_streams.h"

enum { FIRST_ID = 256 }; /* of the first option, for getopt_long; letters are below */

/* The first message is kept. */
AMP_PRINTF(2, 3) static bool wrong(OptionsRead *r, const char *format, ...) {
    if (*r->message) return false;
    char text[OPTIONS_MESSAGE - 64];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    snprintf(r->message, sizeof r->message, "%s; see %s --help", text, r->tool->name);
    return false;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* The next word of a list; false: there is none. */
static bool next_word(const char **list, const char *separators, const char **word, size_t *size) {
    if (!*list || !**list) return false;
    *word = *list;
    *size = strcspn(*list, separators);
    *list += *size + ((*list)[*size] != 0);
    return true;
}

/* "a b c" -> "a, b or c"; "dist=mpi" -> "--dist mpi" */
static const char *spelled(char out[OPTIONS_MESSAGE], const char *list, const char *separators, const char *dashes) {
    size_t at = 0, size;
    *out = 0;
    for (const char *word; next_word(&list, separators, &word, &size) && at < OPTIONS_MESSAGE;)
        at += (size_t)snprintf(out + at, OPTIONS_MESSAGE - at, "%s%s%.*s",
                               !at     ? ""
                               : *list ? ", "
                                       : " or ",
                               dashes, (int)size, word);
    for (char *c = out; *dashes && *c; c++)
        if (*c == '=') *c = ' ';
    return out;
}

/* Whether an option of the list was given; *which names it. */
static bool is_given(const OptionsRead *r, const char *list, const char **which, size_t *which_size) {
    while (next_word(&list, "|", which, which_size))
        for (int i = 0; r->tool->options[i].help; i++) {
            const char *name = r->tool->options[i].name, *value = r->given[i];
            const size_t size = name ? strlen(name) : 0, rest = *which_size - size;
            if (!value || !size || size > *which_size || strncmp(*which, name, size)) continue;
            if (!rest) return true;
            const char *wanted = *which + size;
            if (*wanted == '=' && !strncmp(value, wanted + 1, rest - 1) && (!value[rest - 1] || value[rest - 1] == ':'))
                return true;
        }
    return false;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* "--batch x: FORMAT" */
#define WRONG_VALUE(r, o, text, format, ...)                                                                           \
    wrong(r, "%s%s %s: " format, (o)->name ? "--" : "-", (o)->name ? (o)->name : (o)->letter, text, __VA_ARGS__)

static bool want_words(OptionsRead *r, const ToolOption *o, const char *text) {
    char words[OPTIONS_MESSAGE];
    return WRONG_VALUE(r, o, text, "%s is wanted", spelled(words, o->words, " ", ""));
}

static int find_word(const char *words, const char *text, size_t text_size) {
    const char *word;
    size_t size;
    for (int i = 0; next_word(&words, " ", &word, &size); i++)
        if (size == text_size && !strncmp(word, text, size)) return i;
    return -1;
}

const char *options_whole(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    const bool is_one = !errno && !*end && end != text && *out >= 1 && *out <= INT32_MAX;
    return is_one ? NULL : "a whole number from 1 to 2147483647 is wanted";
}

static bool take_choice(OptionsRead *r, const ToolOption *o, const char *text, bool *to) {
    const int which = find_word(o->words, text, strlen(text));
    *to = which == 1;
    return which >= 0 || want_words(r, o, text);
}

static bool take_words(OptionsRead *r, const ToolOption *o, const char *text, unsigned *to) {
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, ",");
        const int which = find_word(o->words, at, size);
        if (which < 0) return want_words(r, o, text);
        *to |= 1u << which;
        at += size;
        if (!*at) return true;
    }
}

static bool take_one_of_list(OptionsRead *r, const ToolOption *o, const char *text, const char **to) {
    const size_t most = o->size / sizeof *to - 1;
    size_t count = 0;
    while (to[count]) count++;
    if (count == most) return WRONG_VALUE(r, o, text, "is given too often; the most is %zu times", most);
    to[count] = text;
    return true;
}

/* "METRIC F": the value is METRIC, the next word F. */
static bool take_pair(OptionsRead *r, const ToolOption *o, const char *text, const char **to, const char **second) {
    char first[64] = "";
    for (size_t i = 0; o->value[i] != ' ' && i + 1 < sizeof first; i++) first[i] = (char)tolower(o->value[i]);
    if (!r->argv[optind]) return WRONG_VALUE(r, o, text, "a file must follow the %s", first);
    *to = text;
    *second = r->argv[optind++];
    return true;
}

static bool take_flag(const ToolOption *o, void *to) {
    if (o->size == sizeof(bool)) *(bool *)to = true;
    else *(int32_t *)to = 1;
    return true;
}

/* |said|: what is wrong with the value; NULL: nothing. */
static bool taken(OptionsRead *r, const ToolOption *o, const char *text, const char *said) {
    return !said || WRONG_VALUE(r, o, text, "%s", said);
}

/* --help and the like: printed at once. */
static bool tell_about(OptionsRead *r, const ToolOption *o, const char *text) {
    const Tool *t = r->tool;
    const char *command = r->command < 0 || !*t->commands[r->command].name ? NULL : t->commands[r->command].name;
    if (*r->message) return false;
    r->told = true;
    if (o->form == ABOUT_HELP) options_help(t, command, stdout);
    else if (o->form == ABOUT_VERSION) printf("%s %s\n", t->name, t->version());
    else if (!options_describe(t, text, stdout)) return r->told = want_words(r, o, text);
    return true;
}

static bool take(OptionsRead *r, const ToolOption *o, char *text) {
    void *const to = (char *)r->args + o->at;
    switch (o->form) {
    case INTO_NONE: return true;
    case INTO_TEXT: return *(const char **)to = text ? text : "", true;
    case INTO_FLAG: return take_flag(o, to);
    case INTO_COUNT: return taken(r, o, text, options_whole(text, to));
    case INTO_CHOICE: return take_choice(r, o, text, to);
    case INTO_WORDS: return take_words(r, o, text, to);
    case INTO_LIST: return take_one_of_list(r, o, text, to);
    case INTO_PAIR: return take_pair(r, o, text, to, (const char **)((char *)r->args + o->second));
    case INTO_TAKER: return taken(r, o, text, o->take(r, text));
    case ABOUT_COLOR: return standard_streams_colour_when(text) || want_words(r, o, text);
    default: return tell_about(r, o, text);
    }
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* A letter of two, "MD", is to getopt "-M" with the value "D". */
static void describe_to_getopt(const Tool *t, char *letters, struct option *names) {
    *letters++ = ':';
    for (int i = 0; t->options[i].help; i++) {
        const ToolOption *o = &t->options[i];
        const int value = !o->value ? no_argument : o->optional ? optional_argument : required_argument;
        if (o->name) *names++ = (struct option){o->name, value, NULL, FIRST_ID + i};
        if (o->letter) *letters++ = *o->letter;
        if (o->letter && (o->value || o->letter[1])) *letters++ = ':';
    }
    *letters = 0;
    *names = (struct option){0};
}

static const ToolOption *find_option(const Tool *t, int id) {
    if (id >= FIRST_ID) return &t->options[id - FIRST_ID];
    for (const ToolOption *o = t->options; o->help; o++)
        if (o->letter && *o->letter == id && (!o->letter[1] || !strcmp(o->letter + 1, optarg))) return o;
    return NULL;
}

/* "--json: only with ampc explain, lint", "--emit: explain does not take this" */
static bool refuse_for_command(OptionsRead *r, const ToolOption *o) {
    const ToolCommand *commands = r->tool->commands;
    const char *dashes = o->name ? "--" : "-", *name = o->name ? o->name : o->letter;
    char takers[OPTIONS_MESSAGE] = "";
    if (*commands[r->command].name)
        return wrong(r, "%s%s: %s does not take this", dashes, name, commands[r->command].name);
    for (int i = 0; commands[i].name; i++)
        if (o->commands >> i & 1)
            snprintf(takers + strlen(takers), sizeof takers - strlen(takers), "%s%s", *takers ? ", " : "",
                     commands[i].name);
    return wrong(r, "%s%s: only with %s %s", dashes, name, r->tool->name, takers);
}

static bool read_option(OptionsRead *r, int id) {
    const char letter[] = {'-', (char)optopt, 0};
    const char *text = optopt && optopt < FIRST_ID ? letter : r->argv[optind - 1];
    if (id == '?') return wrong(r, "%s: there is no such option", text);
    if (id == ':') return wrong(r, "%s: needs a value", text);
    const ToolOption *o = find_option(r->tool, id);
    if (!o) return wrong(r, "-%c%s: there is no such option", id, optarg);
    if (r->command < 0 && o->form < ABOUT_DESCRIBE) return false;
    if (r->command >= 0 && !(o->commands >> r->command & 1)) return refuse_for_command(r, o);
    char *value = optarg;
    if (id < FIRST_ID && o->letter[1]) {
        value = o->value ? r->argv[optind] : NULL;
        if (o->value && !value) return wrong(r, "-%s: needs a value", o->letter);
        optind += o->value != NULL;
    }
    r->given[o - r->tool->options] = o->value && value ? value : "";
    return take(r, o, value);
}

/* ---- what goes together ------------------------------------------------------------------------------------------ */

static bool check_needs(OptionsRead *r, const ToolCommand *c) {
    const char *list = c->needs, *options, *word;
    char some[64], text[OPTIONS_MESSAGE];
    for (size_t n, size; next_word(&list, " ", &options, &n);) {
        snprintf(some, sizeof some, "%.*s", (int)n, options);
        if (!is_given(r, some, &word, &size)) return wrong(r, "%s needs %s", c->name, spelled(text, some, "|", "--"));
    }
    return true;
}

/* |what|: the option of the rule that was given. */
static bool refuse_by(OptionsRead *r, const OptionRule *rule, const char *what, const char *other) {
    const char *command = r->tool->commands[r->command].name, *colon = rule->why ? ": " : "";
    const char *why = rule->why ? rule->why : "";
    char first[OPTIONS_MESSAGE], second[OPTIONS_MESSAGE];
    if (rule->says) return wrong(r, "%s %s", command, rule->says);
    spelled(first, what, "|", "--");
    spelled(second, other, "|", "--");
    if (rule->needs) return wrong(r, "%s takes %s only with %s%s%s", command, first, second, colon, why);
    return wrong(r, "%s takes %s or %s, not both%s%s", command, first, second, colon, why);
}

static bool check_rule(OptionsRead *r, const OptionRule *rule) {
    const char *of, *other;
    char what[64], excluded[64];
    size_t size, other_size;
    if (rule->commands && !(rule->commands >> r->command & 1)) return true;
    if (!is_given(r, rule->of, &of, &size)) return true;
    snprintf(what, sizeof what, "%.*s", (int)size, of);
    if (rule->needs) return is_given(r, rule->needs, &other, &other_size) || refuse_by(r, rule, what, rule->needs);
    if (rule->excludes && !is_given(r, rule->excludes, &other, &other_size)) return true;
    snprintf(excluded, sizeof excluded, "%.*s", rule->excludes ? (int)other_size : 0, rule->excludes ? other : "");
    return refuse_by(r, rule, what, excluded);
}

static bool check_arguments(OptionsRead *r, const ToolCommand *c) {
    const int given = r->argc - optind;
    const char *colon = *c->name ? ": " : "";
    if (!given && c->none) return wrong(r, "%s%s%s", c->name, colon, c->none);
    if (given > c->most) return wrong(r, "%s%s%s is one argument too many", c->name, colon, r->argv[optind + c->most]);
    return true;
}

static bool check(OptionsRead *r) {
    const ToolCommand *c = &r->tool->commands[r->command];
    if (!check_needs(r, c)) return false;
    for (const OptionRule *rule = r->tool->rules; rule->of; rule++)
        if (!check_rule(r, rule)) return false;
    return check_arguments(r, c);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Its index; that of the command without a name where the word is none; -1: there is none. */
static int find_command(const Tool *t, const char *word) {
    int unnamed = -1;
    for (int i = 0; t->commands[i].name; i++) {
        if (!*t->commands[i].name) unnamed = i;
        else if (word && !strcmp(t->commands[i].name, word)) return i;
    }
    return unnamed;
}

int options_read(OptionsRead *r, int argc, char **argv) {
    char letters[2 * OPTIONS_MOST + 2];
    struct option names[OPTIONS_MOST + 1];
    const char *word = argc > 1 ? argv[1] : NULL;
    r->command = find_command(r->tool, word);
    if (r->command < 0 && !word) return wrong(r, "no command was given"), 2;
    if (r->command < 0 && *word != '-') return wrong(r, "there is no command %s", word), 2;
    const bool named = r->command >= 0 && *r->tool->commands[r->command].name;
    if (named) argv[1] = argv[0];
    r->argc = argc - named;
    r->argv = argv + named;
    describe_to_getopt(r->tool, letters, names);
    for (int id; (id = getopt_long(r->argc, r->argv, letters, names, NULL)) != -1;) {
        read_option(r, id);
        if (r->told) return 1;
        if (r->command < 0) break;
    }
    if (r->command < 0) wrong(r, "there is no command %s", word);
    return *r->message || !check(r) ? 2 : 0;
}
