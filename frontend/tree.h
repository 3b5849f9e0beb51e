/* tree.h: the raw syntax tree, as the parser leaves it: every word and its location, nothing resolved, nothing checked.
 *
 * Everything lives in the arena of the compilation.  The only part that elaboration writes is Name.use, from which it
 * reports at the end the names that were never read.
 */
#ifndef AMP_FRONTEND_TREE_H
#define AMP_FRONTEND_TREE_H

#include "base/diag.h"

/* Expressions and blocks nest this deep at most: elaboration walks them by recursion. */
enum { MAX_NESTING = 200 };

/* A name as it is written at one location. */
typedef struct Name {
    const char *text;
    Loc loc;
    struct NameUse {
        bool bound, read;
    } use; /* over all elaborations of this name */
} Name;
typedef VEC(Name *) NameVec;

/* ---- expressions ------------------------------------------------------------------------------------------ */

typedef enum ExprKind {
    EXPR_ERROR, /* reported already */
    EXPR_INT,
    EXPR_FLOAT,
    EXPR_BOOL,
    EXPR_STRING,
    EXPR_NONE,
    EXPR_BATCH, /* N */
    EXPR_NAME,
    EXPR_UNARY,
    EXPR_BINARY,
    EXPR_CALL,
    EXPR_TUPLE, /* (a, b) */
    EXPR_LIST   /* [a, b] */
} ExprKind;

typedef enum Operator {
    OPERATOR_ADD,
    OPERATOR_SUB,
    OPERATOR_MUL,
    OPERATOR_DIV,
    OPERATOR_REMAINDER,
    OPERATOR_EQ,
    OPERATOR_NE,
    OPERATOR_LT,
    OPERATOR_LE,
    OPERATOR_GT,
    OPERATOR_GE,
    OPERATOR_AND,
    OPERATOR_OR,
    OPERATOR_NOT,
    OPERATOR_NEG,
    OPERATOR_COUNT
} Operator;
extern const char *const operator_spelling[OPERATOR_COUNT];

typedef struct Expr Expr;
typedef VEC(Expr *) ExprVec;

/* f(..., name = value): an argument with or without a name. */
typedef struct Arg {
    Name *name; /* NULL: by position */
    Expr *value;
    Loc loc;
} Arg;
typedef VEC(Arg) ArgVec;

/* downsample[0].weight_l(1): words and indexes. */
typedef struct PathPart {
    Name *word; /* or */
    Expr *index;
    bool joined; /* to what is before it, without a dot */
} PathPart;
typedef struct Path {
    VEC(PathPart) parts;
    Loc loc;
} Path;

typedef struct CallExpr {
    Name *callee;
    ArgVec args;    /* before ';' */
    ArgVec statics; /* after it */
    bool has_semicolon;
    Path *as, *sharing; /* at most one; else NULL */
} CallExpr;

struct Expr {
    ExprKind kind;
    int depth; /* of the tree below, at most MAX_NESTING */
    Loc loc;
    union {
        int64_t i;
        double f;
        bool b;
        const char *s; /* EXPR_STRING */
        Name *name;
        struct {
            Operator op;
            Expr *left, *right;
        } operation; /* unary: right is NULL */
        CallExpr call;
        ExprVec items;
    };
};

/* ---- types ------------------------------------------------------------------------------------------------ */

/* f32[N, 784], i32, int, shape */
typedef struct TypeExpr {
    Name *word;
    bool has_dims;
    ExprVec dims;
    Loc loc;
} TypeExpr;

/* ---- statements ------------------------------------------------------------------------------------------- */

typedef struct Stmt Stmt;
typedef VEC(Stmt *) StmtVec;

