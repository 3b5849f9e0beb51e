/* csv_schema.c: see csv_schema.h. */
#include "tools/amprun/data/csv_schema.h"

#include <math.h>

#include "base/text.h"
#include "tools/amprun/amprun.h"

static const char *const kind_words[] = {[CSV_NUMBER] = "number", [CSV_CATEGORY] = "category", [CSV_IGNORE] = "ignore"};
enum { KINDS = sizeof kind_words / sizeof *kind_words };
static const char *const default_missing[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"};

void csv_schema_init(CsvSchema *s, Arena *a) {
    *s = (CsvSchema){.delimiter = ',', .decimal = '.'};
    for (size_t i = 0; i < sizeof default_missing / sizeof *default_missing; i++)
        table_set(a, &s->missing, default_missing[i], a);
}

void csv_schema_add(CsvSchema *s, Arena *a, const CsvColumn *c) {
    int *index = arena_array(a, int, 1);
    *index = s->columns.len;
    table_set(a, &s->by_name, c->name, index);
    vec_push(a, &s->columns, *c);
}

CsvColumn *csv_schema_find(const CsvSchema *s, const char *name) {
    const int *index = table_get(&s->by_name, name);
    return index ? &s->columns.data[*index] : NULL;
}

bool csv_schema_is_missing(const CsvSchema *s, const char *cell) { return table_get(&s->missing, cell) != NULL; }

bool csv_schema_is_fitted(const CsvSchema *s, const CsvColumn **first) {
    for (int i = 0; i < s->columns.len; i++) {
        const CsvColumn *c = &s->columns.data[i];
        if (c->kind == CSV_IGNORE || c->fitted) continue;
        if (first) *first = c;
        return false;
    }
    return true;
}

int csv_column_ids(const CsvColumn *c) { return c->values.len + (c->target ? 0 : 1); }

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct Words { /* of one line, which goes on within quotes */
    Arena *arena;
    const char *name, *at, *end;
    int line, next_line;
    CsvWords words;
    int taken;
} Words;

static int refuse(const Words *w, const char *format, ...) AMP_PRINTF(2, 3);
static int refuse(const Words *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report_text("%s:%d: %s", w->name, w->line, arena_vprintf(w->arena, format, args));
    va_end(args);
    return 1;
}

static int read_quoted(Words *w) {
    Text word;
    text_init(&word, w->arena);
    for (w->at++;; w->at++) {
        if (w->at == w->end) return refuse(w, "a quote is not closed");
        if (*w->at == '\n') w->next_line++;
        if (*w->at != '"') text_putc(&word, *w->at);
        else if (w->at + 1 < w->end && w->at[1] == '"') text_putc(&word, *w->at++);
        else break;
    }
    w->at++;
    vec_push(w->arena, &w->words, arena_strdup(w->arena, text_str(&word)));
    return 0;
}

/* The words of the next line; at the end there are none. */
static int read_line(Words *w) {
    memset(&w->words, 0, sizeof w->words);
    w->taken = 0;
    while (w->at < w->end && !w->words.len) {
        w->line = w->next_line;
        for (; w->at < w->end && *w->at != '\n';) {
            const char *first = w->at;
            if (*w->at == ' ' || *w->at == '\t' || *w->at == '\r') w->at++;
            else if (*w->at == '#')
                while (w->at < w->end && *w->at != '\n') w->at++;
            else if (*w->at == '"') {
                if (read_quoted(w)) return 1;
            } else {
                while (w->at < w->end && !strchr(" \t\r\n\"", *w->at)) w->at++;
                vec_push(w->arena, &w->words, arena_strndup(w->arena, first, (size_t)(w->at - first)));
            }
        }
        if (w->at < w->end) w->at++, w->next_line++;
    }
    return 0;
}

static const char *take_word(Words *w) { return w->taken < w->words.len ? w->words.data[w->taken++] : NULL; }

static int take_number(Words *w, const char *what, double *out) {
    const char *word = take_word(w);
    if (word && decimal_parse(word, strlen(word), out) && isfinite(*out)) return 0;
    return refuse(w, "%s takes a number, not '%s'", what, word ? word : "");
}

static void take_rest(Words *w, CsvWords *out) {
    memset(out, 0, sizeof *out);
    for (const char *word; (word = take_word(w));) vec_push(w->arena, out, word);
}

static void take_missing(Words *w, CsvSchema *s) {
    memset(&s->missing, 0, sizeof s->missing);
    for (const char *word; (word = take_word(w));) table_set(w->arena, &s->missing, word, w->arena);
}

static int take_delimiter(Words *w, CsvSchema *s) {
    const char *word = take_word(w);
    if (word && !strcmp(word, "tab")) word = "\t";
    if (!word || strlen(word) != 1 || strchr("\"\r\n ", *word))
        return refuse(w, "delimiter takes one character in quotes, or tab");
    s->delimiter = *word;
    return 0;
}

static int take_decimal(Words *w, CsvSchema *s) {
    const char *word = take_word(w);
    if (!word || (strcmp(word, ",") && strcmp(word, "."))) return refuse(w, "decimal takes \",\" or \".\"");
    s->decimal = *word;
    return 0;
}

static int take_held(Words *w, CsvSchema *s) {
    s->has_held = true;
    if (w->words.len == 5 && !strcmp(w->words.data[1], "where") && !strcmp(w->words.data[3], "is")) {
        s->held_column = w->words.data[2];
        s->held_value = w->words.data[4];
        w->taken = 5;
        return 0;
    }
    if (take_number(w, "held", &s->held)) return 1;
    if (s->held < 0 || (s->held >= 1 && s->held != floor(s->held)) || s->held > INT32_MAX)
        return refuse(w, "held takes a part such as 0.1, a number of rows, or `where COLUMN is VALUE`");
    return 0;
}

static int take_attribute(Words *w, CsvColumn *c, const char *word) {
    bool number = c->kind == CSV_NUMBER, category = c->kind == CSV_CATEGORY;
    if (!strcmp(word, "target") && (number || category)) return c->target = true, 0;
    if (!strcmp(word, "raw") && number) return c->raw = true, 0;
    if (!strcmp(word, "indicator") && number) return c->indicator = true, 0;
    if (!strcmp(word, "unknown") && category) return c->unknown = true, 0;
    if (!strcmp(word, "mean") && number) return take_number(w, word, &c->mean);
    if (!strcmp(word, "std") && number) {
        c->fitted = true;
        if (take_number(w, word, &c->std)) return 1;
        return c->std > 0 ? 0 : refuse(w, "std must be above 0");
    }
    if (!strcmp(word, "input") && (number || category))
        return (c->input = take_word(w)) ? 0 : refuse(w, "input takes the name of an input");
    if (!strcmp(word, "because"))
        return (c->because = take_word(w)) ? 0 : refuse(w, "because takes a reason in quotes");
    if (!strcmp(word, "values") && category) {
        take_rest(w, &c->values);
        c->fitted = true;
        return c->values.len ? 0 : refuse(w, "values takes at least one value");
    }
    return refuse(w, "'%s' does not apply to %s columns", word, kind_words[c->kind]);
}

static int check_values(const Words *w, const CsvColumn *c) {
    Table seen = {0};
    for (int i = 0; i < c->values.len; i++) {
        if (table_get(&seen, c->values.data[i])) return refuse(w, "the value '%s' is listed twice", c->values.data[i]);
        table_set(w->arena, &seen, c->values.data[i], w->arena);
    }
    return 0;
}

static int take_column(Words *w, CsvSchema *s, CsvKind kind) {
    CsvColumn c = {.kind = kind, .name = take_word(w), .std = 1};
    if (!c.name || !*c.name) return refuse(w, "the name of a column is missing");
    if (csv_schema_find(s, c.name)) return refuse(w, "the column '%s' is declared twice", c.name);
    for (const char *word; (word = take_word(w));)
        if (take_attribute(w, &c, word)) return 1;
    if (check_values(w, &c)) return 1;
    csv_schema_add(s, w->arena, &c);
    return 0;
}

static int take_line(Words *w, CsvSchema *s) {
    const char *word = take_word(w);
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(word, kind_words[kind])) return take_column(w, s, (CsvKind)kind);
    if (!strcmp(word, "missing")) return take_missing(w, s), 0;
    if (!strcmp(word, "delimiter")) return take_delimiter(w, s);
    if (!strcmp(word, "decimal")) return take_decimal(w, s);
    if (!strcmp(word, "held")) return take_held(w, s);
    if (!strcmp(word, "fitted")) return s->fitted = take_word(w), 0;
    return refuse(w, "'%s': a line begins with number, category, ignore, missing, delimiter, decimal, held or fitted",
                  word);
}

