/* columns.h: lines of cells, printed so that the cells line up. */
#ifndef AMP_IR_COLUMNS_H
#define AMP_IR_COLUMNS_H

#include "base/text.h"

enum { MAX_CELLS = 7 };

typedef struct Row {
    int indent;
    const char *cell[MAX_CELLS]; /* NULL or "": empty */
} Row;

typedef struct Columns {
    Arena *arena;
    VEC(Row) rows;
} Columns;

void columns_init(Columns *c, Arena *a);
/* Cells from left to right, the last one NULL; an empty cell is "". */
void columns_add(Columns *c, int indent, ...);
/* A line that does not take part in the alignment. */
void columns_add_line(Columns *c, int indent, const char *line);
void columns_print(Text *t, const Columns *c);

#endif
