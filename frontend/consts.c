/* consts.c: `const` declarations, and the -D options that replace their values. */
#include "frontend/elaborate.h"

#include "base/decimal.h"

/* ---- -D NAME=VALUE --------------------------------------------------------------------------------------- */

static Decl *find_const(const Unit *unit, const char *name) {
    for (int i = 0; i < unit->file->decls.len; i++) {
        Decl *d = unit->file->decls.data[i];
        if (d->kind == DECL_CONST && !strcmp(d->name->text, name)) return d;
    }
    return NULL;
}

static bool parse_int(const char *s, int64_t *out) {
    bool negative = *s == '-';
    if (negative) s++;
    if (!*s) return false;
    for (*out = 0; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *s - '0', out)) return false;
    }
    if (negative) *out = -*out;
    return true;
}

/* The literal that the text of a -D option is, at the place of the const it replaces. */
static Expr *parse_value(Elab *e, const char *text, Loc loc) {
    int64_t i;
    double f;
    if (parse_int(text, &i)) {
        Expr *x = expr_new(e->a, EXPR_INT, loc);
        x->i = i;
        return x;
    }
    if (decimal_parse(text, strlen(text), &f)) {
        Expr *x = expr_new(e->a, EXPR_FLOAT, loc);
        x->f = f;
        return x;
    }
    if (strcmp(text, "true") && strcmp(text, "false")) return NULL;
    Expr *x = expr_new(e->a, EXPR_BOOL, loc);
    x->b = !strcmp(text, "true");
    return x;
}

static void report_unknown_define(Elab *e, const Unit *main, const FrontendDefine *define) {
    Diag *diag =
        diag_error(e->d, (Loc){0}, "-D %s: %s has no const of that name", define->name, main->file->source->name);
    Table names = {0};
    for (int i = 0; i < main->file->decls.len; i++) {
        Decl *d = main->file->decls.data[i];
        if (d->kind == DECL_CONST) table_set(e->a, &names, d->name->text, d);
    }
    help_choice_of_key(e, diag, define->name, &names);
}

void apply_defines(Elab *e, Unit *main) {
    for (int i = 0; i < e->options->define_count; i++) {
        const FrontendDefine *define = &e->options->defines[i];
        Decl *d = find_const(main, define->name);
        Expr *value = d ? parse_value(e, define->value, d->value->loc) : NULL;
        if (!d) report_unknown_define(e, main, define);
        else if (!value)
            diag_error(e->d, (Loc){0}, "-D %s=%s: the value is neither an integer, a float, true nor false",
                       define->name, define->value);
        else d->value = value;
    }
}

/* ---- const NAME = value ---------------------------------------------------------------------------------- */

static Item check_const(Elab *e, const Decl *d, Item value) {
    if (value.kind == ITEM_ERROR) return value;
    bool is_plain =
        value.kind == ITEM_FLOAT || value.kind == ITEM_BOOL || value.kind == ITEM_STRING || value.kind == ITEM_INT;
    if (is_plain && !(value.kind == ITEM_INT && value.i.n)) return value;
    return report_item(e, d->value->loc, "const %s is %s; a const is an int, a float, a bool or a string",
                       d->name->text, item_describe(e, &value));
}

void elaborate_consts(Elab *e, Unit *unit) {
    Frame frame = {.unit = unit, .scope = ""};
    Frame *outer = e->frame;
    e->frame = &frame;
    for (int i = 0; i < unit->file->decls.len; i++) {
        Decl *d = unit->file->decls.data[i];
        if (d->kind != DECL_CONST) continue;
        if (find_binding(e, d->name->text)) {
            bind_error(e, d->name);
            continue;
        }
        Binding *b = arena_new(e->a, Binding);
        *b = (Binding){.name = d->name, .item = check_const(e, d, evaluate(e, d->value)), .live = true};
        table_set(e->a, &unit->consts, d->name->text, b);
        if (b->item.kind == ITEM_INT && unit == e->units.data[0]) {
            struct NamedInt named = {d->name->text, b->item.i.mul};
            vec_push(e->a, &e->m->consts, named);
        }
    }
    e->frame = outer;
}
