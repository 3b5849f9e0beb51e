/* columns.h: lines of cells, printed so that the cells line up.
 *
 * The rows are made twice, first to measure, then to print, so that a function of a million ops is never held as text
 * cell by cell: cells live in |arena| until their row is added.
 */
#ifndef AMP_IR_COLUMNS_H
#define AMP_IR_COLUMNS_H

#include "base/text.h"

enum { MAX_CELLS = 7 };

typedef struct Columns {
    Arena *arena; /* of the cells of one row */
    Text *out;    /* NULL: measuring */
    int width[MAX_CELLS], start[MAX_CELLS];
} Columns;

/* Calls |make_rows| twice.  |arena|: where cells are made; what it holds is forgotten. */
void columns_print(Text *t, Arena *arena, void (*make_rows)(Columns *c, const void *of), const void *of);
/* Cells from left to right, the last one NULL; an empty cell is "". */
void columns_add(Columns *c, int indent, ...);
/* A line that does not take part in the alignment. */
void columns_add_line(Columns *c, int indent, const char *line);

#endif