int csv_schema_parse(CsvSchema *s, Arena *a, const char *name, const char *text, size_t size) {
    Words w = {.arena = a, .name = name, .at = text, .end = text + size, .next_line = 1};
    csv_schema_init(s, a);
    if (strlen(text) != size) return report_text("%s: is not a schema: it contains a zero byte", name);
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) w.at += 3;
    if (read_line(&w)) return 1;
    if (w.words.len != 3 || strcmp(w.words.data[0], "amp") || strcmp(w.words.data[1], "csv"))
        return report_text("%s: is not a schema: it does not begin with amp csv 1 (amprun schema prints one)", name);
    if (strcmp(w.words.data[2], "1"))
        return report_text("%s: is a schema of version %s; this amprun reads version 1", name, w.words.data[2]);
    for (;;) {
        if (read_line(&w)) return 1;
        if (!w.words.len) break;
        if (take_line(&w, s)) return 1;
        if (w.taken < w.words.len)
            return refuse(&w, "unexpected word '%s' at the end of the line", w.words.data[w.taken]);
    }
    return s->columns.len ? 0 : report_text("%s: the schema declares no columns", name);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool is_plain(const char *word) {
    if (!*word) return false;
    for (; *word; word++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *word)) return false;
    return true;
}

static void put_word(Text *t, const char *word) {
    text_putc(t, ' ');
    if (is_plain(word)) {
        text_puts(t, word);
        return;
    }
    text_putc(t, '"');
    for (; *word; word++) {
        if (*word == '"') text_putc(t, '"');
        text_putc(t, *word);
    }
    text_putc(t, '"');
}

