/* calls.c: what a call means, and how a block runs.
 *
 * A name is looked up among the blocks of the user, then the layers of the prelude, then the ops; the first that takes
 * as many tensors as the call has is called.  A call of a block runs its body in a new frame: it binds the arguments,
 * extends the scope, and returns the results. */
#include "frontend/elaborate.h"

/* ---- static arguments ------------------------------------------------------------------------------------- */

const Expr *elab_take_static(StaticArgs *args, const char *name) {
    const ArgVec *given = &args->call->call.statics;
    const Expr *found = NULL;
    for (int i = 0; i < given->len && i < MAX_ARGS; i++) {
        if (strcmp(given->data[i].name->text, name)) continue;
        args->known[i] = !found; /* given twice: the second stays unknown */
        if (!found) found = given->data[i].value;
    }
    return found;
}

void elab_error_missing(Elab *e, const StaticArgs *args, const char *arg, StaticType type) {
    const char *callee = args->call->call.callee->text;
    if (args->rejected) return;
    Diag *diag =
        elab_error(e, args->call->loc, "%s needs the argument '%s' (%s)", callee, arg, static_type_names[type]);
    diag_help(e->d, diag, "write %s(...; %s = %s)", callee, arg, static_type_examples[type]);
}

void elab_reject_statics(Elab *e, StaticArgs *args, const Table *names) {
    const ArgVec *given = &args->call->call.statics;
    for (int i = 0; i < given->len && i < MAX_ARGS; i++) {
        if (args->known[i]) continue;
        args->rejected = true;
        const Name *name = given->data[i].name;
        const char *callee = args->call->call.callee->text;
        if (table_get(names, name->text)) {
            elab_error(e, name->loc, "%s: '%s' is given twice", callee, name->text);
            continue;
        }
        Diag *diag = elab_error(e, name->loc, "%s has no argument '%s'", callee, name->text);
        elab_help_choice_of_key(e, diag, name->text, names);
    }
}

/* ---- does a block own parameters? ------------------------------------------------------------------------- */

static bool block_owns_params(Elab *e, Block *b);

static bool declares_params(void *user, const Stmt *s) {
    (void)user;
    return s->kind == STMT_PARAM || s->kind == STMT_STATE;
}

/* A call of a block that owns parameters. */
static bool calls_owner(void *user, const Expr *x) {
    Block *b = x->kind == EXPR_CALL ? elab_find_block(user, x->call.callee->text, x->call.args.len) : NULL;
    return b && block_owns_params(user, b);
}

/* Decided by the block's text, whichever branch an `if` takes, so that a name does not depend on a static argument. */
static bool block_owns_params(Elab *e, Block *b) {
    if (b->owns == OWNS_BEING_FOUND || !elab_enter(e, b->decl->loc))
        return false; /* recursion is reported where it is called */
    if (b->owns == OWNS_UNKNOWN) {
        b->owns = OWNS_BEING_FOUND;
        b->owns = body_any(&b->decl->body, declares_params, calls_owner, e) ? OWNS_PARAMS : OWNS_NOTHING;
    }
    elab_leave(e);
    return b->owns == OWNS_PARAMS;
}

/* ---- arguments -------------------------------------------------------------------------------------------- */

/* "a -> b -> a" */
static bool report_recursion(Elab *e, const Block *b, const Expr *call) {
    const char *cycle = b->decl->name->text;
    for (const Frame *f = e->frame; f->decl != b->decl; f = f->caller)
        cycle = arena_printf(e->a, "%s -> %s", f->decl->name->text, cycle);
    Diag *diag = elab_error(e, call->loc, "a block cannot call itself: %s -> %s", b->decl->name->text, cycle);
    diag_help(e->d, diag, "to do something k times, write repeat i in 0..k { ... }");
    return false;
}

static void bind_new(Elab *e, const Parameter *p, Item item) {
    if (table_get(&e->frame->names, p->name->text)) elab_error_twice(e, p->name);
    else elab_bind(e, p->name, item);
}

/* Of an int T may be given: what the block does with it says whether it needs a number. */
static Item eval_given(Elab *e, const Expr *given, const char *what, StaticType type) {
    if (type != STATIC_INT) return elab_eval_static(e, given, what, type);
    Item item = elab_eval(e, given);
    const bool is_length = item.kind == ITEM_INT && !item.i.n && item.i.t;
    if (!is_length) item_convert(e, given->loc, what, type, &item);
    return item;
}

