/* csv_infer.h: a schema for a csv file that has none, from what is in its columns. */
#ifndef AMP_TOOLS_CSV_INFER_H
#define AMP_TOOLS_CSV_INFER_H

#include "tools/amprun/csv_schema.h"

typedef struct CsvHints {
    const char *target;  /* a column; NULL: not said */
    bool last;           /* the last column is the target, where none is said */
    int target_is_class; /* 1: ids are wanted of it, 0: numbers, -1: not known */
} CsvHints;

/* A column of which nine in ten cells are numbers is a number, so that the others are said to be wrong; a column of
 * words of which more than half are different (a name, say) is ignored.  What is not used, and words that look like
 * numbers, say why (CsvColumn.because), with a cell and its line.  Reports and returns 1 on failure. */
int csv_infer(CsvSchema *s, Arena *a, const char *path, const CsvHints *hints);

#endif
