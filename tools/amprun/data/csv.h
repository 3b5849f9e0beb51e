/* csv.h: tables of numbers and words as the samples of a model.
 *
 *   csv:FILE[,schema=FILE][,target=COLUMN][,held=P]
 *
 * A schema (csv_schema.h) says what the columns are; without one it is inferred, and target= names the column that
 * is predicted.  Numbers are fed less their mean, in units of their standard deviation; categories as ids; both are
 * derived from the rows that are trained.  A number that is missing is fed as the mean, a category that is missing as
 * id 0.
 *
 * Which columns feed an input of the model: those whose line in the schema says so; else the column of the input's
 * name; else, of COLUMN_missing, whether that column is missing, and of `missing` the same of all numbers; else, of an
 * input of the train block, the targets; else of a float input all numbers that are left, and of an integer input all
 * categories, in the order of the schema.
 */
#ifndef AMP_TOOLS_CSV_H
#define AMP_TOOLS_CSV_H

#include "tools/amprun/data/csv_schema.h"
#include "tools/amprun/data/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CsvSource { /* of a data set: its schema, fitted */
    Arena arena;
    CsvSchema schema;
    const char *text; /* of the schema */
    int64_t *lines;   /* of its samples, in the file */
} CsvSource;

/* data_read of such a spec. */
int csv_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs);
void csv_close(CsvSource *csv);
/* The files of |spec|: the table, then its schema; false past the end. */
bool csv_file(const char *spec, int index, char *path, size_t size);

/* The schema that |spec| names or that is inferred, with all that is derived.  |rows| and |held|: of the file. */
int csv_describe(CsvSource *csv, const char *spec, int *rows, int *held);

#ifdef __cplusplus
}
#endif
#endif
