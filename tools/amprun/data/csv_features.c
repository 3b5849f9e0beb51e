/* csv_features.c: see csv_table.h. */
#include "tools/amprun/data/csv_table.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"
#include "tools/amprun/data/data_column.h"

/* ---- which columns ----------------------------------------------------------------------------------------------- */

static const CsvColumn *column_at(const CsvTable *t, int c) { return &t->schema->columns.data[c]; }

static int find_input(const DataInputs *inputs, const char *name) {
    for (int i = 0; i < inputs->count; i++)
        if (!strcmp(inputs->input[i].name, name)) return i;
    return -1;
}

/* The input that a column feeds by its own or by the schema's word; -1: the one that fits. */
static int said_input(const CsvTable *t, const DataInputs *inputs, int column) {
    const CsvColumn *c = column_at(t, column);
    return find_input(inputs, c->input ? c->input : c->name);
}

static void add(const CsvTable *t, CsvFeatures *out, int column) {
    vec_push(t->arena, out, ((CsvFeature){column, false}));
    if (column_at(t, column)->indicator) vec_push(t->arena, out, ((CsvFeature){column, true}));
}

/* "age_missing" of the column "age"; -1: it is no such name. */
static int missing_of(const CsvTable *t, const char *input) {
    static const char end[] = "_missing";
    size_t n = strlen(input), m = sizeof end - 1;
    if (n <= m || strcmp(input + n - m, end)) return -1;
    const CsvColumn *c = csv_schema_find(t->schema, arena_strndup(t->arena, input, n - m));
    const int index = c ? (int)(c - t->schema->columns.data) : -1;
    return c && t->data[index].place >= 0 ? index : -1;
}

/* What an input is for, that no column names. */
static bool fits(const CsvTable *t, const DataInputs *inputs, int input, int column) {
    const CsvColumn *c = column_at(t, column);
    bool is_float = column_is_float(inputs->input[input].dtype);
    if (c->target || input >= inputs->model_inputs) return c->target && input >= inputs->model_inputs;
    return (c->kind == CSV_NUMBER) == is_float;
}

/* |said|: said_input of each column. */
static void choose(const CsvTable *t, const DataInputs *inputs, const int *said, int input, CsvFeatures *out) {
    const char *name = inputs->input[input].name;
    int columns = t->schema->columns.len;
    for (int c = 0; c < columns; c++)
        if (t->data[c].place >= 0 && said[c] == input) add(t, out, c);
    if (out->len) return;
    int of = missing_of(t, name);
    if (of >= 0) vec_push(t->arena, out, ((CsvFeature){of, true}));
    for (int c = 0; of < 0 && !strcmp(name, "missing") && c < columns; c++)
        if (t->data[c].place >= 0 && column_at(t, c)->kind == CSV_NUMBER && !column_at(t, c)->target)
            vec_push(t->arena, out, ((CsvFeature){c, true}));
    if (out->len) return;
    for (int c = 0; c < columns; c++)
        if (t->data[c].place >= 0 && said[c] < 0 && fits(t, inputs, input, c)) add(t, out, c);
}

/* ---- whether they fit -------------------------------------------------------------------------------------------- */

static const char *names_of(const CsvTable *t, const CsvFeatures *features) {
    Text text;
    text_init(&text, t->arena);
    for (int i = 0; i < features->len; i++)
        text_printf(&text, "%s%s%s", i ? ", " : "", column_at(t, features->data[i].column)->name,
                    features->data[i].missing ? " (missing)" : "");
    return features->len ? text_str(&text) : "none";
}

static int check_width(const CsvTable *t, const amp_tensor_info *info, const CsvFeatures *features) {
    if (column_elements(info) == features->len) return 0;
    return report_text("%s: the model's input %s takes %" PRId64
                       " numbers per sample, and %d come from the columns: %s; "
                       "change the model, or the schema (`ignore`, `input %s`)",
                       t->path, info->name, column_elements(info), features->len, names_of(t, features), info->name);
}

static int check_ids(const CsvTable *t, const DataInputs *inputs, int input, const CsvFeatures *features) {
    for (int i = 0; i < features->len; i++) {
        const CsvColumn *c = column_at(t, features->data[i].column);
        int64_t bound = inputs->bound[input];
        if (c->kind != CSV_CATEGORY || !bound || csv_column_ids(c) <= bound) continue;
        return report_text("%s: column %d (%s) has %d ids%s, but the model's input %s takes ids from 0 to %" PRId64
                           ": give the model as many",
                           t->path, t->data[features->data[i].column].place + 1, c->name, csv_column_ids(c),
                           c->target ? "" : ", of which 0 means missing", inputs->input[input].name, bound - 1);
    }
    return 0;
}

