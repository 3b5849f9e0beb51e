/* csv.c: see csv.h. */
#include "tools/amprun/data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtypes.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/amprun/data/csv_table.h"
#include "tools/amprun/data/data_column.h"

#define DEFAULT_HELD 0.1
enum { TOLD_MOST = 10 };

static const char *const keys[] = {"schema", "target", "held", NULL};
enum { KEY_SCHEMA, KEY_TARGET, KEY_HELD };

/* ---- the schema -------------------------------------------------------------------------------------------------- */

static int read_schema(CsvSource *csv, const char *path) {
    amp_error err = {0};
    char *text = NULL;
    size_t size = 0;
    if (amp_file_read(path, 0, NULL, &text, &size, &err)) return report(&err);
    int failed = csv_schema_parse(&csv->schema, &csv->arena, arena_strdup(&csv->arena, path), text, size);
    amp_free(NULL, text, size + 1);
    return failed;
}

static bool is_integer(amp_dtype t) { return amp_class_of(t) == AMP_CLASS_INTEGER; }

/* What the first input of the train block says of the target. */
static int class_is_wanted(const DataInputs *inputs) {
    return inputs->count > inputs->model_inputs ? is_integer(inputs->input[inputs->model_inputs].dtype) : -1;
}

/* A column by the name of an input of the train block is its target. */
static int mark_targets(CsvSource *csv, const DataSpec *s, const DataInputs *inputs) {
    for (int i = inputs->model_inputs; i < inputs->count; i++) {
        CsvColumn *c = csv_schema_find(&csv->schema, inputs->input[i].name);
        if (!c)
            return report_text("csv:%s: which column is the target?  Name it (csv:%s,target=COLUMN), or give a schema "
                               "(amprun schema csv:%s prints one)",
                               s->path, s->path, s->path);
        c->target = true;
        c->because = NULL;
        c->kind = is_integer(inputs->input[i].dtype) ? CSV_CATEGORY : CSV_NUMBER;
        c->raw = c->kind == CSV_NUMBER;
    }
    return 0;
}

static int infer_schema(CsvSource *csv, const DataSpec *s, const DataInputs *inputs) {
    CsvHints hints = {.target = s->value[KEY_TARGET], .target_is_class = class_is_wanted(inputs)};
    if (csv_infer(&csv->schema, &csv->arena, s->path, &hints)) return 1;
    return hints.target ? 0 : mark_targets(csv, s, inputs);
}

/* Training derives; evaluation and inference take what it has derived. */
static int take_schema(CsvSource *csv, const DataSpec *s, Part part, const DataInputs *inputs) {
    const DataOptions *o = &inputs->options;
    const CsvColumn *open = NULL;
    if (o->schema) return csv_schema_parse(&csv->schema, &csv->arena, o->schema_name, o->schema, strlen(o->schema));
    const char *path = s->value[KEY_SCHEMA];
    if (path && s->value[KEY_TARGET])
        return report_text("csv:%s: schema= and target= are both given; say `target` in the line of the schema",
                           s->path);
    if (path ? read_schema(csv, path) : part == PART_TRAIN && infer_schema(csv, s, inputs)) return 1;
    if (part == PART_TRAIN) return 0;
    if (!path)
        return report_text(
            "csv:%s: needs the schema fitted in training, which amprun train --save F writes to F.schema; "
            "keep it beside the weights, or name it: csv:%s,schema=FILE",
            s->path, s->path);
    if (csv_schema_is_fitted(&csv->schema, &open)) return 0;
    return report_text("%s: has no values fitted for the column '%s'; give the schema that amprun "
                       "train --save F writes to F.schema",
                       path, open->name);
}

static int take_held(CsvSource *csv, const DataSpec *s, const DataInputs *inputs) {
    CsvSchema *schema = &csv->schema;
    const DataOptions *o = &inputs->options;
    const char *value = s->value[KEY_HELD];
    if (value) {
        schema->held_column = NULL;
        schema->has_held = true;
        if (spec_held(s->spec, value, &schema->held)) return 1;
    }
    if (o->held > 0 && schema->has_held && !o->schema)
        return report_text(
            "csv:%s: held= (or `held` in its schema) and --eval-split both say what is held out; give one of them",
            s->path);
    if (schema->has_held) return 0;
    schema->has_held = true;
    schema->held = o->held > 0 ? o->held : o->whole ? 0 : DEFAULT_HELD;
    return 0;
}

