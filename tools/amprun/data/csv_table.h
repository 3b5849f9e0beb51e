/* csv_table.h: from the text of a csv file to what a model is fed: cells, columns in memory, features. */
#ifndef AMP_TOOLS_CSV_TABLE_H
#define AMP_TOOLS_CSV_TABLE_H

#include <stdbool.h>

#include "base/arena.h"
#include "tools/amprun/data/csv_schema.h"
#include "tools/amprun/data/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- csv_text.c: records and cells of comma-separated text: RFC 4180, also with LF, and any delimiter ------------ */

typedef struct CsvCell {
    char *text; /* without quotes, and, where it had none, without spaces around it */
    bool quoted;
} CsvCell;

typedef VEC(CsvCell) CsvCells;

typedef struct CsvReader {
    Arena *arena;     /* of the cells: reset by each record */
    const char *path; /* for messages */
    const char *at, *end;
    char delimiter;
    int64_t line, next_line; /* on which the last record began; and the next one begins */
    CsvCells cells;          /* of the last record */
} CsvReader;

/* Of |size| bytes, which end with a NUL that |size| does not count.  Skips a byte order mark.  Reports and returns 1
 * where they are no UTF-8 text. */
int csv_open(CsvReader *r, Arena *arena, const char *path, const char *text, size_t size, char delimiter);
/* 1: a record; 0: the end; -1: it is no such record (reported).  Empty lines are left out. */
int csv_next(CsvReader *r);

/* The delimiter that the first line has most of: , ; | or a tab. */
char csv_guess_delimiter(const char *text, size_t size);

/* ---- csv_table.c: a file in memory: numbers, and words by their place in a list, as a schema says ---------------- */

typedef struct CsvData { /* of one column, by row */
    int place;           /* in the file, from 0; -1: it is not there, or not read */
    VEC(double) numbers; /* NaN: missing */
    VEC(int32_t) words;  /* of a category: index into |word|; -1: missing */
    CsvWords word;       /* different ones, in the order of the file */
    Table known;
    int32_t *ids; /* by word: csv_number_words; -1: it was not trained */
} CsvData;

typedef struct CsvTable {
    Arena *arena;
    const char *path;
    const CsvSchema *schema;
    Table header;  /* names, to places in the file */
    CsvData *data; /* by column of the schema */
    int rows;
    VEC(int64_t) lines; /* by row: where it begins */
    VEC(char) held;     /* by row: it is held out */
    char content[65];   /* SHA-256 of the file */
} CsvTable;

/* What is read of a file. */
typedef struct CsvWanted {
    bool targets; /* they have to be there */
    bool split;   /* |held| is filled; else nothing is held out */
    bool trained; /* to be trained; else a part that was held out of another file is not looked for in this one */
} CsvWanted;

/* Reports and returns 1 on failure. */
int csv_table_read(CsvTable *t, Arena *a, const char *path, const CsvSchema *schema, const CsvWanted *wanted);
/* Derives what |schema|, which is that of the table, has not yet, from the rows that are not held out; in |a|. */
int csv_table_fit(const CsvTable *t, CsvSchema *schema, Arena *a);

/* Reports what is wrong with a cell, with file, line and column; returns 1. */
int csv_cell_error(const CsvTable *t, int column, int64_t line, const char *format, ...) AMP_PRINTF(4, 5);

/* A cell as a number, with '.' or ',' as its decimal |point|. */
bool csv_number(const char *cell, char point, double *out);

/* ---- csv_forms.c: what a cell that is no number looks like: 12,5 or 5% or 2024-01-31 ----------------------------- */

enum { CSV_FORMS = 11, CSV_FORM_SEVERAL = 9 };

typedef struct CsvForm {
    const char *name;   /* "numbers with a decimal comma" */
    const char *remedy; /* what to write in the table or in the schema */
} CsvForm;

extern const CsvForm csv_form[CSV_FORMS]; /* CSV_FORM_SEVERAL: several numbers in a cell */

/* Bit i: it has form i.  "1,234" has two.  0: it is a word. */
unsigned csv_forms_of(const char *cell);
/* The first form of a cell that is no number; NULL: it is a word. */
const CsvForm *csv_form_of(const char *cell);

/* ---- csv_infer.c: a schema for a csv file that has none, from what is in its columns ----------------------------- */

typedef struct CsvHints {
    const char *target;  /* a column; NULL: not said */
    bool last;           /* the last column is the target, where none is said */
    int target_is_class; /* 1: ids are wanted of it, 0: numbers, -1: not known */
} CsvHints;

/* A column of which nine in ten cells are numbers is a number, so that the others are said to be wrong; a column of
 * words of which more than half are different (a name, say) is ignored.  What is not used, and words that look like
 * numbers, say why (CsvColumn.because), with a cell and its line.  Reports and returns 1 on failure. */
int csv_infer(CsvSchema *s, Arena *a, const char *path, const CsvHints *hints);

/* ---- csv_features.c: which columns of a table feed which input of a model, and with what ------------------------- */

typedef struct CsvFeature {
    int column;
    bool missing; /* 1 where the column is missing, else 0; not its value */
} CsvFeature;

typedef VEC(CsvFeature) CsvFeatures;

/* |features|: by input, in the order in which they are fed.  Reports and returns 1 where they do not fit the model. */
int csv_choose_features(const CsvTable *t, const DataInputs *inputs, CsvFeatures *features);

/* The id of each word of each category, for csv_feature_value. */
void csv_number_words(CsvTable *t);
/* What is fed for a row.  Reports and returns 1 for a category that was not trained. */
int csv_feature_value(const CsvTable *t, const CsvFeature *f, int row, double *out);

#ifdef __cplusplus
}
#endif
#endif
