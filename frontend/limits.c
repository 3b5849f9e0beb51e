/* limits.c: how deep a program nests, and how many ops it makes.
 *
 * Ops are counted as they are made.  A lower bound for each call is also computed from the text, so that a program that
 * grows without bound is rejected before it is expanded. */
#include "frontend/elaborate.h"

/* ---- while it runs ---------------------------------------------------------------------------------------- */

/* Training adds to a parameter its gradient, moments, update and copies, each with ops and text of its own.  A
 * linear layer with AdamW takes 660 kB for both targets: 15 kB for each of what it is charged. */
enum { COST_OF_PARAM = 20 };

bool elab_charge_param(Elab *e, Loc loc) { return elab_charge(e, loc, COST_OF_PARAM); }

/* Each level is a few C frames of at most about a kilobyte. */
enum { MAX_DEPTH = 1000 };

bool elab_enter(Elab *e, Loc loc) {
    if (e->stopped) return false;
    if (e->depth == MAX_DEPTH) {
        elab_error(e, loc, "calls and expressions are nested more than %d levels deep", MAX_DEPTH);
        e->stopped = true;
        return false;
    }
    e->depth++;
    return true;
}

void elab_leave(Elab *e) { e->depth--; }

bool elab_charge(Elab *e, Loc loc, int64_t amount) {
    if (e->stopped) return false;
    if (amount <= e->max_ops - e->work) {
        e->work += amount;
        return true;
    }
    Diag *diag = elab_error(e, loc, "the program costs more than %lld ops", (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}

bool elab_charge_each(Elab *e, Loc loc, const char *what, int64_t count, int64_t cost) {
    const int64_t most = (e->max_ops - e->work) / cost;
    if (e->stopped) return false;
    if (count <= most) return elab_charge(e, loc, count * cost);
    Diag *diag =
        elab_error(e, loc, "%s may be at most %lld here: each costs as much as %lld of the %lld ops a program may have",
                   what, (long long)most, (long long)cost, (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}

/* ---- from the text, before a call runs -------------------------------------------------------------------- */

/* Whatever depends on static arguments counts as 0, so that no valid program is rejected. */
static int64_t sum(int64_t a, int64_t b) { return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a; }
static int64_t product(int64_t a, int64_t b) { return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a; }

static int64_t of_body(Elab *e, const Block *b, const StmtVec *body);
static int64_t of_expr(Elab *e, const Expr *x);
static int64_t least_ops(Elab *e, Block *b);

static int64_t of_args(Elab *e, const ArgVec *args) {
    int64_t count = 0;
    for (int i = 0; i < args->len; i++) count = sum(count, of_expr(e, args->data[i].value));
    return count;
}

/* Operators count as 0, because they may be static arithmetic. */
static int64_t of_expr(Elab *e, const Expr *x) {
    if (x->kind == EXPR_UNARY) return of_expr(e, x->operation.left);
    if (x->kind == EXPR_BINARY) return sum(of_expr(e, x->operation.left), of_expr(e, x->operation.right));
    if (x->kind != EXPR_CALL) return 0;
    Block *b = elab_find_block(e, x->call.callee->text, x->call.args.len);
    return sum(of_args(e, &x->call.args), b ? least_ops(e, b) : 0);
}

static bool binds(void *name, const Stmt *s) {
    for (int k = 0; s->kind == STMT_BIND && k < s->bind.names.len; k++)
        if (!strcmp(s->bind.names.data[k]->text, name)) return true;
    return s->kind == STMT_REPEAT && !strcmp(s->repeat.index->text, name);
}

static bool declares(const ParameterVec *parameters, const char *name) {
    for (int i = 0; i < parameters->len; i++)
        if (!strcmp(parameters->data[i].name->text, name)) return true;
    return false;
}

/* A literal, or a const of the file that no name in the block shadows. */
static bool known_int(const Block *b, const Expr *x, int64_t *out) {
    if (x->kind == EXPR_INT) *out = x->i;
    if (x->kind != EXPR_NAME) return x->kind == EXPR_INT;
    const char *name = x->name->text;
    const Binding *constant = table_get(&b->unit->consts, name);
    if (!constant || constant->item.kind != ITEM_INT || dim_varies(constant->item.i)) return false;
    if (declares(&b->decl->tensors, name) || declares(&b->decl->statics, name) ||
        body_any(&b->decl->body, binds, NULL, (void *)name))
        return false;
    *out = constant->item.i.mul;
    return true;
}

static int64_t of_repeat(Elab *e, const Block *b, const Stmt *s) {
    int64_t from, to, iterations;
    if (!known_int(b, s->repeat.from, &from) || !known_int(b, s->repeat.to, &to)) return 0;
    if (from >= to || __builtin_sub_overflow(to, from, &iterations)) return 0;
    return product(iterations, sum(1, of_body(e, b, &s->repeat.body)));
}

static int64_t of_if(Elab *e, const Block *b, const Stmt *s) {
    int64_t then = of_body(e, b, &s->branch.then), otherwise = of_body(e, b, &s->branch.otherwise);
    return then < otherwise ? then : otherwise;
}

static int64_t of_stmt(Elab *e, const Block *b, const Stmt *s) {
    switch (s->kind) {
    case STMT_BIND: return of_expr(e, s->bind.value);
    case STMT_UPDATE: return of_expr(e, s->assign.value);
    case STMT_RETURN: return of_expr(e, s->value);
    case STMT_REPEAT: return of_repeat(e, b, s);
    case STMT_IF: return of_if(e, b, s);
    case STMT_CHECKPOINT: return of_body(e, b, &s->body);
    default: return 0;
    }
}

static int64_t of_body(Elab *e, const Block *b, const StmtVec *body) {
    int64_t count = 0;
    for (int i = 0; i < body->len; i++) count = sum(count, of_stmt(e, b, body->data[i]));
    return count;
}

/* Each call is charged one, as elab_afford_call does; recursion is reported there. */
static int64_t least_ops(Elab *e, Block *b) {
    if (b->least_ops || !elab_enter(e, b->decl->loc)) return b->least_ops;
    b->least_ops = 1;
    b->least_ops = sum(1, of_body(e, b, &b->decl->body));
    elab_leave(e);
    return b->least_ops;
}

/* ---- in advance ------------------------------------------------------------------------------------------- */

bool elab_afford_call(Elab *e, Block *b, const Expr *call) {
    if (e->stopped) return false;
    int64_t least = least_ops(e, b);
    if (least <= e->max_ops - e->work) return elab_charge(e, call->loc, 1);
    Diag *diag = elab_error(
        e, call->loc, "this call of %s makes %s%lld ops and calls, more than the %lld ops a program may have",
        b->decl->name->text, least == INT64_MAX ? "more than " : "at least ", (long long)least, (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}

/* The first iteration gives the cost of the others: if they exceed the limit, they are not expanded. */
bool elab_afford_iterations(Elab *e, const Stmt *s, int64_t iterations, int64_t cost) {
    int64_t total;
    if (e->stopped) return false;
    if (!__builtin_mul_overflow(iterations, cost, &total) && total <= e->max_ops - e->work) return true;
    Diag *diag = elab_error(e, s->loc, "%lld more iterations of %lld ops each exceed the %lld ops a program may have",
                            (long long)iterations, (long long)cost, (long long)e->max_ops);
    diag_help(e->d, diag, "--max-ops allows more");
    e->stopped = true;
    return false;
}