typedef enum StmtKind {
    STMT_BIND,       /* a, b = value */
    STMT_PARAM,      /* param NAME as PATH: type = init */
    STMT_STATE,      /* state NAME as PATH: type = init */
    STMT_UPDATE,     /* update NAME = value */
    STMT_INIT,       /* init "glob" = value */
    STMT_REPEAT,     /* repeat NAME in FROM..TO { } */
    STMT_IF,         /* if COND { } else { } */
    STMT_CHECKPOINT, /* checkpoint { } */
    STMT_REQUIRE,    /* require COND, "message" */
    STMT_RETURN,     /* return value */
    STMT_INPUT,      /* input NAME: type */
    STMT_LOSS,       /* loss NAME = value; `loss = value` is STMT_BIND */
    STMT_METRIC,     /* metric NAME = value */
    STMT_GROUP,      /* group "glob": key = value, ... */
    STMT_OVERRIDE    /* softmax: f32 because "..."   or   "h.0.*": f32 */
} StmtKind;

struct Stmt {
    StmtKind kind;
    Loc loc;
    union {
        struct {
            NameVec names;
            Expr *value;
        } bind;
        struct {
            Name *name;
            Path *as;
            TypeExpr *type;
            Expr *value;
        } declare; /* param, state, input; value NULL for an input */
        struct {
            Name *name;
            Expr *value;
        } assign; /* update, loss, metric */
        struct {
            Name *glob;
            Expr *value;
        } init;
        struct {
            Name *index;
            Expr *from, *to;
            StmtVec body;
        } repeat;
        struct {
            Expr *condition;
            StmtVec then, otherwise;
        } branch;
        StmtVec body; /* checkpoint */
        struct {
            Expr *condition;
            Name *message;
        } require;
        Expr *value; /* return */
        struct {
            Name *glob;
            ArgVec settings;
        } group;
        struct {
            Name *pattern;
            bool is_path;
            Name *word, *because;
        } override; /* because: NULL or its text */
    };
};

/* ---- declarations ----------------------------------------------------------------------------------------- */

/* A tensor argument of a block, a static one, or an input of a model. */
typedef struct Parameter {
    Name *name;
    TypeExpr *type; /* NULL for tensors of a block */
    Expr *initial;  /* default, or NULL */
} Parameter;
typedef VEC(Parameter) ParameterVec;

typedef enum DeclKind {
    DECL_VERSION,
    DECL_INCLUDE,
    DECL_CONST,
    DECL_SIZE,
    DECL_BLOCK,
    DECL_MODEL,
    DECL_TRAIN,
    DECL_PRECISION
} DeclKind;

typedef struct Decl {
    DeclKind kind;
    Loc loc;     /* of its first line */
    Name *name;  /* block, model, train, const, size; precision: the word or the string; include: the file */
    Expr *value; /* version, const, size */
    Expr *unit;  /* size T = 1024, unit = 8; or NULL */
    ParameterVec tensors, statics;
    NameVec results;
    StmtVec body;
    Name *only;     /* train NAME for "glob" */
    bool is_inline; /* inline block */
    bool is_string; /* precision "..." */
} Decl;
typedef VEC(Decl *) DeclVec;

typedef struct File {
    const Source *source;
    DeclVec decls;
} File;

/* ---- making nodes (tree.c) -------------------------------------------------------------------------------- */

Name *name_new(Arena *a, Loc loc, const char *text);
Expr *expr_new(Arena *a, ExprKind kind, Loc loc);
/* Nodes with parts: NULL if the tree would nest deeper than MAX_NESTING. */
Expr *expr_operation(Arena *a, Loc loc, Operator op, Expr *left, Expr *right);
Expr *expr_items(Arena *a, Loc loc, ExprKind kind, ExprVec items);
Expr *expr_call(Arena *a, Loc loc, const CallExpr *call);
Stmt *stmt_new(Arena *a, StmtKind kind, Loc loc);
Decl *decl_new(Arena *a, DeclKind kind, Loc loc);

/* Whether |test| holds for the expression or one within it: operands, arguments, indexes of paths; NULL has none. */
typedef bool ExprTest(void *user, const Expr *x);
bool expr_any(const Expr *x, ExprTest *test, void *user);
/* The same of the statements of a body and of those within them, and of their expressions; either test may be NULL. */
typedef bool StmtTest(void *user, const Stmt *s);
bool body_any(const StmtVec *body, StmtTest *of_stmt, ExprTest *of_expr, void *user);

/* The source text at a location, for messages; a long one is cut and ends in "...". */
const char *loc_text(Arena *a, Loc loc);

#endif