/* ---- what is not used -------------------------------------------------------------------------------------------- */

static void tell_more(const DataSpec *s, int told, bool inferred) {
    if (told > TOLD_MOST)
        report_text("%s: the same holds for %d more columns; amprun schema prints all of them", s->path,
                    told - TOLD_MOST);
    if (told && inferred)
        report_text("%s: to change that, keep what amprun schema %s prints in a file, change it, and give it: "
                    "csv:%s,schema=FILE",
                    s->path, s->spec, s->path);
}

/* What was inferred, and what somebody may not have noticed: in each run, until a schema says so. */
static void tell_unused(const CsvSchema *schema, const DataSpec *s, Part part, const DataOptions *o) {
    int told = 0;
    for (int i = 0; o->tells && i < schema->columns.len; i++) {
        const CsvColumn *c = &schema->columns.data[i];
        if (!c->because || told++ >= TOLD_MOST) continue;
        report_text("%s: column '%s' is %s%s: %s", s->path, c->name,
                    c->kind == CSV_IGNORE ? "not used" : "taken for words",
                    part == PART_TRAIN && !o->schema ? "" : ", as in training", c->because);
    }
    tell_more(s, told, part == PART_TRAIN && !o->schema && !s->value[KEY_SCHEMA]);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* The rows of the part, in the order of the file. */
static int take_rows(Dataset *d, const CsvTable *t, Part part, int **rows) {
    int held = 0;
    for (int i = 0; i < t->rows; i++) held += t->held.data[i];
    d->has_test = held > 0;
    *rows = arena_array(t->arena, int, t->rows);
    d->csv->lines = malloc(sizeof *d->csv->lines * (size_t)t->rows);
    if (!d->csv->lines) return report_text("%s: no memory for %d rows", t->path, t->rows);
    for (int i = 0; i < t->rows; i++) {
        if (held && t->held.data[i] != (part == PART_TEST)) continue;
        d->csv->lines[d->count] = t->lines.data[i];
        (*rows)[d->count++] = i;
    }
    return 0;
}

static int fill_input(Dataset *d, const CsvTable *t, const amp_tensor_info *info, const CsvFeatures *features,
                      const int *rows) {
    Column *c = &d->column[d->columns];
    if (column_new(d, info, d->count, t->path) || column_allocate(d, c, t->path)) return 1;
    for (int64_t i = 0, at = 0; i < d->count; i++)
        for (int k = 0; k < features->len; k++, at++) {
            double v;
            const CsvFeature *f = &features->data[k];
            if (csv_feature_value(t, f, rows[i], &v)) return 1;
            if (!column_reaches(c->dtype, v) || !column_store(c, at, v))
                return csv_cell_error(t, f->column, t->lines.data[rows[i]],
                                      "%g does not fit the model's input %s, which is %s%s", v, info->name,
                                      amp_dtype_name(info->dtype),
                                      t->schema->columns.data[f->column].raw ? "" : "; `raw` feeds a number as it is");
        }
    return 0;
}

static int fill(Dataset *d, CsvTable *t, Part part, const DataInputs *inputs) {
    CsvFeatures features[DATA_MAX_INPUTS] = {0};
    int *rows;
    if (csv_choose_features(t, inputs, features) || take_rows(d, t, part, &rows)) return 1;
    csv_number_words(t);
    for (int i = 0; i < inputs->count; i++)
        if (fill_input(d, t, &inputs->input[i], &features[i], rows)) return 1;
    return 0;
}

/* Where rows are held out, training reads the file a second time for them: no pipe is waited for twice. */
static int check_reread(const DataSpec *s, const CsvSchema *schema, const CsvWanted *wanted, const DataOptions *o) {
    amp_error err = {0};
    bool again = wanted->trained && wanted->split && !o->whole && (schema->held > 0 || schema->held_column);
    return again && amp_file_check_regular(s->path, &err) ? report(&err) : 0;
}

static CsvSource *new_source(void) {
    CsvSource *csv = calloc(1, sizeof *csv);
    if (csv) arena_init(&csv->arena, NULL);
    return csv;
}

/* In an arena that jumps where memory is out. */
static int read_all(Dataset *d, const DataSpec *s, Part part, const DataInputs *inputs) {
    CsvTable t;
    CsvWanted wanted = {
        .targets = inputs->count > inputs->model_inputs, .split = !inputs->options.all, .trained = part == PART_TRAIN};
    if (take_schema(d->csv, s, part, inputs) || take_held(d->csv, s, inputs)) return 1;
    if (check_reread(s, &d->csv->schema, &wanted, &inputs->options)) return 1;
    tell_unused(&d->csv->schema, s, part, &inputs->options);
    Arena *rows = arena_child(&d->csv->arena);
    int failed = csv_table_read(&t, rows, s->path, &d->csv->schema, &wanted);
    if (!failed && part == PART_TRAIN) failed = csv_table_fit(&t, &d->csv->schema, &d->csv->arena);
    failed = failed || fill(d, &t, part, inputs);
    if (!failed) d->csv->text = csv_schema_text(&d->csv->schema, &d->csv->arena);
    arena_free(rows);
    return failed;
}

int csv_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs) {
    DataSpec s;
    if (spec_parse(&s, spec, "csv:", keys)) return 1;
    d->csv = new_source();
    if (!d->csv || setjmp(d->csv->arena.out_of_memory)) return report_text("%s: no memory for its rows", spec);
    return read_all(d, &s, part, inputs);
}

