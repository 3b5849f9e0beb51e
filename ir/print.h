/* print.h: what the printers of the text form share: columns, and the parts that many lines have.  All in words.c. */
#ifndef AMP_IR_PRINT_H
#define AMP_IR_PRINT_H

#include "ir/words.h"

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* Lines of cells, printed so that the cells line up.  The rows are made twice, first to measure, then to print, so that
 * a function of a million ops is never held as text cell by cell: cells live in |arena| until their row is added. */
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

/* ---- parts of lines ---------------------------------------------------------------------------------------------- */

void print_word(Text *t, const char *s); /* in quotes if it is no bare word; NULL is written "-" */
void print_value_name(Text *t, const char *name);
void print_value(Text *t, const Func *f, Val v);
void print_optional(Text *t, const char *keyword, const char *word); /* " KEYWORD WORD" where there is a word */
void print_place(Text *t, Pos pos);
bool print_is_somewhere(Pos pos);
void print_at(Text *t, Pos pos);                /* " at FILE:LINE:COLUMN" where it is somewhere */
void print_placed_call(Text *t, const Call *c); /* ir_print_call, and the places of schedules among its arguments */
void print_attr(Text *t, AttrType type, const AttrValue *v);
void print_origin(Text *t, const char *path, const char *layer); /* "@fc1.linear layer linear" */

/* Cells of columns: texts of their own, in the columns' arena. */
Text print_cell(const Columns *c);
const char *print_at_cell(const Columns *c, Pos pos);
const char *print_reason_cell(const Columns *c, const Reason *r);

#endif
