/* columns.c: lines of cells, printed so that the cells line up. */
#include "ir/columns.h"

/* A wider cell pushes its own line's rest to the right, not everybody's.  In a function: results, call, types, origin,
 * reason, place. */
static const int widest[MAX_CELLS] = {32, 64, 32, 48, 80, 64, 64};

static bool is_empty(const char *cell) { return !cell || !*cell; }

/* A first cell without a second one is a statement of its own: it takes part in no alignment, it only tries to stop
 * before the cell that follows. */
static void measure_row(Columns *c, const char *const *cell) {
    for (int i = is_empty(cell[1]) ? 1 : 0; i < MAX_CELLS; i++) {
        int n = is_empty(cell[i]) ? 0 : (int)strlen(cell[i]);
        if (n <= widest[i] && n > c->width[i]) c->width[i] = n;
    }
}

static void print_row(Columns *c, int indent, const char *const *cell) {
    bool first = true;
    text_printf(c->out, "%*s", indent, "");
    for (int i = 0; i < MAX_CELLS; i++) {
        if (is_empty(cell[i])) continue;
        if (!first || c->start[i]) text_pad_to(c->out, indent + c->start[i]);
        text_puts(c->out, cell[i]);
        first = false;
    }
    text_putc(c->out, '\n');
}

void columns_add(Columns *c, int indent, ...) {
    const char *cells[MAX_CELLS] = {NULL}, *cell;
    va_list args;
    va_start(args, indent);
    for (int i = 0; i < MAX_CELLS && (cell = va_arg(args, const char *)); i++) cells[i] = cell;
    va_end(args);
    if (c->out) print_row(c, indent, cells);
    else measure_row(c, cells);
    arena_reset(c->arena);
}

void columns_add_line(Columns *c, int indent, const char *line) { columns_add(c, indent, line, NULL); }

void columns_print(Text *t, Arena *arena, void (*make_rows)(Columns *c, const void *of), const void *of) {
    Columns c = {.arena = arena};
    make_rows(&c, of);
    for (int i = 1; i < MAX_CELLS; i++) c.start[i] = c.start[i - 1] + (c.width[i - 1] ? c.width[i - 1] + 1 : 0);
    c.out = t;
    make_rows(&c, of);
}