/* |uses|: how many inputs it feeds. */
static int check_column(const CsvTable *t, const DataInputs *inputs, int column, int uses) {
    const CsvColumn *c = column_at(t, column);
    if (c->input && find_input(inputs, c->input) < 0)
        return report_text("%s: the schema feeds the column '%s' to the input '%s', which %s does not have", t->path,
                           c->name, c->input, inputs->model);
    if (uses == 1) return 0;
    if (uses > 1)
        return report_text("%s: the column '%s' would feed %d inputs of %s; say which in the schema (`input NAME`)",
                           t->path, c->name, uses, inputs->model);
    return report_text(
        "%s: the column '%s', a %s, feeds no input of %s; say which in the schema (`input NAME`), or leave "
        "it out (`ignore`)",
        t->path, c->name, c->kind == CSV_NUMBER ? "number" : "category", inputs->model);
}

int csv_choose_features(const CsvTable *t, const DataInputs *inputs, CsvFeatures *features) {
    const int columns = t->schema->columns.len;
    int *said = arena_array(t->arena, int, columns + 1), *uses = arena_array(t->arena, int, columns + 1);
    for (int c = 0; c < columns; c++) said[c] = said_input(t, inputs, c);
    for (int i = 0; i < inputs->count; i++) {
        choose(t, inputs, said, i, &features[i]);
        for (int k = 0; k < features[i].len; k++) uses[features[i].data[k].column] += !features[i].data[k].missing;
    }
    for (int c = 0; c < columns; c++)
        if (t->data[c].place >= 0 && check_column(t, inputs, c, uses[c])) return 1;
    for (int i = 0; i < inputs->count; i++)
        if (check_width(t, &inputs->input[i], &features[i]) || check_ids(t, inputs, i, &features[i])) return 1;
    return 0;
}

/* ---- what is fed ------------------------------------------------------------------------------------------------- */

static void number_words(CsvTable *t, int column) {
    const CsvColumn *c = column_at(t, column);
    CsvData *d = &t->data[column];
    Table ids = {0};
    int32_t *id = arena_array(t->arena, int32_t, c->values.len + 1);
    for (int i = 0; i < c->values.len; i++) {
        id[i] = i + !c->target;
        table_set(t->arena, &ids, c->values.data[i], &id[i]);
    }
    d->ids = arena_array(t->arena, int32_t, d->word.len + 1);
    for (int i = 0; i < d->word.len; i++) {
        const int32_t *known = table_get(&ids, d->word.data[i]);
        d->ids[i] = known ? *known : c->unknown && !c->target ? 0 : -1;
    }
}

void csv_number_words(CsvTable *t) {
    for (int c = 0; c < t->schema->columns.len; c++)
        if (t->data[c].place >= 0 && column_at(t, c)->kind == CSV_CATEGORY) number_words(t, c);
}

static int category_value(const CsvTable *t, int column, int row, double *out) {
    const CsvData *d = &t->data[column];
    const CsvColumn *c = column_at(t, column);
    int32_t word = d->words.data[row];
    *out = word < 0 ? 0 : d->ids[word];
    if (*out >= 0) return 0;
    return csv_cell_error(t, column, t->lines.data[row],
                          c->target
                              ? "'%s' is not one of the %d values seen in training; correct it, or leave the row out"
                              : "'%s' is not one of the %d values seen in training; correct it, or write `unknown` in "
                                "the column's line of the schema: then it counts as missing",
                          d->word.data[word], c->values.len);
}

int csv_feature_value(const CsvTable *t, const CsvFeature *f, int row, double *out) {
    const CsvColumn *c = column_at(t, f->column);
    if (c->kind == CSV_CATEGORY && f->missing) return *out = t->data[f->column].words.data[row] < 0, 0;
    if (c->kind == CSV_CATEGORY) return category_value(t, f->column, row, out);
    double v = t->data[f->column].numbers.data[row];
    bool missing = isnan(v);
    if (missing) v = c->mean;
    const double more = v - c->mean;
    *out = f->missing ? missing : c->raw ? v : isfinite(more) ? more / c->std : v / c->std - c->mean / c->std;
    return 0;
}
