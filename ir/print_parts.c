/* print_parts.c: the parts that many lines of the text form have: words, places, calls, reasons. */
#include "ir/print.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool is_bare(const char *s) {
    if (!word_starts(*s) || word_is_reserved(s)) return false;
    while (word_goes_on(*s)) s++;
    return *s == '\0';
}

/* "-" stands for none. */
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

/* ---- calls and reasons ------------------------------------------------------------------------------------------- */

static void put_dims(Text *t, const Dims *dims) {
    text_putc(t, '(');
    for (int i = 0; i < dims->count; i++) text_printf(t, "%s%lld", i ? ", " : "", (long long)dims->at[i]);
    text_putc(t, ')');
}

void print_attr(Text *t, AttrType type, const AttrValue *v) {
    switch (type) {
    case ATTR_INT: text_printf(t, "%lld", (long long)v->i); break;
    case ATTR_FLOAT: text_put_double(t, v->f); break;
    case ATTR_BOOL: text_puts(t, v->b ? "true" : "false"); break;
    case ATTR_SYMBOL: print_word(t, v->s ? v->s : ""); break;
    case ATTR_STRING: text_put_quoted(t, v->s ? v->s : ""); break;
    case ATTR_DIMS: put_dims(t, &v->dims); break;
    case ATTR_END: break;
    }
}

void ir_print_call(Text *t, const Call *c) {
    print_word(t, c->name);
    text_putc(t, '(');
    for (int i = 0; i < c->args.len; i++) {
        const CallArg *arg = &c->args.data[i];
        if (i) text_puts(t, ", ");
        print_word(t, arg->name);
        text_puts(t, " = ");
        if (arg->call) ir_print_call(t, arg->call);
        else print_attr(t, arg->type, &arg->value);
    }
    text_putc(t, ')');
}

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
