/* csv_table.h: a csv file in memory: numbers, and words by their place in a list, as a schema says. */
#ifndef AMP_TOOLS_CSV_TABLE_H
#define AMP_TOOLS_CSV_TABLE_H

#include "tools/amprun/csv_schema.h"
#include "tools/amprun/csv_text.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
