/* graph_args.c: static arguments of calls that become ops: their values and ranges, and the attributes they set. */
#include "frontend/graph_ops.h"

#include <math.h>

static const struct {
    double min, below;
    const char *text;
} ranges[] = {
    [ANY_VALUE] = {0, 0, NULL},
    [AT_LEAST_0] = {0.0, INFINITY, "at least 0"},
    [AT_LEAST_1] = {1.0, INFINITY, "at least 1"},
    [BELOW_1] = {0.0, 1.0, "at least 0.0 and less than 1.0"},
};

static bool in_range(ArgRange range, const Item *item) {
    if (range == ANY_VALUE) return true;
    for (int i = 0; item->kind == ITEM_TUPLE && i < item->items.count; i++)
        if (!in_range(range, &item->items.at[i])) return false;
    if (item->kind != ITEM_INT && item->kind != ITEM_FLOAT) return true;
    double v = item->kind == ITEM_INT ? (double)item->i.mul : item->f;
    return v >= ranges[range].min && v < ranges[range].below;
}

static bool check_word(Elab *e, Loc loc, const GraphArg *arg, const char *word) {
    Text t;
    text_init(&t, e->a);
    for (int i = 0; i < 3 && arg->words[i]; i++) {
        if (!strcmp(arg->words[i], word)) return true;
        text_printf(&t, "%s%s", i ? ", " : "", arg->words[i]);
    }
    Diag *diag = report(e, loc, "%s cannot be '%s'", arg->name, word);
    diag_help(e->d, diag, "%s is one of %s", arg->name, text_str(&t));
    return false;
}

static bool check_arg(Elab *e, Loc loc, const GraphArg *arg, const Item *item) {
    if (item->kind == ITEM_SYMBOL) return check_word(e, loc, arg, item->s);
    if (in_range(arg->range, item)) return true;
    report(e, loc, "%s must be %s; this is %s", arg->name, ranges[arg->range].text, item_describe(e, item));
    return false;
}

static void set_attr(AttrValue *value, const Item *item) {
    switch (item->kind) {
    case ITEM_INT: value->i = item->i.mul; break;
    case ITEM_FLOAT: value->f = item->f; break;
    case ITEM_BOOL: value->b = item->b; break;
    case ITEM_SYMBOL:
    case ITEM_STRING: value->s = item->s; break;
    case ITEM_TUPLE:
        value->dims = (Dims){.count = item->items.count};
        for (int i = 0; i < item->items.count; i++) value->dims.at[i] = item->items.at[i].i.mul;
        break;
    default: break;
    }
}

static bool take_arg(GraphCall *c, const StaticArgs *args, int i, const Expr *given) {
    Elab *e = c->e;
    const GraphArg *arg = &c->op->args[i];
    const char *what = arena_printf(e->a, "%s: %s", c->op->name, arg->name);
    c->locs[i] = given ? given->loc : c->x->loc;
    c->items[i] = (Item){.kind = ITEM_NONE};
    if (!given) {
        if (arg->required) report_missing(e, args, arg->name, arg->type);
        return !arg->required;
    }
    c->items[i] = evaluate_static(e, given, what, arg->type);
    if (c->items[i].kind == ITEM_ERROR || !check_arg(e, given->loc, arg, &c->items[i])) return false;
    AttrValue *attr = ir_attr(c->o, arg->name);
    if (attr) set_attr(attr, &c->items[i]);
    return true;
}

bool take_args(GraphCall *c) {
    StaticArgs args = {.call = c->x};
    Table names = {0};
    const Expr *given[MAX_GRAPH_ARGS];
    bool good = true;
    int count = 0;
    for (; count < MAX_GRAPH_ARGS && c->op->args[count].name; count++) {
        table_set(c->e->a, &names, c->op->args[count].name, c);
        given[count] = take_static(&args, c->op->args[count].name);
    }
    reject_statics(c->e, &args, &names);
    for (int i = 0; i < count; i++) good = take_arg(c, &args, i, given[i]) && good;
    return good && !args.rejected;
}

int arg_index(const GraphCall *c, const char *name) {
    int i = 0;
    while (strcmp(c->op->args[i].name, name)) i++;
    return i;
}
