/* schema.c: amprun schema: prints what the columns of a table mean, with all that is derived of them. */
#include <stdio.h>
#include <string.h>

#include "tools/amprun/data/csv.h"

static void count(const CsvSchema *s, CsvKind kind, bool target, int *columns) {
    *columns = 0;
    for (int i = 0; i < s->columns.len; i++)
        *columns += s->columns.data[i].kind == kind && s->columns.data[i].target == target;
}

/* What a model has to read, as comments after the schema. */
static void print_notes(const CsvSchema *s, int rows, int held) {
    int numbers, categories;
    count(s, CSV_NUMBER, false, &numbers);
    count(s, CSV_CATEGORY, false, &categories);
    printf("# %d rows, of which %d are held out\n", rows, held);
    printf("# for a model of %d numbers (f32[N, %d]) and %d categories (i32[N, %d])\n", numbers, numbers, categories,
           categories);
    for (int i = 0; i < s->columns.len; i++) {
        const CsvColumn *c = &s->columns.data[i];
        if (c->kind == CSV_CATEGORY)
            printf("#   %s: %d ids%s\n", c->name, csv_column_ids(c), c->target ? ", target" : "");
    }
}

int command_schema(const Args *a) {
    static CsvSource csv; /* large: an arena's jump buffer */
    int rows, held, failed = csv_describe(&csv, a->model, &rows, &held);
    if (!failed) {
        fputs(csv.text, stdout);
        print_notes(&csv.schema, rows, held);
    }
    arena_free(&csv.arena);
    return failed;
}
