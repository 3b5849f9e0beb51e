/* statements.c: bodies of blocks and models: bindings, repeat, if, return. */
#include "frontend/elaborate.h"

/* ---- a, b = value ---------------------------------------------------------------------------------------- */

/* A value gets the name it is bound to, if this statement made it; an alias keeps the first.  Inside the prelude,
 * names would mean nothing to a person: there the value is called as its op. */
static void name_value(Elab *e, const Name *name, Val v, int made_from) {
    if ((int)v.id < made_from || ir_value(e->f, v)->kind != VAL_RESULT) return;
    bool in_layer = e->frame->layer != NULL;
    ir_rename(e->f, v, unique_value_name(e, name->text));
    set_origin(e, v, in_layer ? ir_def(e->f, v)->path : name->text, name->loc);
}

static void elaborate_bind(Elab *e, const Stmt *s) {
    Item items[MAX_RESULTS];
    int made_from = e->f->values.len, count = evaluate_results(e, s->bind.value, items);
    int names = s->bind.names.len;
    if (names != count && (count != 1 || items[0].kind != ITEM_ERROR))
        report(e, s->loc, "%d name%s for %d value%s", names, names == 1 ? "" : "s", count, count == 1 ? "" : "s");
    for (int i = 0; i < names; i++) {
        Name *name = s->bind.names.data[i];
        Item item = names == count ? items[i] : ERROR_ITEM;
        if (item.kind == ITEM_TENSOR) name_value(e, name, item.tensor, made_from);
        bind(e, name, item);
    }
}

/* ---- repeat ---------------------------------------------------------------------------------------------- */

static bool repeat_bound(Elab *e, const Expr *x, int64_t *out) {
    Item item = evaluate_static(e, x, "the range of repeat", STATIC_INT);
    if (item.kind == ITEM_INT) *out = item.i.mul;
    return item.kind == ITEM_INT;
}

static void elaborate_turn(Elab *e, const Stmt *s, int64_t index) {
    begin_turn(e);
    bind(e, s->repeat.index, item_int(index));
    s->repeat.index->use.read = true; /* an index need not be read */
    elaborate_body(e, &s->repeat.body);
    end_turn(e);
}

