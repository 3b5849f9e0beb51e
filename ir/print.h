/* print.h: what the printers of the text form share. */
#ifndef AMP_IR_PRINT_H
#define AMP_IR_PRINT_H

#include "ir/columns.h"
#include "ir/words.h"

/* ---- print_parts.c ----------------------------------------------------------------------------------------------- */

void print_word(Text *t, const char *s); /* in quotes where it is no bare word; "-" stands for NULL */
void print_value_name(Text *t, const char *name);
void print_value(Text *t, const Func *f, Val v);
void print_optional(Text *t, const char *keyword, const char *word); /* " KEYWORD WORD" where there is a word */
void print_place(Text *t, Pos pos);
bool print_is_somewhere(Pos pos);
void print_at(Text *t, Pos pos); /* " at FILE:LINE:COLUMN" where it is somewhere */
void print_attr(Text *t, AttrType type, const AttrValue *v);
void print_origin(Text *t, const char *path, const char *layer); /* "@fc1.linear layer linear" */

/* Cells of columns: texts of their own, in the columns' arena. */
Text print_cell(const Columns *c);
const char *print_at_cell(const Columns *c, Pos pos);
const char *print_reason_cell(const Columns *c, const Reason *r);

#endif