/* A static argument from the call (evaluated where it is written), from the call whose parameters it shares, or its
 * default (evaluated among the block's own names). */
static Item bind_static(Elab *e, Frame *frame, const StaticArgs *args, const Parameter *p, const Expr *given,
                        const Item *shared) {
    StaticType type;
    Item item = ERROR_ITEM;
    const char *what = arena_printf(e->a, "%s: %s", frame->decl->name->text, p->name->text);
    if (elab_static_type(e, p->type, &type)) {
        if (given) {
            item = eval_given(e, given, what, type);
        } else if (shared) {
            item = *shared;
        } else if (p->initial) {
            e->frame = frame;
            item = elab_eval_static(e, p->initial, what, type);
            e->frame = frame->caller;
        } else {
            elab_error_missing(e, args, p->name->text, type);
        }
    }
    e->frame = frame;
    bind_new(e, p, item);
    e->frame = frame->caller;
    return item;
}

/* |values|: of the static arguments, for calls that share the parameters. */
static bool bind_statics(Elab *e, Frame *frame, const Expr *call, const Application *of, Item *values) {
    const ParameterVec *statics = &frame->decl->statics;
    StaticArgs args = {.call = call};
    Table names = {0};
    const Expr **given = arena_array(e->a, const Expr *, statics->len + 1);
    bool good = true;
    for (int i = 0; i < statics->len; i++) {
        table_set(e->a, &names, statics->data[i].name->text, frame);
        given[i] = elab_take_static(&args, statics->data[i].name->text);
    }
    elab_reject_statics(e, &args, &names);
    for (int i = 0; i < statics->len; i++) {
        values[i] = bind_static(e, frame, &args, &statics->data[i], given[i], of ? &of->statics[i] : NULL);
        good = good && values[i].kind != ITEM_ERROR;
    }
    return good;
}

static Item default_tensor(Elab *e, const Parameter *p) {
    if (!p->initial) return ERROR_ITEM; /* check_defaults reported it */
    if (p->initial->kind == EXPR_NONE) return (Item){.kind = ITEM_NONE};
    return elab_error_item(e, p->initial->loc, "the only default of a tensor argument is none");
}

static bool bind_tensors(Elab *e, const Block *b, const Expr *call, const Item *tensors, int count) {
    bool good = true;
    for (int i = 0; i < b->decl->tensors.len; i++) {
        const Parameter *p = &b->decl->tensors.data[i];
        Item item = i < count ? tensors[i] : default_tensor(e, p);
        if (item.kind >= ITEM_INT) {
            Item number = item;
            item = item_tensor(elab_as_tensor(e, call->call.args.data[i].loc, &number));
        }
        if (item.kind == ITEM_NONE && !p->initial)
            item = elab_error_item(e, call->call.args.data[i].loc, "%s: '%s' is not optional and cannot be none",
                                   b->decl->name->text, p->name->text);
        bind_new(e, p, item);
        good = good && item.kind != ITEM_ERROR;
    }
    return good;
}

/* ---- the call --------------------------------------------------------------------------------------------- */

/* `as PATH`, else the block's own name if it owns parameters and is not inline.  A layer of the prelude always adds its
 * name to the paths of its ops. */
static const char *scope_of(Elab *e, Block *b, const Expr *call) {
    const char *outer = e->frame->scope, *name = b->decl->name->text;
    if (call->call.as) {
        const char *path = elab_path(e, call->call.as);
        return path ? elab_join_path(e, outer, path) : NULL;
    }
    if (b->decl->is_inline) return outer;
    return block_owns_params(e, b) || (b->unit->is_prelude && !e->frame->layer) ? elab_scope_path(e, outer, name)
                                                                                : outer;
}

