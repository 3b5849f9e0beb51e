/* words.c: the words of the text form, and the parts that many of its lines have: names, places, attributes, calls,
 * reasons; columns of them. */
#include "base/dtypes.h"
#include "ir/print.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

const char *const ir_role_names[] = {"param",  "buffer",  "moment",      "counter",
                                     "scaler", "derived", "accumulator", "staged"};
const char *const ir_kernel_kind_names[] = {
#define KERNEL(id, word, ...) #word,
#include "base/kernels.def"
#undef KERNEL
};
const char *const ir_distribution_names[] = {"none", "data", "zero1"};
const char *const ir_order_names[] = {"left", "tree"};
const char *const ir_sums_names[] = {"ieee", "sm_80", "sm_90"};
const char *const ir_layout_names[] = {"rows", "panels", "pairs", "panels_t", "pairs_t"};
const char *const ir_part_words[] = {"part", "chain", "rows", "block"};
const char *const ir_buffer_kind_names[] = {"temp", "flag", "input", "output", "state", "watch", "look"};

/* Words that introduce an optional part or the next line, and so could not be told from a name there; values that are
 * no symbols. */
static const char *const reserved[] = {
    "at",     "because", "decision", "false",  "file",  "from",   "func", "graph",  "hwio",
    "if",     "inf",     "layer",    "live",   "low",   "nan",    "of",   "origin", "override",
    "policy", "reads",   "removed",  "sha256", "state", "stored", "true", "writes",
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool word_starts(char c) { return is_letter(c) || c == '_' || c == '.'; }

bool value_name_char(char c) { return word_starts(c) || is_digit(c); }

bool word_goes_on(char c) { return value_name_char(c) || c == '/' || c == '+' || c == '-'; }

bool word_is_reserved(const char *s) { return word_index(s, reserved, COUNT(reserved)) >= 0; }

int word_index(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i])) return i;
    return -1;
}

Dtype word_dtype(const char *word) {
    for (int d = AMP_DT_F32; d < AMP_DTYPES; d++)
        if (!strcmp(word, amp_dtype_name((Dtype)d))) return (Dtype)d;
    return AMP_DT_NONE;
}

/* ---- words and places, printed ----------------------------------------------------------------------------------- */

static bool is_bare(const char *s) {
    if (!word_starts(*s) || word_is_reserved(s)) return false;
    while (word_goes_on(*s)) s++;
    return *s == '\0';
}

/* "-" means none. */
void print_word(Text *t, const char *s) {
    if (!s) text_putc(t, '-');
    else if (is_bare(s)) text_puts(t, s);
    else text_put_quoted(t, s);
}

void print_value_name(Text *t, const char *name) {
    const char *end = name;
    while (value_name_char(*end)) end++;
    text_putc(t, '%');
    if (*end || end == name) text_put_quoted(t, name);
    else text_puts(t, name);
}

void print_value(Text *t, const Func *f, Val v) {
    const Value *value = v.id ? ir_value(f, v) : NULL;
    if (value) print_value_name(t, value->name);
    else text_puts(t, "%?"); /* only in a module that the verifier refuses */
}

/* "KEYWORD WORD" where there is a word. */
void print_optional(Text *t, const char *keyword, const char *word) {
    if (!word) return;
    text_printf(t, " %s ", keyword);
    print_word(t, word);
}

void print_place(Text *t, Pos pos) {
    print_word(t, pos.file);
    text_printf(t, ":%d:%d", pos.line, pos.column);
}

bool print_is_somewhere(Pos pos) { return pos.file && pos.line; }

void print_at(Text *t, Pos pos) {
    if (!print_is_somewhere(pos)) return;
    text_puts(t, t->len ? " at " : "at ");
    print_place(t, pos);
}

/* A print_cell of its own: a text that starts empty. */
Text print_cell(const Columns *c) {
    Text t;
    text_init(&t, c->arena);
    return t;
}

const char *print_at_cell(const Columns *c, Pos pos) {
    Text t = print_cell(c);
    print_at(&t, pos);
    return text_str(&t);
}

/* ---- attributes, calls and reasons, printed ---------------------------------------------------------------------- */

static void put_dims(Text *t, const Dims *dims) {
    text_putc(t, '(');
    for (int i = 0; i < dims->count; i++) text_printf(t, "%s%lld", i ? ", " : "", (long long)dims->at[i]);
    text_putc(t, ')');
}

static void put_numbers(Text *t, const Numbers *numbers) {
    text_putc(t, '[');
    for (int i = 0; numbers && i < numbers->count; i++) {
        if (i) text_puts(t, ", ");
        text_put_double(t, numbers->at[i]);
    }
    text_putc(t, ']');
}

void print_attr(Text *t, AttrType type, const AttrValue *v) {
    switch (type) {
    case ATTR_INT: text_printf(t, "%lld", (long long)v->i); break;
    case ATTR_FLOAT: text_put_double(t, v->f); break;
    case ATTR_BOOL: text_puts(t, v->b ? "true" : "false"); break;
    case ATTR_SYMBOL: print_word(t, v->s ? v->s : ""); break;
    case ATTR_STRING: text_put_quoted(t, v->s ? v->s : ""); break;
    case ATTR_DIMS: put_dims(t, &v->dims); break;
    case ATTR_NUMBERS: put_numbers(t, v->numbers); break;
    case ATTR_END: break;
    }
}

/* |placed|: a schedule among the arguments says where it is written. */
static void put_call(Text *t, const Call *c, bool placed) {
    print_word(t, c->name);
    text_putc(t, '(');
    for (int i = 0; i < c->args.len; i++) {
        const CallArg *arg = &c->args.data[i];
        if (i) text_puts(t, ", ");
        print_word(t, arg->name);
        text_puts(t, " = ");
        if (arg->call) put_call(t, arg->call, placed);
        else print_attr(t, arg->type, &arg->value);
        if (arg->call && placed) print_at(t, arg->call->pos);
    }
    text_putc(t, ')');
}

void ir_print_call(Text *t, const Call *c) { put_call(t, c, false); }

void print_placed_call(Text *t, const Call *c) { put_call(t, c, true); }

void ir_print_reason(Text *t, const Reason *r) {
    text_putc(t, '{');
    print_word(t, r->rule);
    if (r->origin) {
        text_puts(t, ", ");
        print_word(t, r->origin);
        text_printf(t, ":%d", r->line);
    }
    if (r->is_override) {
        text_puts(t, ", override ");
        print_place(t, r->where);
    }
    if (r->relation) {
        text_puts(t, ", ");
        if (!strcmp(r->relation, "of")) text_puts(t, "of"); /* reserved elsewhere */
        else print_word(t, r->relation);
        text_putc(t, ' ');
        print_word(t, r->neighbour);
    }
    if (r->because) {
        text_puts(t, ", ");
        text_put_quoted(t, r->because);
    }
    text_putc(t, '}');
}

const char *print_reason_cell(const Columns *c, const Reason *r) {
    Text t = print_cell(c);
    if (r) {
        text_puts(&t, "because ");
        ir_print_reason(&t, r);
    }
    return text_str(&t);
}

/* "@fc1.linear layer linear" */
void print_origin(Text *t, const char *path, const char *layer) {
    if (!path && !layer) return;
    text_putc(t, '@');
    print_word(t, path);
    print_optional(t, "layer", layer);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

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
