/* csv_infer.c: see csv_table.h. */
#include "tools/amprun/data/csv_table.h"

#include <inttypes.h>
#include <math.h>

#include "base/file.h"
#include "base/text.h"
#include "tools/amprun/amprun.h"

enum { FEW_CLASSES = 20, MANY_WORDS = 20, COUNTED_ROWS = 10000, EXAMPLE_BYTES = 32 };

typedef struct Example { /* a cell */
    const char *cell;
    int64_t line;
    int count; /* of cells that it is an example of */
} Example;

typedef struct Guess { /* of a column */
    const char *name;
    int numbers, whole, words;
    int counted, different; /* of the first cells that are there: how many, and how many different ones */
    Table seen;
    Example empty, word;
    Example *form; /* by csv_form; NULL: there is no word */
} Guess;

typedef VEC(Guess) Guesses;

static void count(Arena *a, Example *e, const char *cell, int64_t line) {
    if (e->count++) return;
    e->line = line;
    const bool is_short = strlen(cell) <= EXAMPLE_BYTES;
    e->cell = is_short ? arena_strdup(a, cell) : arena_printf(a, "%.*s...", (int)utf8_cut(cell, EXAMPLE_BYTES), cell);
}

static void look_at_word(Arena *a, Guess *g, const char *cell, int64_t line) {
    if (g->word.count == COUNTED_ROWS) return;
    count(a, &g->word, cell, line);
    if (!g->form) g->form = arena_array(a, Example, CSV_FORMS);
    unsigned forms = csv_forms_of(cell);
    for (int i = 0; i < CSV_FORMS; i++)
        if (forms >> i & 1) count(a, &g->form[i], cell, line);
}

static void look_at(Arena *a, Guess *g, const CsvSchema *s, const char *cell, int64_t line) {
    double v;
    if (csv_schema_is_missing(s, cell)) {
        count(a, &g->empty, cell, line);
        return;
    }
    if (!csv_number(cell, s->decimal, &v)) g->words++, look_at_word(a, g, cell, line);
    else g->numbers++, g->whole += v == floor(v);
    if (g->counted == COUNTED_ROWS) return;
    g->counted++;
    if (table_get(&g->seen, cell)) return;
    table_set(a, &g->seen, arena_strdup(a, cell), g);
    g->different++;
}

static int look_at_rows(Arena *a, CsvReader *r, const CsvSchema *s, Guesses *guesses) {
    int more = csv_next(r);
    if (more < 0) return 1;
    if (!more) return report_text("%s: is empty; the first line names the columns", r->path);
    for (int i = 0; i < r->cells.len; i++) {
        Guess g = {.name = arena_strdup(a, r->cells.data[i].text)};
        vec_push(a, guesses, g);
    }
    while ((more = csv_next(r)) > 0) /* a row of another length is refused when it is read */
        for (int i = 0; i < r->cells.len && i < guesses->len; i++)
            look_at(a, &guesses->data[i], s, r->cells.data[i].text, r->line);
    return more < 0;
}

static CsvKind kind_of(const Guess *g, bool target, int is_class) {
    int there = g->numbers + g->words;
    bool number = g->numbers >= 0.9 * there;
    if (!there) return CSV_IGNORE;
    if (target && is_class >= 0) return is_class ? CSV_CATEGORY : CSV_NUMBER;
    if (target) return number && (g->whole < g->numbers || g->different > FEW_CLASSES) ? CSV_NUMBER : CSV_CATEGORY;
    if (number) return CSV_NUMBER;
    return g->different > MANY_WORDS && g->different > g->counted / 2 ? CSV_IGNORE : CSV_CATEGORY;
}

/* ---- why a column is not used, or not as numbers ----------------------------------------------------------------- */

/* The form that nine in ten of the words have; -1: none. */
static int form_of(const Guess *g) {
    int best = 0;
    for (int i = 1; g->form && i < CSV_FORMS; i++)
        if (g->form[i].count > g->form[best].count) best = i;
    return g->form && g->form[best].count >= 0.9 * g->word.count ? best : -1;
}

static const char *example(Arena *a, const Example *e) {
    char *cell = arena_strdup(a, e->cell);
    for (char *c = cell; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    return arena_printf(a, "such as '%s' in line %" PRId64, cell, e->line);
}

/* NULL: it is used as what it is. */
static const char *why(Arena *a, const Guess *g, CsvKind kind) {
    const int there = g->numbers + g->words, form = form_of(g);
    if (kind == CSV_NUMBER) return NULL;
    if (!there && !g->empty.count) return NULL;
    if (!there) return arena_printf(a, "all its cells are missing, %s", example(a, &g->empty));
    if (form >= 0 && (kind == CSV_IGNORE || form != CSV_FORM_SEVERAL))
        return arena_printf(a, "its %d cells that are not numbers look like %s, %s: %s", g->words, csv_form[form].name,
                            example(a, &g->form[form]), csv_form[form].remedy);
    if (g->words && g->numbers >= g->words)
        return arena_printf(a,
                            "%d of its %d cells are not numbers, %s: correct them, or add them to the line `missing`, "
                            "and write `number` in the schema",
                            g->words, there, example(a, &g->word));
    if (kind != CSV_IGNORE) return NULL;
    return arena_printf(a, "its first %d cells are %d different texts, %s: `category` in the schema gives each an id",
                        g->counted, g->different, example(a, &g->word));
}

/* ---- the schema -------------------------------------------------------------------------------------------------- */

static int find_target(const Guesses *guesses, const char *path, const CsvHints *h) {
    for (int i = 0; h->target && i < guesses->len; i++)
        if (!strcmp(guesses->data[i].name, h->target)) return i;
    if (h->target) {
        report_text("%s: has no column '%s', which target= names", path, h->target);
        return -2;
    }
    return h->last ? guesses->len - 1 : -1;
}

static int make_columns(CsvSchema *s, Arena *a, const char *path, const Guesses *guesses, const CsvHints *h) {
    int target = find_target(guesses, path, h);
    if (target < -1) return 1;
    for (int i = 0; i < guesses->len; i++) {
        const Guess *g = &guesses->data[i];
        CsvColumn c = {.name = g->name, .kind = kind_of(g, i == target, h->target_is_class), .std = 1};
        c.target = i == target && c.kind != CSV_IGNORE;
        c.raw = c.target && c.kind == CSV_NUMBER;
        if (!c.target || h->target_is_class < 0) c.because = why(a, g, c.kind);
        if (!csv_schema_find(s, c.name)) csv_schema_add(s, a, &c); /* else refused when the header is read */
    }
    return 0;
}

int csv_infer(CsvSchema *s, Arena *a, const char *path, const CsvHints *hints) {
    amp_error err = {0};
    CsvReader r;
    Guesses guesses = {0};
    char *text = NULL;
    size_t size = 0;
    Arena *cells = arena_child(a), *words = arena_child(a);
    csv_schema_init(s, a);
    if (amp_file_read_regular(path, 0, NULL, &text, &size, &err)) return report(&err);
    s->delimiter = csv_guess_delimiter(text, size);
    int failed = csv_open(&r, cells, path, text, size, s->delimiter) || look_at_rows(words, &r, s, &guesses);
    for (int i = 0; i < guesses.len; i++) guesses.data[i].name = arena_strdup(a, guesses.data[i].name);
    failed = failed || make_columns(s, a, path, &guesses, hints);
    amp_free(NULL, text, size + 1);
    arena_free(words);
    arena_free(cells);
    return failed;
}