static int collect_results(Elab *e, const Block *b, Item *out) {
    const NameVec *results = &b->decl->results;
    if (e->frame->refused) {
        int count = results->len ? results->len : 1;
        for (int i = 0; i < count && i < MAX_RESULTS; i++) out[i] = ERROR_ITEM;
        return count < MAX_RESULTS ? count : MAX_RESULTS;
    }
    if (!results->len) {
        out[0] = e->frame->returned;
        if (!e->frame->has_returned)
            elab_error(e, b->decl->loc, "block %s returns nothing; end it with `return`", b->decl->name->text);
        return 1;
    }
    for (int i = 0; i < results->len && i < MAX_RESULTS; i++) out[i] = elab_read(e, results->data[i]);
    return results->len < MAX_RESULTS ? results->len : MAX_RESULTS;
}

static int run_body(Elab *e, Block *b, Frame *frame, Item *out) {
    e->frame = frame;
    b->active = true;
    elab_body(e, &b->decl->body);
    int count = collect_results(e, b, out);
    b->active = false;
    e->frame = frame->caller;
    return count;
}

/* A call by `sharing` runs the body with the states of the call that it names; others make their own. */
static int run_application(Elab *e, Block *b, Frame *frame, const Application *of, const Item *statics, Item *out) {
    Sharing *outer = e->sharing, *sharing = of ? arena_new(e->a, Sharing) : outer;
    int first_state = e->m->states.len, count;
    if (of) *sharing = (Sharing){.of = of, .number = ++e->sharing_calls};
    e->sharing = sharing;
    count = run_body(e, b, frame, out);
    e->sharing = outer;
    bool has_name = frame->scope != frame->caller->scope; /* a call of an inline block without `as` has none */
    if (!sharing && has_name && block_owns_params(e, b)) elab_record_application(e, b, frame, statics, first_state);
    return count;
}

/* The call that `sharing` names, and its scope. */
static const Application *shared_call(Elab *e, Block *b, const Expr *call, const char **scope) {
    if (!call->call.sharing) return NULL;
    if (!block_owns_params(e, b) && elab_refuse_sharing(e, call)) return NULL;
    const char *path = elab_path(e, call->call.sharing);
    if (!path) return NULL;
    *scope = elab_join_path(e, e->frame->scope, path);
    return elab_find_application(e, b, call->call.sharing->loc, path, *scope);
}

static int elaborate_block(Elab *e, Block *b, const Expr *call, const Item *tensors, int count, Item *out) {
    out[0] = ERROR_ITEM;
    if ((b->active && !report_recursion(e, b, call)) || !elab_afford_call(e, b, call) || !elab_enter(e, call->loc))
        return 1;
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.caller = e->frame, .unit = b->unit, .decl = b->decl, .call = call->loc};
    frame->layer = e->frame->layer ? e->frame->layer : b->unit->is_prelude ? b->decl->name->text : NULL;
    const char *scope = NULL;
    const Application *of = shared_call(e, b, call, &scope);
    Item *statics = arena_array(e->a, Item, b->decl->statics.len + 1);
    bool good = (of || !call->call.sharing) && bind_statics(e, frame, call, of, statics);
    if (!call->call.sharing) scope = scope_of(e, b, call);
    frame->scope = scope ? scope : e->frame->scope; /* after an error: numbers among the arguments still become ops */
    e->frame = frame;
    good = bind_tensors(e, b, call, tensors, count) && good && scope;
    e->frame = frame->caller;
    int results = good                   ? run_application(e, b, frame, of, statics, out)
                  : b->decl->results.len ? b->decl->results.len
                                         : 1;
    for (int i = 0; !good && i < results && i < MAX_RESULTS; i++) out[i] = ERROR_ITEM;
    elab_leave(e);
    return results < MAX_RESULTS ? results : MAX_RESULTS;
}

/* ---- tensor arguments ------------------------------------------------------------------------------------- */

/* `f(x, p = 0.5)`: the argument belongs after a ';'. */
static bool has_named_tensor(Elab *e, const Expr *x) {
    bool found = false;
    for (int i = 0; i < x->call.args.len; i++) {
        const Arg *arg = &x->call.args.data[i];
        if (!arg->name) continue;
        Diag *diag = elab_error(e, arg->loc, "%s: named arguments come after ';'", x->call.callee->text);
        diag_help(e->d, diag, "write %s(...; %s)", x->call.callee->text, loc_text(e->a, arg->loc));
        found = true;
    }
    return found;
}

