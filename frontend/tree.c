/* tree.c: making the nodes of the raw syntax tree. */
#include "frontend/tree.h"

const char *const operator_spelling[OPERATOR_COUNT] = {
    [OPERATOR_ADD] = "+",       [OPERATOR_SUB] = "-",   [OPERATOR_MUL] = "*", [OPERATOR_DIV] = "/",
    [OPERATOR_REMAINDER] = "%", [OPERATOR_EQ] = "==",   [OPERATOR_NE] = "!=", [OPERATOR_LT] = "<",
    [OPERATOR_LE] = "<=",       [OPERATOR_GT] = ">",    [OPERATOR_GE] = ">=", [OPERATOR_AND] = "and",
    [OPERATOR_OR] = "or",       [OPERATOR_NOT] = "not", [OPERATOR_NEG] = "-",
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

static bool any_in_args(const ArgVec *args, ExprTest *test, void *user) {
    for (int i = 0; i < args->len; i++)
        if (expr_any(args->data[i].value, test, user)) return true;
    return false;
}

static bool any_in_path(const Path *path, ExprTest *test, void *user) {
    for (int i = 0; path && i < path->parts.len; i++)
        if (expr_any(path->parts.data[i].index, test, user)) return true;
    return false;
}

static bool any_in_list(const ExprVec *list, ExprTest *test, void *user) {
    for (int i = 0; i < list->len; i++)
        if (expr_any(list->data[i], test, user)) return true;
    return false;
}

bool expr_any(const Expr *x, ExprTest *test, void *user) {
    if (!x) return false;
    if (test(user, x)) return true;
    switch (x->kind) {
    case EXPR_UNARY:
    case EXPR_BINARY: return expr_any(x->operation.left, test, user) || expr_any(x->operation.right, test, user);
    case EXPR_CALL:
        return any_in_args(&x->call.args, test, user) || any_in_args(&x->call.statics, test, user) ||
               any_in_path(call_path(&x->call), test, user);
    case EXPR_TUPLE:
    case EXPR_LIST: return any_in_list(&x->items, test, user);
    default: return false;
    }
}

/* Leaves out the statements within it. */
static bool any_in_statement(const Stmt *s, ExprTest *test, void *user) {
    switch (s->kind) {
    case STMT_BIND: return expr_any(s->bind.value, test, user);
    case STMT_PARAM:
    case STMT_STATE:
    case STMT_INPUT:
        return any_in_path(s->declare.as, test, user) || any_in_list(&s->declare.type->dims, test, user) ||
               expr_any(s->declare.value, test, user);
    case STMT_UPDATE:
    case STMT_LOSS:
    case STMT_METRIC: return expr_any(s->assign.value, test, user);
    case STMT_INIT: return expr_any(s->init.value, test, user);
    case STMT_RETURN: return expr_any(s->value, test, user);
    case STMT_REQUIRE: return expr_any(s->require.condition, test, user);
    case STMT_REPEAT: return expr_any(s->repeat.from, test, user) || expr_any(s->repeat.to, test, user);
    case STMT_IF: return expr_any(s->branch.condition, test, user);
    case STMT_GROUP: return any_in_args(&s->group.settings, test, user);
    default: return false;
    }
}

static bool statement_any(const Stmt *s, StmtTest *of_stmt, ExprTest *of_expr, void *user) {
    if (of_stmt && of_stmt(user, s)) return true;
    if (of_expr && any_in_statement(s, of_expr, user)) return true;
    switch (s->kind) {
    case STMT_REPEAT: return body_any(&s->repeat.body, of_stmt, of_expr, user);
    case STMT_CHECKPOINT: return body_any(&s->body, of_stmt, of_expr, user);
    case STMT_IF:
        return body_any(&s->branch.then, of_stmt, of_expr, user) ||
               body_any(&s->branch.otherwise, of_stmt, of_expr, user);
    default: return false;
    }
}

bool body_any(const StmtVec *body, StmtTest *of_stmt, ExprTest *of_expr, void *user) {
    for (int i = 0; i < body->len; i++)
        if (statement_any(body->data[i], of_stmt, of_expr, user)) return true;
    return false;
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
