/* csv_table.c: see csv_table.h. */
#include "tools/amprun/data/csv_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/data/data_column.h"

enum { ROWS_LIMIT = INT32_MAX / 2 };

bool csv_number(const char *cell, char point, double *out) {
    char copy[DECIMAL_LONGEST];
    size_t n = strlen(cell);
    if (point != '.') {
        if (n > sizeof copy || strchr(cell, '.')) return false;
        for (size_t i = 0; i < n; i++) copy[i] = cell[i] == point ? '.' : cell[i];
        cell = copy;
    }
    return decimal_parse(cell, n, out) && isfinite(*out);
}

int csv_cell_error(const CsvTable *t, int column, int64_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(t->arena, format, args);
    va_end(args);
    return report_text("%s:%" PRId64 ": column %d (%s): %s", t->path, line, t->data[column].place + 1,
                       t->schema->columns.data[column].name, text);
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static const char *names_of(Arena *a, const CsvCells *header) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < header->len; i++) text_printf(&t, "%s%s", i ? ", " : "", header->data[i].text);
    return text_str(&t);
}

/* Fills in |header| of the table. */
static int check_header(CsvTable *t, const CsvCells *header, int64_t line) {
    double number;
    int *place = arena_array(t->arena, int, header->len);
    for (int i = 0; i < header->len; i++) {
        const char *name = header->data[i].text;
        if (!*name || csv_number(name, t->schema->decimal, &number))
            return report_text("%s:%" PRId64 ": column %d: '%s' is not a name; the first line names the columns",
                               t->path, line, i + 1, name);
        const int *before = table_get(&t->header, name);
        if (before)
            return report_text("%s:%" PRId64 ": columns %d and %d are both called '%s'; rename one of them", t->path,
                               line, *before + 1, i + 1, name);
        place[i] = i;
        table_set(t->arena, &t->header, name, &place[i]);
    }
    return 0;
}

static bool is_split(const CsvTable *t, const char *name) {
    return t->schema->held_column && !strcmp(t->schema->held_column, name);
}

static int check_known(const CsvTable *t, const CsvCells *header) {
    for (int i = 0; i < header->len; i++) {
        const char *name = header->data[i].text;
        if (csv_schema_find(t->schema, name) || is_split(t, name)) continue;
        return report_text("%s: column '%s' is not in the schema; a line `ignore \"%s\"` there leaves it out", t->path,
                           name, name);
    }
    return 0;
}

static int find_columns(CsvTable *t, const CsvCells *header, const CsvWanted *wanted) {
    for (int c = 0; c < t->schema->columns.len; c++) {
        const CsvColumn *column = &t->schema->columns.data[c];
        t->data[c].place = -1;
        if (column->kind == CSV_IGNORE || (column->target && !wanted->targets)) continue;
        const int *place = table_get(&t->header, column->name);
        if (place) t->data[c].place = *place;
        else
            return report_text("%s: has no column '%s', which the schema names; its columns are %s", t->path,
                               column->name, names_of(t->arena, header));
    }
    return 0;
}