/* After the first turn it is known what the others cost: too many are refused before they are expanded. */
static bool afford_turns(Elab *e, const Stmt *s, int64_t turns, int64_t cost) {
    int64_t total;
    if (e->stopped) return false;
    if (!__builtin_mul_overflow(turns, cost, &total) && total <= e->max_ops - e->work) return true;
    Diag *diag = report(e, s->loc, "%lld more turns of %lld ops are more than the %lld ops a program may have",
                        (long long)turns, (long long)cost, (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}

static void elaborate_repeat(Elab *e, const Stmt *s) {
    int64_t from = 0, to = 0;
    bool good = repeat_bound(e, s->repeat.from, &from);
    good = repeat_bound(e, s->repeat.to, &to) && good;
    if (good && from > to) report(e, s->loc, "the range %lld..%lld runs backwards", (long long)from, (long long)to);
    if (!good || from >= to) {
        mark_read_in(e, &s->repeat.body);
        return;
    }
    for (int64_t i = from; i < to; i++) {
        int64_t work = e->work;
        if (!charge(e, s->loc, 1)) return;
        elaborate_turn(e, s, i);
        if (i == from && !afford_turns(e, s, to - from - 1, e->work - work)) return;
    }
}

/* ---- if -------------------------------------------------------------------------------------------------- */

/* Where nobody knows what a branch would have bound, readers of its names stay silent. */
static void bind_errors(Elab *e, const StmtVec *body) {
    for (int i = 0; i < body->len; i++) {
        const Stmt *s = body->data[i];
        for (int k = 0; s->kind == STMT_BIND && k < s->bind.names.len; k++) bind(e, s->bind.names.data[k], ERROR_ITEM);
        if (s->kind == STMT_PARAM || s->kind == STMT_STATE) bind(e, s->declare.name, ERROR_ITEM);
        if (s->kind == STMT_IF) {
            bind_errors(e, &s->branch.then);
            bind_errors(e, &s->branch.otherwise);
        }
    }
}

static void elaborate_if(Elab *e, const Stmt *s) {
    Item condition = evaluate(e, s->branch.condition);
    bool known = condition.kind == ITEM_BOOL;
    if (!known && condition.kind != ITEM_ERROR)
        report(e, s->branch.condition->loc, "`if` chooses at compile time and needs a condition; this is %s",
               item_describe(e, &condition));
    bool take_then = known && condition.b, take_otherwise = known && !condition.b;
    if (!take_then) mark_read_in(e, &s->branch.then);
    if (!take_otherwise) mark_read_in(e, &s->branch.otherwise);
    if (!known) bind_errors(e, &s->branch.then);
    if (!known) bind_errors(e, &s->branch.otherwise);
    if (known) elaborate_body(e, take_then ? &s->branch.then : &s->branch.otherwise);
}

/* ---- return ---------------------------------------------------------------------------------------------- */

static void elaborate_return(Elab *e, const Stmt *s) {
    const Decl *d = e->frame->decl;
    if (d->kind != DECL_BLOCK || d->results.len) {
        report(e, s->loc,
               d->kind == DECL_BLOCK ? "block %s names its results behind '->'; it has no return"
                                     : "model %s names its results behind '->'; it has no return",
               d->name->text);
        return;
    }
    const StmtVec *body = &d->body;
    if (body->data[body->len - 1] != s) report(e, s->loc, "return is the last statement of its block");
    int made_from = e->f->values.len;
    e->frame->returned = evaluate(e, s->value);
    e->frame->has_returned = true;
    if (e->frame->returned.kind == ITEM_TENSOR && (int)e->frame->returned.tensor.id >= made_from)
        set_origin(e, e->frame->returned.tensor, NULL, s->value->loc);
}

/* ---- bodies ---------------------------------------------------------------------------------------------- */

static const char *const statement_names[] = {
    [STMT_BIND] = "a binding",
    [STMT_PARAM] = "param",
    [STMT_STATE] = "state",
    [STMT_UPDATE] = "update",
    [STMT_INIT] = "init",
    [STMT_REPEAT] = "repeat",
    [STMT_IF] = "if",
    [STMT_RETURN] = "return",
    [STMT_INPUT] = "input",
    [STMT_LOSS] = "loss",
    [STMT_METRIC] = "metric",
    [STMT_GROUP] = "group",
    [STMT_OVERRIDE] = "an override",
};

void report_misplaced(Elab *e, const Stmt *s, const char *where) {
    report(e, s->loc, "%s does not belong into %s", statement_names[s->kind], where);
}

static void elaborate_statement(Elab *e, const Stmt *s) {
    bool in_model = e->frame->decl->kind == DECL_MODEL;
    switch (s->kind) {
    case STMT_BIND: elaborate_bind(e, s); break;
    case STMT_PARAM:
    case STMT_STATE: elaborate_param(e, s); break;
    case STMT_UPDATE: elaborate_update(e, s); break;
    case STMT_REPEAT: elaborate_repeat(e, s); break;
    case STMT_IF: elaborate_if(e, s); break;
    case STMT_RETURN: elaborate_return(e, s); break;
    case STMT_INIT:
        if (in_model) break; /* when all params are there: model.c */
        report_misplaced(e, s, "a block; a model's init sets the params of its blocks by path");
        break;
    default: report_misplaced(e, s, in_model ? "a model" : "a block"); break;
    }
}

void elaborate_body(Elab *e, const StmtVec *body) {
    for (int i = 0; i < body->len && enter(e, body->data[i]->loc); i++) {
        elaborate_statement(e, body->data[i]);
        leave(e);
    }
}
