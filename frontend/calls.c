/* calls.c: what a call means.  The blocks of the user come first, then the layers of the prelude, then ops; of those
 * that have the name, the first that takes as many tensors is called. */
#include "frontend/elaborate.h"

/* ---- static arguments ------------------------------------------------------------------------------------ */

const Expr *take_static(StaticArgs *args, const char *name) {
    const ArgVec *given = &args->call->call.statics;
    const Expr *found = NULL;
    for (int i = 0; i < given->len && i < MAX_ARGS; i++) {
        if (strcmp(given->data[i].name->text, name)) continue;
        args->known[i] = !found; /* given twice: the second stays unknown */
        if (!found) found = given->data[i].value;
    }
    return found;
}

void report_missing(Elab *e, const StaticArgs *args, const char *arg, StaticType type) {
    const char *callee = args->call->call.callee->text;
    if (args->rejected) return;
    Diag *diag = report(e, args->call->loc, "%s needs the argument '%s' (%s)", callee, arg, static_type_names[type]);
    diag_help(e->d, diag, "write %s(...; %s = %s)", callee, arg, static_type_examples[type]);
}

void reject_statics(Elab *e, StaticArgs *args, const Table *names) {
    const ArgVec *given = &args->call->call.statics;
    for (int i = 0; i < given->len && i < MAX_ARGS; i++) {
        if (args->known[i]) continue;
        args->rejected = true;
        const Name *name = given->data[i].name;
        const char *callee = args->call->call.callee->text;
        if (table_get(names, name->text)) {
            report(e, name->loc, "%s: '%s' is given twice", callee, name->text);
            continue;
        }
        Diag *diag = report(e, name->loc, "%s has no argument '%s'", callee, name->text);
        help_choice_of_key(e, diag, name->text, names);
    }
}

/* ---- tensor arguments ------------------------------------------------------------------------------------ */

/* `f(x, p = 0.5)`: the argument belongs behind a ';'. */
static bool has_named_tensor(Elab *e, const Expr *x) {
    bool found = false;
    for (int i = 0; i < x->call.args.len; i++) {
        const Arg *arg = &x->call.args.data[i];
        if (!arg->name) continue;
        Diag *diag = report(e, arg->loc, "%s: arguments with a name come after ';'", x->call.callee->text);
        diag_help(e->d, diag, "write %s(...; %s)", x->call.callee->text, loc_text(e->a, arg->loc));
        found = true;
    }
    return found;
}

/* Arguments that are wrong are ITEM_ERROR; the rest of the call is checked all the same. */
static bool evaluate_args(Elab *e, const Expr *x, Item *out) {
    if (x->call.args.len > MAX_ARGS || x->call.statics.len > MAX_ARGS) {
        report(e, x->loc, "a call has at most %d arguments of each kind", MAX_ARGS);
        return false;
    }
    for (int i = 0; i < x->call.args.len; i++) out[i] = evaluate(e, x->call.args.data[i].value);
    return !has_named_tensor(e, x);
}

/* ---- the callee ------------------------------------------------------------------------------------------ */

typedef struct Callee {
    Block *user, *layer;
    const GraphOp *op;
} Callee;

static Callee find_callee(const Elab *e, const char *name) {
    return (Callee){table_get(&e->blocks, name), table_get(&e->prelude, name), find_graph_op(name)};
}

static Item report_unknown_call(Elab *e, const Expr *x) {
    const Name *callee = x->call.callee;
    if (is_future_call(callee->text)) {
        report_not_built(e, callee->loc, callee->text);
        return ERROR_ITEM;
    }
    int count;
    const char *const *ops = call_names(e, &count);
    Table names = {0};
    for (int i = 0; i < e->blocks.entries.len; i++) table_set(e->a, &names, e->blocks.entries.data[i].key, e);
    for (int i = 0; i < e->prelude.entries.len; i++) table_set(e->a, &names, e->prelude.entries.data[i].key, e);
    for (int i = 0; i < count; i++) table_set(e->a, &names, ops[i], e);
    Diag *diag = report(e, callee->loc, "there is no block, layer or op '%s'", callee->text);
    help_nearest_key(e, diag, callee->text, &names);
    if (!diag->notes.len) diag_help(e->d, diag, "define it: block %s(x) { ... }", callee->text);
    return ERROR_ITEM;
}

static void put_counts(Text *t, int least, int most) {
    if (least == most) text_printf(t, "%d", least);
    else if (most == MANY) text_printf(t, "%d or more", least);
    else text_printf(t, "%d to %d", least, most);
    text_puts(t, most == 1 ? " tensor" : " tensors");
}

static int least_tensors(const Block *b) {
    int least = 0;
    while (least < b->decl->tensors.len && !b->decl->tensors.data[least].initial) least++;
    return least;
}

/* "linear takes 1 tensor as a layer and 2 to 3 tensors as an op; the call has 4" */
static Item report_count(Elab *e, const Expr *x, const Callee *c, int count) {
    Text t;
    text_init(&t, e->a);
    const Block *block = c->user ? c->user : c->layer;
    text_printf(&t, "%s takes ", x->call.callee->text);
    if (block) put_counts(&t, least_tensors(block), block->decl->tensors.len);
    if (block && c->op) text_puts(&t, c->user ? " as a block and " : " as a layer and ");
    if (c->op) {
        int least, most;
        graph_op_tensors(c->op, &least, &most);
        put_counts(&t, least, most);
        if (block) text_puts(&t, " as an op");
    }
    Diag *diag = report(e, x->loc, "%s; the call has %d", text_str(&t), count);
    const char *name = x->call.callee->text;
    if (c->op && count == 2 && (!strcmp(name, "max") || !strcmp(name, "min")))
        diag_help(e->d, diag, "of two tensors it is where(a %s b, a, b)", *name == 'm' && name[1] == 'a' ? ">" : "<");
    return ERROR_ITEM;
}

int elaborate_call(Elab *e, const Expr *x, Item *out) {
    int count = x->call.args.len;
    Item *args = arena_array(e->a, Item, count + 1);
    out[0] = ERROR_ITEM;
    if (!evaluate_args(e, x, args)) return 1;
    Callee c = find_callee(e, x->call.callee->text);
    if (!c.user && is_static_builtin(x->call.callee->text, args, count)) out[0] = static_builtin(e, x, args, count);
    else if (!c.user && !c.layer && !c.op) out[0] = report_unknown_call(e, x);
    else if (c.user && block_takes(c.user, count)) return elaborate_block(e, c.user, x, args, count, out);
    else if (c.layer && block_takes(c.layer, count)) return elaborate_block(e, c.layer, x, args, count, out);
    else if (c.op && graph_op_takes(c.op, count)) return elaborate_graph_op(e, c.op, x, args, count, out);
    else out[0] = report_count(e, x, &c, count);
    return 1;
}