void csv_close(CsvSource *csv) {
    if (!csv) return;
    free(csv->lines);
    arena_free(&csv->arena);
    free(csv);
}

bool csv_file(const char *spec, int index, char *path, size_t size) {
    DataSpec s;
    const char *file = spec_read(&s, spec, "csv:", keys) ? (index == 0   ? s.path
                                                            : index == 1 ? s.value[KEY_SCHEMA]
                                                                         : NULL)
                                                         : NULL;
    return file && snprintf(path, size, "%s", file) > 0;
}

/* ---- amprun schema ----------------------------------------------------------------------------------------------- */

static int describe(CsvSource *csv, const DataSpec *s, int *rows, int *held) {
    CsvTable t;
    DataInputs none = {.model = "schema"};
    CsvHints hints = {.target = s->value[KEY_TARGET], .last = true, .target_is_class = -1};
    const char *path = s->value[KEY_SCHEMA];
    if (path && s->value[KEY_TARGET])
        return report_text("csv:%s: schema= and target= are both given; say `target` in the line of the schema",
                           s->path);
    amp_error err = {0};
    if (amp_file_check_regular(s->path, &err)) return report(&err); /* it is read again when it is trained on */
    if (path ? read_schema(csv, path) : csv_infer(&csv->schema, &csv->arena, s->path, &hints)) return 1;
    if (take_held(csv, s, &none)) return 1;
    CsvWanted wanted = {.targets = true, .split = true, .trained = true};
    if (csv_table_read(&t, &csv->arena, s->path, &csv->schema, &wanted) || csv_table_fit(&t, &csv->schema, &csv->arena))
        return 1;
    csv->text = csv_schema_text(&csv->schema, &csv->arena);
    *rows = t.rows;
    *held = 0;
    for (int i = 0; i < t.rows; i++) *held += t.held.data[i];
    return 0;
}

int csv_describe(CsvSource *csv, const char *spec, int *rows, int *held) {
    DataSpec s;
    if (strncmp(spec, "csv:", 4)) return report_text("schema %s: write csv:FILE[,schema=FILE][,target=COLUMN]", spec);
    if (spec_parse(&s, spec, "csv:", keys)) return 1;
    arena_init(&csv->arena, NULL);
    if (setjmp(csv->arena.out_of_memory)) return report_text("%s: no memory for its rows", spec);
    return describe(csv, &s, rows, held);
}
