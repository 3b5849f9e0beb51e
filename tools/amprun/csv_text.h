/* csv_text.h: records and cells of comma-separated text: RFC 4180, with LF as well as CRLF, and any delimiter. */
#ifndef AMP_TOOLS_CSV_TEXT_H
#define AMP_TOOLS_CSV_TEXT_H

#include <stdbool.h>

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
