/* blocks.c: a call of a block runs its body in a frame of its own: arguments bound, the scope extended, results handed
 * back. */
#include "frontend/elaborate.h"

bool block_takes(const Block *b, int tensors) {
    const ParameterVec *declared = &b->decl->tensors;
    if (tensors > declared->len) return false;
    return tensors == declared->len || declared->data[tensors].initial;
}

/* ---- does a block own parameters? ------------------------------------------------------------------------ */

static bool body_owns(Elab *e, const StmtVec *body);

Block *called_block(const Elab *e, const char *name, int tensors) {
    Block *user = table_get(&e->blocks, name), *layer = table_get(&e->prelude, name);
    return user && block_takes(user, tensors) ? user : layer && block_takes(layer, tensors) ? layer : NULL;
}

static bool expr_owns(Elab *e, const Expr *x);

static bool args_own(Elab *e, const ArgVec *args) {
    for (int i = 0; i < args->len; i++)
        if (expr_owns(e, args->data[i].value)) return true;
    return false;
}

/* Whether it holds a call, of that many tensors, of a block that owns parameters. */
static bool expr_owns(Elab *e, const Expr *x) {
    if (!x) return false;
    if (x->kind == EXPR_UNARY || x->kind == EXPR_BINARY)
        return expr_owns(e, x->operation.left) || expr_owns(e, x->operation.right);
    if (x->kind != EXPR_CALL) return false;
    Block *b = called_block(e, x->call.callee->text, x->call.args.len);
    if (b && block_owns_params(e, b)) return true;
    return args_own(e, &x->call.args);
}

static bool stmt_owns(Elab *e, const Stmt *s) {
    switch (s->kind) {
    case STMT_PARAM:
    case STMT_STATE: return true;
    case STMT_BIND: return expr_owns(e, s->bind.value);
    case STMT_RETURN: return expr_owns(e, s->value);
    case STMT_UPDATE: return expr_owns(e, s->assign.value);
    case STMT_REPEAT: return body_owns(e, &s->repeat.body);
    case STMT_IF: return body_owns(e, &s->branch.then) || body_owns(e, &s->branch.otherwise);
    default: return false;
    }
}

static bool body_owns(Elab *e, const StmtVec *body) {
    for (int i = 0; i < body->len; i++)
        if (stmt_owns(e, body->data[i])) return true;
    return false;
}

