/* tree.c: making the nodes of the raw syntax tree. */
#include "frontend/tree.h"

const char *const operator_spelling[OPERATOR_COUNT] = {
    [OPERATOR_ADD] = "+",   [OPERATOR_SUB] = "-", [OPERATOR_MUL] = "*",   [OPERATOR_DIV] = "/", [OPERATOR_EQ] = "==",
    [OPERATOR_NE] = "!=",   [OPERATOR_LT] = "<",  [OPERATOR_LE] = "<=",   [OPERATOR_GT] = ">",  [OPERATOR_GE] = ">=",
    [OPERATOR_AND] = "and", [OPERATOR_OR] = "or", [OPERATOR_NOT] = "not", [OPERATOR_NEG] = "-",
};

Name *name_new(Arena *a, Loc loc, const char *text) {
    Name *name = arena_new(a, Name);
    name->text = text;
    name->loc = loc;
    return name;
}

Expr *expr_new(Arena *a, ExprKind kind, Loc loc) {
    Expr *expr = arena_new(a, Expr);
    expr->kind = kind;
    expr->loc = loc;
    expr->depth = 1;
    return expr;
}

static int deeper(int depth, const Expr *part) { return part && part->depth > depth ? part->depth : depth; }

static int deepest_arg(int depth, const ArgVec *args) {
    for (int i = 0; i < args->len; i++) depth = deeper(depth, args->data[i].value);
    return depth;
}

/* The node with its depth, or NULL if it is too deep. */
static Expr *nested(Expr *expr, int depth_of_parts) {
    expr->depth = depth_of_parts + 1;
    return expr->depth > MAX_NESTING ? NULL : expr;
}

Expr *expr_operation(Arena *a, Loc loc, Operator op, Expr *left, Expr *right) {
    Expr *expr = expr_new(a, right ? EXPR_BINARY : EXPR_UNARY, loc);
    expr->operation.op = op;
    expr->operation.left = left;
    expr->operation.right = right;
    return nested(expr, deeper(left->depth, right));
}

Expr *expr_items(Arena *a, Loc loc, ExprKind kind, ExprVec items) {
    Expr *expr = expr_new(a, kind, loc);
    expr->items = items;
    int depth = 0;
    for (int i = 0; i < items.len; i++) depth = deeper(depth, items.data[i]);
    return nested(expr, depth);
}

static const Path *call_path(const CallExpr *call) { return call->as ? call->as : call->sharing; }

Expr *expr_call(Arena *a, Loc loc, const CallExpr *call) {
    Expr *expr = expr_new(a, EXPR_CALL, loc);
    expr->call = *call;
    int depth = deepest_arg(deepest_arg(0, &call->args), &call->statics);
    const Path *path = call_path(call);
    for (int i = 0; path && i < path->parts.len; i++) depth = deeper(depth, path->parts.data[i].index);
    return nested(expr, depth);
}

static bool any_name_in_args(const ArgVec *args, bool (*test)(void *, const Name *), void *user) {
    bool found = false;
    for (int i = 0; i < args->len; i++) found = expr_any_name(args->data[i].value, test, user) || found;
    return found;
}

/* Visits every name, even after one that passes: |test| may have side effects. */
bool expr_any_name(const Expr *x, bool (*test)(void *, const Name *), void *user) {
    bool found = false;
    if (!x) return false;
    switch (x->kind) {
    case EXPR_NAME: return test(user, x->name);
    case EXPR_UNARY:
    case EXPR_BINARY:
        found = expr_any_name(x->operation.left, test, user);
        return expr_any_name(x->operation.right, test, user) || found;
    case EXPR_CALL:
        found = any_name_in_args(&x->call.args, test, user);
        found = any_name_in_args(&x->call.statics, test, user) || found;
        const Path *path = call_path(&x->call);
        for (int i = 0; path && i < path->parts.len; i++)
            found = expr_any_name(path->parts.data[i].index, test, user) || found;
        return found;
    case EXPR_TUPLE:
    case EXPR_LIST:
        for (int i = 0; i < x->items.len; i++) found = expr_any_name(x->items.data[i], test, user) || found;
        return found;
    default: return false;
    }
}

Stmt *stmt_new(Arena *a, StmtKind kind, Loc loc) {
    Stmt *stmt = arena_new(a, Stmt);
    stmt->kind = kind;
    stmt->loc = loc;
    return stmt;
}

Decl *decl_new(Arena *a, DeclKind kind, Loc loc) {
    Decl *decl = arena_new(a, Decl);
    decl->kind = kind;
    decl->loc = loc;
    return decl;
}

const char *loc_text(Arena *a, Loc loc) {
    enum { LONGEST = 40, KEPT = 18 };
    const char *text = loc.source->text + loc.begin;
    int n = (int)(loc.end - loc.begin);
    if (n <= LONGEST && !memchr(text, '\n', (size_t)n)) return arena_strndup(a, text, (size_t)n);
    int first_line = (int)strcspn(text, "\n");
    int head = first_line < KEPT ? first_line : KEPT;
    return arena_printf(a, "%.*s...", head, text);
}
