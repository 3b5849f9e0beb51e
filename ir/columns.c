/* columns.c: lines of cells, printed so that the cells line up. */
#include "ir/columns.h"

/* A wider cell pushes its own line's rest to the right, not everybody's.  In a function: results, call, types, origin,
 * reason, place. */
static const int widest[MAX_CELLS] = {32, 64, 32, 48, 80, 64, 64};

void columns_init(Columns *c, Arena *a) { *c = (Columns){.arena = a}; }

void columns_add(Columns *c, int indent, ...) {
    Row row = {.indent = indent};
    va_list args;
    va_start(args, indent);
    const char *cell;
    for (int i = 0; i < MAX_CELLS && (cell = va_arg(args, const char *)); i++) row.cell[i] = cell;
    va_end(args);
    vec_push(c->arena, &c->rows, row);
}

void columns_add_line(Columns *c, int indent, const char *line) { columns_add(c, indent, line, NULL); }

static bool is_empty(const char *cell) { return !cell || !*cell; }

/* Where each cell starts, from the line's indentation.  A first cell without a second one is a statement of its own:
 * it takes
 * part in no alignment, it only tries to stop before the cell that follows. */
static void measure(const Columns *c, int *start) {
    int width[MAX_CELLS] = {0};
    for (int r = 0; r < c->rows.len; r++) {
        const Row *row = &c->rows.data[r];
        for (int i = is_empty(row->cell[1]) ? 1 : 0; i < MAX_CELLS; i++) {
            int n = is_empty(row->cell[i]) ? 0 : (int)strlen(row->cell[i]);
            if (n <= widest[i] && n > width[i]) width[i] = n;
        }
    }
    start[0] = 0;
    for (int i = 1; i < MAX_CELLS; i++) start[i] = start[i - 1] + (width[i - 1] ? width[i - 1] + 1 : 0);
}

void columns_print(Text *t, const Columns *c) {
    int start[MAX_CELLS];
    measure(c, start);
    for (int r = 0; r < c->rows.len; r++) {
        const Row *row = &c->rows.data[r];
        text_printf(t, "%*s", row->indent, "");
        bool first = true;
        for (int i = 0; i < MAX_CELLS; i++) {
            if (is_empty(row->cell[i])) continue;
            if (!first || start[i]) text_pad_to(t, row->indent + start[i]);
            text_puts(t, row->cell[i]);
            first = false;
        }
        text_putc(t, '\n');
    }
}
