/* describe.c: what is told of a symbol: its signature, the types of its values, and why they are these. */
#include "tools/ampc/lsp/server.h"

enum { MOST_TYPES = 8, HINT_TYPES = 2 };

static void put_tensors(Text *t, const amp_symbol *s) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    if (s->kind != AMP_SYMBOL_OP) return;
    for (int i = 0; i < s->most && i < 6; i++)
        text_printf(t, "%s%s%s", i ? ", " : "", s->most == 1 ? "x" : names[i], i >= s->least ? " = none" : "");
    if (s->most > 6) text_puts(t, ", ...");
}

static void put_argument(Text *t, const amp_symbol_argument *a) {
    text_puts(t, a->name);
    if (a->type) text_printf(t, ": %s", a->type);
    if (a->initial) text_printf(t, " = %s", *a->initial ? a->initial : "...");
}

const char *describe_signature(Arena *a, const amp_symbol *s) {
    Text t;
    bool settings = s->kind == AMP_SYMBOL_FUNCTION; /* which takes no tensors, and so no ';' */
    text_init(&t, a);
    text_printf(&t, "%s(", s->name);
    put_tensors(&t, s);
    for (size_t i = 0; i < s->argument_count; i++) {
        const bool is_setting = s->arguments[i].type != NULL;
        const bool first = t.data[t.len - 1] == '(';
        if (!first) text_puts(&t, is_setting && !settings ? "; " : ", ");
        settings = settings || is_setting;
        put_argument(&t, &s->arguments[i]);
    }
    text_putc(&t, ')');
    return text_str(&t);
}

/* Numbers of the first values of each type, at most |most|. */
static int distinct_types(const amp_analysis *analysis, const amp_symbol *s, int most, size_t *out) {
    int count = 0;
    for (size_t i = s->first_value; i < s->first_value + s->value_count; i++) {
        int known = 0;
        if (!analysis->values[i].type) continue;
        while (known < count && strcmp(analysis->values[out[known]].type, analysis->values[i].type) != 0) known++;
        if (known == most) break;
        if (known == count) out[count++] = i;
    }
    return count;
}

const char *describe_types(Arena *a, const amp_analysis *analysis, const amp_symbol *s) {
    size_t which[HINT_TYPES + 1];
    const int count = distinct_types(analysis, s, HINT_TYPES + 1, which);
    Text t;
    if (!count) return NULL;
    text_init(&t, a);
    for (int i = 0; i < count; i++) {
        if (i == HINT_TYPES) text_puts(&t, ", ...");
        else text_printf(&t, "%s%s", i ? " or " : "", analysis->values[which[i]].type);
    }
    return text_str(&t);
}

void describe_decision(Text *t, const amp_op_decision *d, bool markdown) {
    /* In Markdown as code: a shape outside it is a link to some editors, which hide its brackets. */
    text_printf(t, markdown ? "`%s %s%s%s`" : "%s %s%s%s", d->path, d->types, d->shape ? " " : "",
                d->shape ? d->shape : "");
    text_printf(t, markdown ? "  \nbecause %s" : "\nbecause %s", d->reason);
}

/* "f32 for softmax", a line each. */
static void put_casts(Text *t, const char *casts, bool markdown) {
    text_puts(t, markdown ? "  \nread as " : "\nread as ");
    for (; *casts; casts++) {
        if (*casts == '\n') text_puts(t, ", ");
        else text_putc(t, *casts);
    }
}

void describe_values(Text *t, const amp_analysis *analysis, const amp_symbol *s, bool markdown) {
    size_t which[MOST_TYPES];
    const int count = distinct_types(analysis, s, MOST_TYPES, which);
    for (int i = 0; i < count; i++) {
        const amp_symbol_value *v = &analysis->values[which[i]];
        if (t->len) text_puts(t, markdown ? "\n\n" : "\n");
        text_printf(t, markdown ? "`%s: %s`" : "%s: %s", s->name, v->type);
        if (v->decision >= 0) {
            text_puts(t, markdown ? "  \n" : "\n");
            describe_decision(t, &analysis->decisions[v->decision], markdown);
        }
        if (v->casts) put_casts(t, v->casts, markdown);
    }
}