/* Wrong arguments become ITEM_ERROR; the remainder of the call is still checked. */
static bool evaluate_args(Elab *e, const Expr *x, Item *out) {
    if (x->call.args.len > MAX_ARGS || x->call.statics.len > MAX_ARGS) {
        if (!strcmp(x->call.callee->text, "tensor")) elab_error_many_numbers(e, x->loc, x->call.args.len);
        else elab_error(e, x->loc, "a call has at most %d arguments of each kind", MAX_ARGS);
        return false;
    }
    for (int i = 0; i < x->call.args.len; i++) out[i] = elab_eval(e, x->call.args.data[i].value);
    return !has_named_tensor(e, x);
}

/* ---- the callee ------------------------------------------------------------------------------------------- */

typedef struct Callee {
    Block *user, *layer;
    const GraphOp *op;
} Callee;

static Callee find_callee(const Elab *e, const char *name) {
    return (Callee){table_get(&e->blocks, name), table_get(&e->prelude, name), graph_op_find(name)};
}

static Item report_unknown_call(Elab *e, const Expr *x) {
    const Name *callee = x->call.callee;
    Table names = {0};
    for (int i = 0; i < e->blocks.entries.len; i++) table_set(e->a, &names, e->blocks.entries.data[i].key, e);
    for (int i = 0; i < e->prelude.entries.len; i++) table_set(e->a, &names, e->prelude.entries.data[i].key, e);
    for (int i = 0; graph_op_at(i); i++) table_set(e->a, &names, graph_op_name(graph_op_at(i)), e);
    Diag *diag = elab_error(e, callee->loc, "there is no block, layer or op '%s'", callee->text);
    bool is_statement = !strcmp(callee->text, "checkpoint");
    if (is_statement) diag_help(e->d, diag, "it is a statement, around others: checkpoint { y = f(x) }");
    else elab_help_nearest_key(e, diag, callee->text, &names);
    if (!diag->notes.len && !is_statement) diag_help(e->d, diag, "define it: block %s(x) { ... }", callee->text);
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

/* A number, a word in quotes, a list: what no tensor argument can be but by mistake. */
static bool is_constant(const Expr *x) {
    bool negative = x->kind == EXPR_UNARY && x->operation.left->kind == EXPR_INT;
    return negative || x->kind == EXPR_INT || x->kind == EXPR_BOOL || x->kind == EXPR_STRING || x->kind == EXPR_TUPLE;
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
    Diag *diag = elab_error(e, x->loc, "%s; the call has %d", text_str(&t), count);
    const char *name = x->call.callee->text;
    const Arg *last = count > 0 ? &x->call.args.data[count - 1] : NULL;
    const char *setting = c->op ? graph_op_setting(c->op) : NULL;
    if (block && block->decl->statics.len) setting = block->decl->statics.data[0].name->text;
    if (setting && last && is_constant(last->value))
        diag_help(e->d, diag, "an argument that is not a tensor comes after ';' with its name: write %s(...; %s = %s)",
                  name, setting, loc_text(e->a, last->loc));
    else if (c->op && count == 2 && (!strcmp(name, "max") || !strcmp(name, "min")))
        diag_help(e->d, diag, "for two tensors, write where(a %s b, a, b)", *name == 'm' && name[1] == 'a' ? ">" : "<");
    return ERROR_ITEM;
}

int elab_call(Elab *e, const Expr *x, Item *out) {
    int count = x->call.args.len;
    Item *args = arena_array(e->a, Item, count + 1);
    out[0] = ERROR_ITEM;
    if (!evaluate_args(e, x, args)) return 1;
    Callee c = find_callee(e, x->call.callee->text);
    if (!c.user && elab_is_static_builtin(x->call.callee->text, args, count))
        out[0] = elab_static_builtin(e, x, args, count);
    else if (!c.user && !c.layer && !c.op) out[0] = report_unknown_call(e, x);
    else if (c.user && block_takes(c.user, count)) return elaborate_block(e, c.user, x, args, count, out);
    else if (c.layer && block_takes(c.layer, count)) return elaborate_block(e, c.layer, x, args, count, out);
    else if (c.op && graph_op_takes(c.op, count)) return elab_graph_op(e, c.op, x, args, count, out);
    else out[0] = report_count(e, x, &c, count);
    return 1;
}