/* -1: not wanted, or not there. */
static int find_split(const CsvTable *t, const CsvWanted *wanted) {
    const char *name = wanted->split ? t->schema->held_column : NULL;
    const int *place = name ? table_get(&t->header, name) : NULL;
    return place ? *place : -1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int refuse_number(const CsvTable *t, int column, int64_t line, const char *cell) {
    const char decimal = t->schema->decimal;
    const CsvForm *form = csv_form_of(cell);
    double v;
    if (decimal != '.' && csv_number(cell, '.', &v))
        return csv_cell_error(t, column, line, "'%s' is not a number with the schema's `decimal \"%c\"`; correct it",
                              cell, decimal);
    return csv_cell_error(t, column, line,
                          "'%s' is not a number; correct it%s%s%s%s%s, or, if it marks a missing value, add it to the "
                          "schema's line `missing`",
                          cell, form ? " (of " : "", form ? form->name : "", form ? ": " : "", form ? form->remedy : "",
                          form ? ")" : "");
}

static int take_number(const CsvTable *t, int column, int64_t line, const char *cell) {
    CsvData *d = &t->data[column];
    double v = NAN;
    if (!csv_schema_is_missing(t->schema, cell) && !csv_number(cell, t->schema->decimal, &v))
        return refuse_number(t, column, line, cell);
    if (isnan(v) && t->schema->columns.data[column].target)
        return csv_cell_error(t, column, line, "the target is missing; leave the row out");
    vec_push(t->arena, &d->numbers, v);
    return 0;
}

static int take_category(const CsvTable *t, int column, int64_t line, const char *cell) {
    CsvData *d = &t->data[column];
    if (csv_schema_is_missing(t->schema, cell)) {
        if (t->schema->columns.data[column].target)
            return csv_cell_error(t, column, line, "the target is missing; leave the row out");
        vec_push(t->arena, &d->words, -1);
        return 0;
    }
    const char *const *known = table_get(&d->known, cell);
    if (!known) {
        const char *word = arena_strdup(t->arena, cell);
        vec_push(t->arena, &d->word, word);
        int32_t *index = arena_new(t->arena, int32_t);
        *index = d->word.len - 1;
        table_set(t->arena, &d->known, word, index);
    }
    vec_push(t->arena, &d->words, *(const int32_t *)table_get(&d->known, cell));
    return 0;
}

static int take_row(CsvTable *t, const CsvReader *r, int columns, int split) {
    if (r->cells.len != columns)
        return report_text("%s:%" PRId64
                           ": has %d cells, and the first line %d names; a cell with the delimiter in it is "
                           "written in quotes",
                           t->path, r->line, r->cells.len, columns);
    if (t->rows == ROWS_LIMIT) return report_text("%s: has more than %d rows", t->path, ROWS_LIMIT);
    for (int c = 0; c < t->schema->columns.len; c++) {
        if (t->data[c].place < 0) continue;
        const char *cell = r->cells.data[t->data[c].place].text;
        bool number = t->schema->columns.data[c].kind == CSV_NUMBER;
        if (number ? take_number(t, c, r->line, cell) : take_category(t, c, r->line, cell)) return 1;
    }
    vec_push(t->arena, &t->lines, r->line);
    vec_push(t->arena, &t->held, (char)(split >= 0 && !strcmp(r->cells.data[split].text, t->schema->held_value)));
    t->rows++;
    return 0;
}

static int take_rows(CsvTable *t, CsvReader *r, const CsvWanted *wanted) {
    int more = csv_next(r);
    if (more < 0) return 1;
    if (!more) return report_text("%s: is empty; the first line names the columns", t->path);
    if (check_header(t, &r->cells, r->line) || check_known(t, &r->cells) || find_columns(t, &r->cells, wanted))
        return 1;
    int columns = r->cells.len, split = find_split(t, wanted);
    if (wanted->split && t->schema->held_column && split < 0)
        return report_text("%s: has no column '%s', which says what is held out; its columns are %s", t->path,
                           t->schema->held_column, names_of(t->arena, &r->cells));
    while ((more = csv_next(r)) > 0)
        if (take_row(t, r, columns, split)) return 1;
    if (more < 0) return 1;
    return t->rows ? 0 : report_text("%s: has no rows after its first line, which names the columns", t->path);
}

/* ---- what is held out -------------------------------------------------------------------------------------------- */

/* Drawn the same way in every run, as data_split does. */
static int draw_held(const CsvTable *t) {
    double share = t->schema->held;
    int64_t held = share < 1 ? (int64_t)(share * t->rows + 0.5) : (int64_t)share;
    if (share > 0 && (held < 1 || held >= t->rows))
        return report_text("%s: of its %d rows %" PRId64 " would be held out; each part needs some (held=P)", t->path,
                           t->rows, held);
    int64_t *order = malloc(sizeof *order * (size_t)t->rows);
    if (!order) return report_text("%s: no memory for the split", t->path);
    shuffle(order, t->rows, 0, INT32_MAX); /* no epoch of a training is that one */
    for (int64_t i = t->rows - held; i < t->rows; i++) t->held.data[order[i]] = 1;
    free(order);
    return 0;
}

static int check_held(const CsvTable *t) {
    int held = 0;
    for (int i = 0; i < t->rows; i++) held += t->held.data[i];
    if (held && held < t->rows) return 0;
    return report_text("%s: its column '%s' is '%s' in %s row; each part needs some", t->path, t->schema->held_column,
                       t->schema->held_value, held ? "every" : "no");
}

static int split(const CsvTable *t) { return t->schema->held_column ? check_held(t) : draw_held(t); }

int csv_table_read(CsvTable *t, Arena *a, const char *path, const CsvSchema *schema, const CsvWanted *wanted) {
    amp_error err = {0};
    CsvReader r;
    char *text = NULL;
    size_t size = 0;
    uint8_t digest[32];
    *t = (CsvTable){.arena = a, .path = path, .schema = schema};
    t->data = arena_array(a, CsvData, schema->columns.len + 1);
    Arena *cells = arena_child(a);
    if (amp_file_read(path, 0, NULL, &text, &size, &err)) return report(&err);
    amp_sha256_of(text, size, digest);
    amp_sha256_hex(digest, t->content);
    int failed = csv_open(&r, cells, path, text, size, schema->delimiter) || take_rows(t, &r, wanted);
    amp_free(NULL, text, size + 1);
    arena_free(cells);
    if (failed || !wanted->split) return failed;
    /* A share is held out of the file that was trained: of another one every row may be evaluated. */
    bool other = !wanted->trained && schema->fitted && strcmp(schema->fitted, t->content) != 0;
    return other && !schema->held_column ? 0 : split(t);
}

/* ---- what is derived --------------------------------------------------------------------------------------------- */

static bool is_trained(const CsvTable *t, const double *v, int row) { return !t->held.data[row] && !isnan(v[row]); }

/* In units of 2^exponent, of which none is above 1: neither sums nor squares of them overflow. */
static int exponent_of(const CsvTable *t, const double *v) {
    double largest = 0;
    int exponent = 0;
    for (int i = 0; i < t->rows; i++)
        if (is_trained(t, v, i) && fabs(v[i]) > largest) largest = fabs(v[i]);
    frexp(largest, &exponent);
    return exponent;
}

static int fit_number(const CsvTable *t, int column, CsvColumn *c) {
    const double *v = t->data[column].numbers.data;
    const int exponent = exponent_of(t, v);
    double sum = 0, squares = 0;
    int count = 0;
    for (int i = 0; i < t->rows; i++)
        if (is_trained(t, v, i)) sum += ldexp(v[i], -exponent), count++;
    if (!count)
        return report_text(
            "%s: column %d (%s) has no number in the rows that are trained; a line `ignore` leaves it out", t->path,
            t->data[column].place + 1, c->name);
    const double mean = sum / count;
    for (int i = 0; i < t->rows; i++) {
        const double apart = is_trained(t, v, i) ? ldexp(v[i], -exponent) - mean : 0;
        squares += apart * apart;
    }
    c->mean = ldexp(mean, exponent);
    c->std = ldexp(sqrt(squares / count), exponent);
    if (!(c->std > 0)) c->std = 1; /* one number in every row: it becomes 0 */
    return 0;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static int fit_category(const CsvTable *t, int column, CsvColumn *c, Arena *a) {
    const CsvData *d = &t->data[column];
    char *trained = arena_alloc(t->arena, (size_t)d->word.len + 1);
    for (int i = 0; i < t->rows; i++)
        if (!t->held.data[i] && d->words.data[i] >= 0) trained[d->words.data[i]] = 1;
    for (int i = 0; i < d->word.len; i++)
        if (trained[i]) vec_push(a, &c->values, arena_strdup(a, d->word.data[i]));
    if (!c->values.len)
        return report_text(
            "%s: column %d (%s) has no value in the rows that are trained; a line `ignore` leaves it out", t->path,
            d->place + 1, c->name);
    qsort(c->values.data, (size_t)c->values.len, sizeof *c->values.data, by_bytes);
    return 0;
}

int csv_table_fit(const CsvTable *t, CsvSchema *schema, Arena *a) {
    for (int i = 0; i < schema->columns.len; i++) {
        CsvColumn *c = &schema->columns.data[i];
        if (c->kind == CSV_IGNORE || c->fitted) continue;
        if (c->kind == CSV_NUMBER ? fit_number(t, i, c) : fit_category(t, i, c, a)) return 1;
        c->fitted = true;
    }
    schema->fitted = arena_strdup(a, t->content);
    return 0;
}