/* By its text, whatever its `if`s choose; so a name does not come and go with a static argument. */
bool block_owns_params(Elab *e, Block *b) {
    if (b->owns == OWNS_BEING_FOUND || !enter(e, b->decl->loc))
        return false; /* recursion is reported where it is called */
    if (b->owns == OWNS_UNKNOWN) {
        b->owns = OWNS_BEING_FOUND;
        b->owns = body_owns(e, &b->decl->body) ? OWNS_PARAMS : OWNS_NOTHING;
    }
    leave(e);
    return b->owns == OWNS_PARAMS;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

/* "a -> b -> a" */
static bool report_recursion(Elab *e, const Block *b, const Expr *call) {
    const char *cycle = b->decl->name->text;
    for (const Frame *f = e->frame; f->decl != b->decl; f = f->caller)
        cycle = arena_printf(e->a, "%s -> %s", f->decl->name->text, cycle);
    Diag *diag = report(e, call->loc, "blocks do not call themselves: %s -> %s", b->decl->name->text, cycle);
    diag_help(e->d, diag, "repeat i in 0..k { } does something k times");
    return false;
}

static void bind_new(Elab *e, const Parameter *p, Item item) {
    if (table_get(&e->frame->names, p->name->text)) bind_error(e, p->name);
    else bind(e, p->name, item);
}

/* A static argument from the call (evaluated where it is written) or its default (evaluated among the block's own
 * names). */
static bool bind_static(Elab *e, Frame *frame, const StaticArgs *args, const Parameter *p, const Expr *given) {
    StaticType type;
    Item item = ERROR_ITEM;
    const char *what = arena_printf(e->a, "%s: %s", frame->decl->name->text, p->name->text);
    if (find_static_type(e, p->type, &type)) {
        if (given) {
            item = evaluate_static(e, given, what, type);
        } else if (p->initial) {
            e->frame = frame;
            item = evaluate_static(e, p->initial, what, type);
            e->frame = frame->caller;
        } else {
            report_missing(e, args, p->name->text, type);
        }
    }
    e->frame = frame;
    bind_new(e, p, item);
    e->frame = frame->caller;
    return item.kind != ITEM_ERROR;
}

static bool bind_statics(Elab *e, Frame *frame, const Expr *call) {
    const ParameterVec *statics = &frame->decl->statics;
    StaticArgs args = {.call = call};
    Table names = {0};
    const Expr **given = arena_array(e->a, const Expr *, statics->len + 1);
    bool good = true;
    for (int i = 0; i < statics->len; i++) {
        table_set(e->a, &names, statics->data[i].name->text, frame);
        given[i] = take_static(&args, statics->data[i].name->text);
    }
    reject_statics(e, &args, &names);
    for (int i = 0; i < statics->len; i++) good = bind_static(e, frame, &args, &statics->data[i], given[i]) && good;
    return good;
}

static Item default_tensor(Elab *e, const Parameter *p) {
    if (!p->initial) return ERROR_ITEM; /* check_defaults told */
    if (p->initial->kind == EXPR_NONE) return (Item){.kind = ITEM_NONE};
    return report_item(e, p->initial->loc, "a tensor argument has no default but none");
}

static bool bind_tensors(Elab *e, const Block *b, const Expr *call, const Item *tensors, int count) {
    bool good = true;
    for (int i = 0; i < b->decl->tensors.len; i++) {
        const Parameter *p = &b->decl->tensors.data[i];
        Item item = i < count ? tensors[i] : default_tensor(e, p);
        if (item.kind >= ITEM_INT) {
            Item number = item;
            item = item_tensor(as_tensor(e, call->call.args.data[i].loc, &number));
        }
        if (item.kind == ITEM_NONE && !p->initial)
            item = report_item(e, call->call.args.data[i].loc,
                               "%s: '%s' is no optional tensor; none does not stand for it", b->decl->name->text,
                               p->name->text);
        bind_new(e, p, item);
        good = good && item.kind != ITEM_ERROR;
    }
    return good;
}

/* ---- the call -------------------------------------------------------------------------------------------- */

/* `as PATH`, else the block's own name where it owns parameters.  A layer of the prelude names its ops' paths even
 * without. */
static const char *scope_of(Elab *e, Block *b, const Expr *call) {
    const char *outer = e->frame->scope, *name = b->decl->name->text;
    if (call->call.as) {
        const char *path = path_text(e, call->call.as);
        return path ? join_path(e, outer, path) : NULL;
    }
    return block_owns_params(e, b) || (b->unit->is_prelude && !e->frame->layer) ? unique_path(e, outer, name) : outer;
}

static int collect_results(Elab *e, const Block *b, Item *out) {
    const NameVec *results = &b->decl->results;
    if (!results->len) {
        out[0] = e->frame->returned;
        if (!e->frame->has_returned)
            report(e, b->decl->loc, "block %s returns nothing; end it with `return`", b->decl->name->text);
        return 1;
    }
    for (int i = 0; i < results->len && i < MAX_RESULTS; i++) out[i] = read_name(e, results->data[i]);
    return results->len < MAX_RESULTS ? results->len : MAX_RESULTS;
}

static int run_body(Elab *e, Block *b, Frame *frame, Item *out) {
    e->frame = frame;
    b->active = true;
    elaborate_body(e, &b->decl->body);
    int count = collect_results(e, b, out);
    b->active = false;
    e->frame = frame->caller;
    return count;
}

/* What the call makes at least is known before it is expanded. */
static bool afford(Elab *e, Block *b, const Expr *call) {
    if (e->stopped) return false;
    int64_t least = least_ops(e, b);
    if (least <= e->max_ops - e->work) return charge(e, call->loc, 1);
    Diag *diag = report(
        e, call->loc, "this call of %s makes %s%lld ops and calls, more than the %lld ops a program may have",
        b->decl->name->text, least == INT64_MAX ? "more than " : "at least ", (long long)least, (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}

int elaborate_block(Elab *e, Block *b, const Expr *call, const Item *tensors, int count, Item *out) {
    out[0] = ERROR_ITEM;
    if ((b->active && !report_recursion(e, b, call)) || !afford(e, b, call) || !enter(e, call->loc)) return 1;
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.caller = e->frame, .unit = b->unit, .decl = b->decl, .call = call->loc};
    frame->layer = e->frame->layer ? e->frame->layer : b->unit->is_prelude ? b->decl->name->text : NULL;
    bool good = bind_statics(e, frame, call);
    const char *scope = scope_of(e, b, call);
    frame->scope = scope ? scope : e->frame->scope; /* behind an error, for the numbers among the arguments */
    e->frame = frame;
    good = bind_tensors(e, b, call, tensors, count) && good && scope;
    e->frame = frame->caller;
    int results = good ? run_body(e, b, frame, out) : b->decl->results.len ? b->decl->results.len : 1;
    for (int i = 0; !good && i < results && i < MAX_RESULTS; i++) out[i] = ERROR_ITEM;
    leave(e);
    return results < MAX_RESULTS ? results : MAX_RESULTS;
}
