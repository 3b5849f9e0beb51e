/* csv_schema.h: what the columns of a csv file mean to a model, as a text that people read and change:
 *
 *     amp csv 1
 *     delimiter ","
 *     decimal ","                            # 12,5 is a number, and 12.5 is none; else the other way round
 *     missing "" NA "?"                      # cells that are missing values
 *     held 0.1                               # what is held out: a part, or a number of rows; or
 *     held where split is test               # the rows whose column `split` is `test`
 *     number age mean 38.6 std 13.6
 *     number pay indicator mean 9.5 std 2.1  # and a number after it: 1 where it is missing
 *     category job values clerk cook driver  # ids: 0 missing, then 1, 2, 3
 *     category city unknown input places     # cities that are not known count as missing; feeds the input `places`
 *     category bought target values no yes   # ids: 0, 1
 *     ignore id
 *     ignore pay because "..."               # why, where nobody has said so: see csv_table.h
 *
 * A word with other characters than letters, digits and . _ - is quoted, as cells of csv are.  mean, std and values are
 * derived from the rows that are trained; a schema that has them is fitted, and `fitted`, the SHA-256 of the file,
 * says from what.
 */
#ifndef AMP_TOOLS_CSV_SCHEMA_H
#define AMP_TOOLS_CSV_SCHEMA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CsvKind { CSV_IGNORE, CSV_NUMBER, CSV_CATEGORY } CsvKind;

typedef VEC(const char *) CsvWords;

typedef struct CsvColumn {
    const char *name;
    CsvKind kind;
    bool target;
    bool raw;            /* of a number: fed as it is; else less the mean, in units of the standard deviation */
    bool indicator;      /* of a number: whether it is missing is fed after it */
    bool unknown;        /* of a category: values that are not known count as missing */
    const char *input;   /* of the model; NULL: the one that fits */
    const char *because; /* why it is not used, or not as a number, if that was inferred; NULL: it was said */
    bool fitted;
    double mean, std;
    CsvWords values; /* of a category, by id */
} CsvColumn;

typedef struct CsvSchema {
    char delimiter, decimal;
    Table missing; /* the cells that are */
    bool has_held;
    double held; /* where |held_column| is NULL */
    const char *held_column, *held_value;
    const char *fitted; /* SHA-256 of the file; NULL: not fitted to any */
    VEC(CsvColumn) columns;
    Table by_name; /* index into |columns| */
} CsvSchema;

/* Nothing but what is taken for missing. */
void csv_schema_init(CsvSchema *s, Arena *a);
/* Reports and returns 1 where |text|, which ends with a NUL that |size| does not count, is none; |name| names it. */
int csv_schema_parse(CsvSchema *s, Arena *a, const char *name, const char *text, size_t size);
/* As text, in the arena. */
const char *csv_schema_text(const CsvSchema *s, Arena *a);

/* Of a name that no other one has. */
void csv_schema_add(CsvSchema *s, Arena *a, const CsvColumn *c);
CsvColumn *csv_schema_find(const CsvSchema *s, const char *name); /* NULL: none */
bool csv_schema_is_missing(const CsvSchema *s, const char *cell);
/* Whether every column has what is derived; |first| (or NULL): the first that has not. */
bool csv_schema_is_fitted(const CsvSchema *s, const CsvColumn **first);
/* How many ids a category has. */
int csv_column_ids(const CsvColumn *c);

#ifdef __cplusplus
}
#endif
#endif