static void put_number(Text *t, const char *what, double v) {
    char decimal[DECIMAL_MAX];
    text_printf(t, " %s %s", what, decimal_format(v, decimal));
}

static void put_column(Text *t, const CsvColumn *c) {
    text_puts(t, kind_words[c->kind]);
    put_word(t, c->name);
    if (c->target) text_puts(t, " target");
    if (c->raw) text_puts(t, " raw");
    if (c->indicator) text_puts(t, " indicator");
    if (c->unknown) text_puts(t, " unknown");
    if (c->input) text_puts(t, " input"), put_word(t, c->input);
    if (c->because) text_puts(t, " because"), put_word(t, c->because);
    if (c->fitted && c->kind == CSV_NUMBER) put_number(t, "mean", c->mean), put_number(t, "std", c->std);
    if (c->fitted && c->kind == CSV_CATEGORY) {
        text_puts(t, " values");
        for (int i = 0; i < c->values.len; i++) put_word(t, c->values.data[i]);
    }
    text_putc(t, '\n');
}

const char *csv_schema_text(const CsvSchema *s, Arena *a) {
    Text t;
    char delimiter[] = {s->delimiter, '\0'};
    text_init(&t, a);
    text_puts(&t, "amp csv 1\ndelimiter");
    put_word(&t, s->delimiter == '\t' ? "tab" : delimiter);
    text_puts(&t, s->decimal == '.' ? "\nmissing" : "\ndecimal \",\"\nmissing");
    for (int i = 0; i < s->missing.entries.len; i++) put_word(&t, s->missing.entries.data[i].key);
    text_putc(&t, '\n');
    if (s->held_column) {
        text_puts(&t, "held where");
        put_word(&t, s->held_column);
        text_puts(&t, " is");
        put_word(&t, s->held_value);
        text_putc(&t, '\n');
    } else if (s->has_held) {
        char decimal[DECIMAL_MAX];
        text_printf(&t, "held %s\n", decimal_format(s->held, decimal));
    }
    if (s->fitted) text_printf(&t, "fitted %s\n", s->fitted);
    for (int i = 0; i < s->columns.len; i++) put_column(&t, &s->columns.data[i]);
    return text_str(&t);
}
