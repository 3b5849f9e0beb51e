/* parser.y: the grammar.  It builds the raw tree of tree.h and decides nothing else; docs/language.md shows it to
 * users.
 *
 * Terminals are CAPITALS, nonterminals lower case.  Memory is the arena's, so nothing is destroyed on errors; the
 * parser's stack does not grow, because the arena may jump out of it. */
%require "3.8"
%expect 0
%define api.pure full
%define api.prefix {amp_yy}
%define api.location.type {Loc}
%define parse.error custom
%define lr.default-reduction consistent
%locations
%param { Parse *p }

%code requires {
#include "frontend/parse.h"
}

%code {
#include <ctype.h>
#include <string.h>

#include "frontend/tokens.h"

#define YYINITDEPTH 1500
#define YYMAXDEPTH 1500

#define YYLLOC_DEFAULT(current, parts, count)                                                                     \
    ((current) = (count) ? loc_join(YYRHSLOC(parts, 1), YYRHSLOC(parts, count))                                   \
                         : (Loc){ YYRHSLOC(parts, 0).source, YYRHSLOC(parts, 0).end, YYRHSLOC(parts, 0).end })

static void amp_yyerror(const Loc *loc, Parse *p, const char *message);

/* The node, or an error and a leaf if the tree is too deep. */
static Expr *checked(Parse *p, Loc loc, Expr *expr) {
    if (expr) return expr;
    parse_too_deep(p, loc);
    return expr_new(p->arena, EXPR_ERROR, loc);
}

static Expr *binary(Parse *p, Operator op, Expr *left, Expr *right) {
    Loc loc = loc_join(left->loc, right->loc);
    return checked(p, loc, expr_operation(p->arena, loc, op, left, right));
}

static Expr *unary(Parse *p, Operator op, Loc loc, Expr *operand) {
    return checked(p, loc, expr_operation(p->arena, loc, op, operand, NULL));
}

static Arg *argument(Parse *p, Name *name, Expr *value) {
    Arg *arg = arena_new(p->arena, Arg);
    *arg = (Arg){ name, value, name ? loc_join(name->loc, value->loc) : value->loc };
    return arg;
}

static Path *path_add(Parse *p, Path *path, PathPart part, Loc loc) {
    if (!path) {
        path = arena_new(p->arena, Path);
        path->loc = loc;
    }
    path->loc = loc_join(path->loc, loc);
    vec_push(p->arena, &path->parts, part);
    return path;
}

static Stmt *declaration(Parse *p, StmtKind kind, Loc loc, Name *name, Path *as, TypeExpr *type, Expr *value) {
    Stmt *stmt = stmt_new(p->arena, kind, loc);
    stmt->declare.name = name;
    stmt->declare.as = as;
    stmt->declare.type = type;
    stmt->declare.value = value;
    return stmt;
}

static Stmt *named(Parse *p, StmtKind kind, Loc loc, Name *name, Expr *value) {
    Stmt *stmt = stmt_new(p->arena, kind, loc);
    stmt->assign.name = name;
    stmt->assign.value = value;
    return stmt;
}

static Stmt *override(Parse *p, Loc loc, Name *pattern, bool is_path, Name *word, Name *because) {
    Stmt *stmt = stmt_new(p->arena, STMT_OVERRIDE, loc);
    stmt->override.pattern = pattern;
    stmt->override.is_path = is_path;
    stmt->override.word = word;
    stmt->override.because = because;
    return stmt;
}

static Name *dotted(Parse *p, Name *layer, Name *op) {
    const char *text = arena_printf(p->arena, "%s.%s", layer->text, op->text);
    return name_new(p->arena, loc_join(layer->loc, op->loc), text);
}

static Decl *declare(Parse *p, DeclKind kind, Loc loc, Name *name) {
    Decl *decl = decl_new(p->arena, kind, loc);
    decl->name = name;
    vec_push(p->arena, &p->file->decls, decl);
    return decl;
}
}

%union {
    int64_t i;
    double f;
    Name *name;
    NameVec names;
    Expr *expr;
    ExprVec exprs;
    Arg *arg;
    ArgVec args;
    CallExpr *call;
    PathPart part;
    Path *path;
    TypeExpr *type;
    Parameter *parameter;
    ParameterVec parameters;
    Stmt *stmt;
    StmtVec stmts;
    Decl *decl;
}

%token END 0 "end of file"
%token NEWLINE "end of line"
%token <name> NAME "a name" STRING "a string"
%token <i> INTEGER "an integer"
%token <f> FLOAT "a float"
%token ARROW "'->'" RANGE "'..'" EQUAL "'=='" NOT_EQUAL "'!='" LESS_EQUAL "'<='" GREATER_EQUAL "'>='"
%token <name> REPEAT "'repeat'" IN "'in'" IF "'if'" ELSE "'else'" RETURN "'return'" AS "'as'" BECAUSE "'because'"
%token <name> NONE "'none'" TRUE "'true'" FALSE "'false'" AND "'and'" OR "'or'" NOT "'not'" BATCH "'N'"
%token <name> SHARING "'sharing'"
%token <name> AMP "'amp'" INCLUDE "'include'" CONST "'const'" INLINE "'inline'" BLOCK "'block'" MODEL "'model'"
%token <name> TRAIN "'train'"
%token <name> PRECISION "'precision'" PARAM "'param'" STATE "'state'" UPDATE "'update'" INIT "'init'" INPUT "'input'"
%token <name> LOSS "'loss'" METRIC "'metric'" GROUP "'group'" CHECKPOINT "'checkpoint'" REQUIRE "'require'"
%token <name> SIZE "'size'"

%type <expr> expr call opt_unit
%type <exprs> exprs
%type <call> callee_args
%type <arg> arg static_arg
%type <args> args static_args opt_args
%type <path> path opt_as
%type <part> part
%type <name> word opt_because opt_for
%type <names> names opt_results
%type <type> type
%type <parameter> tensor static input_of_model
%type <parameters> tensors opt_tensors statics opt_statics inputs_of_model opt_inputs
%type <stmt> stmt
%type <stmts> body stmts stmt_list opt_else
%type <decl> block size

%left OR
%left AND
%precedence NOT
%nonassoc EQUAL NOT_EQUAL '<' '>' LESS_EQUAL GREATER_EQUAL
%left '+' '-'
%left '*' '/' '%'
%precedence NEGATION

%%

/* ---- files ---- */

file: decls;

decls: %empty | decl_list | decl_list NEWLINE;

decl_list: decl | decl_list NEWLINE decl;

decl:
    AMP INTEGER
    {
        Decl *d = declare(p, DECL_VERSION, @$, $1);
        d->value = expr_new(p->arena, EXPR_INT, @2);
        d->value->i = $2;
    }
  | INCLUDE STRING { declare(p, DECL_INCLUDE, @$, $2); }
  | CONST consts
  | SIZE size { $2->loc = @$; }
  | block
  | INLINE block
    {
        $2->is_inline = true;
        $2->loc = loc_join(@1, $2->loc);
    }
  | MODEL NAME '(' opt_inputs ')' opt_results body
    {
        Decl *d = declare(p, DECL_MODEL, @1, $2);
        d->tensors = $4;
        d->results = $6;
        d->body = $7;
    }
  | TRAIN NAME opt_for body
    {
        Decl *d = declare(p, DECL_TRAIN, @1, $2);
        d->only = $3;
        d->body = $4;
    }
  | PRECISION NAME body { declare(p, DECL_PRECISION, @1, $2)->body = $3; }
  | PRECISION STRING body
    {
        Decl *d = declare(p, DECL_PRECISION, @1, $2);
        d->is_string = true;
        d->body = $3;
    }
  | error;

block:
    BLOCK NAME '(' opt_tensors opt_statics ')' opt_results body
    {
        $$ = declare(p, DECL_BLOCK, @1, $2);
        $$->tensors = $4;
        $$->statics = $5;
        $$->results = $7;
        $$->body = $8;
    };

consts: const | consts ',' const;

const: NAME '=' expr { declare(p, DECL_CONST, @$, $1)->value = $3; };

size:
    word '=' expr opt_unit
    {
        $$ = declare(p, DECL_SIZE, @$, $1);
        $$->value = $3;
        $$->unit = $4;
    };

/* The word is `unit`, which is not a keyword anywhere else. */
opt_unit:
    %empty { $$ = NULL; }
  | ',' NAME '=' expr
    {
        if (strcmp($2->text, "unit")) {
            parse_syntax_error(p, @2, arena_printf(p->arena, "'%s'", $2->text), "'unit'");
            YYERROR;
        }
        $$ = $4;
    };

/* The word is `for`, which is not a keyword anywhere else. */
opt_for:
    %empty { $$ = NULL; }
  | NAME STRING
    {
        if (strcmp($1->text, "for")) {
            parse_syntax_error(p, @1, arena_printf(p->arena, "'%s'", $1->text), "'for' or '{'");
            YYERROR;
        }
        $$ = $2;
    };

opt_results: %empty { $$ = (NameVec){ 0 }; } | ARROW names { $$ = $2; };

names: NAME { $$ = (NameVec){ 0 }; vec_push(p->arena, &$$, $1); }
  | names ',' NAME { $$ = $1; vec_push(p->arena, &$$, $3); };

/* ---- arguments of blocks, inputs of models ---- */

opt_tensors: %empty { $$ = (ParameterVec){ 0 }; } | tensors;

tensors: tensor { $$ = (ParameterVec){ 0 }; vec_push(p->arena, &$$, *$1); }
  | tensors ',' tensor { $$ = $1; vec_push(p->arena, &$$, *$3); };

tensor:
    NAME { $$ = arena_new(p->arena, Parameter); $$->name = $1; }
  | NAME '=' expr { $$ = arena_new(p->arena, Parameter); $$->name = $1; $$->initial = $3; };

opt_statics: %empty { $$ = (ParameterVec){ 0 }; } | ';' statics { $$ = $2; };

statics: static { $$ = (ParameterVec){ 0 }; vec_push(p->arena, &$$, *$1); }
  | statics ',' static { $$ = $1; vec_push(p->arena, &$$, *$3); };

static:
    NAME ':' type { $$ = arena_new(p->arena, Parameter); *$$ = (Parameter){ $1, $3, NULL }; }
  | NAME ':' type '=' expr { $$ = arena_new(p->arena, Parameter); *$$ = (Parameter){ $1, $3, $5 }; };

opt_inputs: %empty { $$ = (ParameterVec){ 0 }; } | inputs_of_model;

inputs_of_model: input_of_model { $$ = (ParameterVec){ 0 }; vec_push(p->arena, &$$, *$1); }
  | inputs_of_model ',' input_of_model { $$ = $1; vec_push(p->arena, &$$, *$3); };

input_of_model: NAME ':' type { $$ = arena_new(p->arena, Parameter); *$$ = (Parameter){ $1, $3, NULL }; };

type:
    NAME { $$ = arena_new(p->arena, TypeExpr); $$->word = $1; $$->loc = @$; }
  | NAME '[' ']' { $$ = arena_new(p->arena, TypeExpr); *$$ = (TypeExpr){ $1, true, {0}, @$ }; }
  | NAME '[' exprs ']' { $$ = arena_new(p->arena, TypeExpr); *$$ = (TypeExpr){ $1, true, $3, @$ }; };

/* ---- statements ---- */

body: '{' stmts '}' { $$ = $2; };

stmts: %empty { $$ = (StmtVec){ 0 }; } | stmt_list | stmt_list NEWLINE { $$ = $1; };

stmt_list:
    stmt { $$ = (StmtVec){ 0 }; vec_push(p->arena, &$$, $1); }
  | stmt_list NEWLINE stmt { $$ = $1; vec_push(p->arena, &$$, $3); }
  | error { $$ = (StmtVec){ 0 }; }
  | stmt_list NEWLINE error { $$ = $1; }
  | stmt_list error { $$ = $1; }; /* while the rest of a wrong line is skipped, what is before it stays */

stmt:
    names '=' expr
    {
        $$ = stmt_new(p->arena, STMT_BIND, @$);
        $$->bind.names = $1;
        $$->bind.value = $3;
    }
  | PARAM NAME opt_as ':' type '=' expr { $$ = declaration(p, STMT_PARAM, @$, $2, $3, $5, $7); }
  | STATE NAME opt_as ':' type '=' expr { $$ = declaration(p, STMT_STATE, @$, $2, $3, $5, $7); }
  | INPUT NAME ':' type { $$ = declaration(p, STMT_INPUT, @$, $2, NULL, $4, NULL); }
  | UPDATE NAME '=' expr { $$ = named(p, STMT_UPDATE, @$, $2, $4); }
  | LOSS NAME '=' expr { $$ = named(p, STMT_LOSS, @$, $2, $4); }
  | METRIC NAME '=' expr { $$ = named(p, STMT_METRIC, @$, $2, $4); }
  | INIT STRING '=' expr
    {
        $$ = stmt_new(p->arena, STMT_INIT, @$);
        $$->init.glob = $2;
        $$->init.value = $4;
    }
  | GROUP STRING ':' static_args
    {
        $$ = stmt_new(p->arena, STMT_GROUP, @$);
        $$->group.glob = $2;
        $$->group.settings = $4;
    }
  | REPEAT NAME IN expr RANGE expr body
    {
        $$ = stmt_new(p->arena, STMT_REPEAT, loc_join(@1, @6));
        $$->repeat.index = $2;
        $$->repeat.from = $4;
        $$->repeat.to = $6;
        $$->repeat.body = $7;
    }
  | IF expr body opt_else
    {
        $$ = stmt_new(p->arena, STMT_IF, loc_join(@1, @2));
        $$->branch.condition = $2;
        $$->branch.then = $3;
        $$->branch.otherwise = $4;
    }
  | CHECKPOINT body
    {
        $$ = stmt_new(p->arena, STMT_CHECKPOINT, @1);
        $$->body = $2;
    }
  | REQUIRE expr ',' STRING
    {
        $$ = stmt_new(p->arena, STMT_REQUIRE, @$);
        $$->require.condition = $2;
        $$->require.message = $4;
    }
  | RETURN expr
    {
        $$ = stmt_new(p->arena, STMT_RETURN, @$);
        $$->value = $2;
    }
  | NAME ':' NAME opt_because { $$ = override(p, @$, $1, false, $3, $4); }
  | NAME '.' NAME ':' NAME opt_because { $$ = override(p, @$, dotted(p, $1, $3), false, $5, $6); }
  | STRING ':' NAME opt_because { $$ = override(p, @$, $1, true, $3, $4); };

opt_else: %empty { $$ = (StmtVec){ 0 }; } | ELSE body { $$ = $2; };

opt_because: %empty { $$ = NULL; } | BECAUSE STRING { $$ = $2; };

opt_as: %empty { $$ = NULL; } | AS path { $$ = $2; };

path:
    word { $$ = path_add(p, NULL, (PathPart){ .word = $1 }, @1); }
  | path '.' word { $$ = path_add(p, $1, (PathPart){ .word = $3 }, @3); }
  | path part { $$ = path_add(p, $1, $2, @2); }
  | path '(' expr ')' NAME
    {
        $$ = path_add(p, $1, (PathPart){ .index = $3, .joined = true }, @3);
        $$ = path_add(p, $$, (PathPart){ .word = $5, .joined = true }, @5);
    };

part:
    '[' expr ']' { $$ = (PathPart){ .index = $2 }; }
  | '(' expr ')' { $$ = (PathPart){ .index = $2, .joined = true }; };

/* A word where only a name is possible, so that reserved words are allowed too. */
word: NAME | REPEAT | IN | IF | ELSE | RETURN | AS | BECAUSE | NONE | TRUE | FALSE | AND | OR | NOT | BATCH;

/* ---- expressions ---- */

exprs: expr { $$ = (ExprVec){ 0 }; vec_push(p->arena, &$$, $1); }
  | exprs ',' expr { $$ = $1; vec_push(p->arena, &$$, $3); };

expr:
    expr OR expr { $$ = binary(p, OPERATOR_OR, $1, $3); }
  | expr AND expr { $$ = binary(p, OPERATOR_AND, $1, $3); }
  | NOT expr { $$ = unary(p, OPERATOR_NOT, @$, $2); }
  | expr EQUAL expr { $$ = binary(p, OPERATOR_EQ, $1, $3); }
  | expr NOT_EQUAL expr { $$ = binary(p, OPERATOR_NE, $1, $3); }
  | expr '<' expr { $$ = binary(p, OPERATOR_LT, $1, $3); }
  | expr '>' expr { $$ = binary(p, OPERATOR_GT, $1, $3); }
  | expr LESS_EQUAL expr { $$ = binary(p, OPERATOR_LE, $1, $3); }
  | expr GREATER_EQUAL expr { $$ = binary(p, OPERATOR_GE, $1, $3); }
  | expr '+' expr { $$ = binary(p, OPERATOR_ADD, $1, $3); }
  | expr '-' expr { $$ = binary(p, OPERATOR_SUB, $1, $3); }
  | expr '*' expr { $$ = binary(p, OPERATOR_MUL, $1, $3); }
  | expr '/' expr { $$ = binary(p, OPERATOR_DIV, $1, $3); }
  | expr '%' expr { $$ = binary(p, OPERATOR_REMAINDER, $1, $3); }
  | '-' expr %prec NEGATION { $$ = unary(p, OPERATOR_NEG, @$, $2); }
  | call
  | INTEGER { $$ = expr_new(p->arena, EXPR_INT, @$); $$->i = $1; }
  | FLOAT { $$ = expr_new(p->arena, EXPR_FLOAT, @$); $$->f = $1; }
  | TRUE { $$ = expr_new(p->arena, EXPR_BOOL, @$); $$->b = true; }
  | FALSE { $$ = expr_new(p->arena, EXPR_BOOL, @$); }
  | NONE { $$ = expr_new(p->arena, EXPR_NONE, @$); }
  | BATCH { $$ = expr_new(p->arena, EXPR_BATCH, @$); }
  | STRING { $$ = expr_new(p->arena, EXPR_STRING, @$); $$->s = $1->text; }
  | NAME { $$ = expr_new(p->arena, EXPR_NAME, @$); $$->name = $1; }
  | '(' expr ')' { $$ = $2; }
  | '(' expr ',' exprs ')'
    {
        ExprVec items = { 0 };
        vec_push(p->arena, &items, $2);
        for (int i = 0; i < $4.len; i++) vec_push(p->arena, &items, $4.data[i]);
        $$ = checked(p, @$, expr_items(p->arena, @$, EXPR_TUPLE, items));
    }
  | '[' exprs ']' { $$ = checked(p, @$, expr_items(p->arena, @$, EXPR_LIST, $2)); };

call:
    NAME '(' callee_args ')' opt_as
    {
        $3->callee = $1;
        $3->as = $5;
        $$ = checked(p, @$, expr_call(p->arena, @$, $3));
    }
  | NAME '(' callee_args ')' SHARING path
    {
        $3->callee = $1;
        $3->sharing = $6;
        $$ = checked(p, @$, expr_call(p->arena, @$, $3));
    };

callee_args:
    opt_args { $$ = arena_new(p->arena, CallExpr); $$->args = $1; }
  | opt_args ';' static_args
    {
        $$ = arena_new(p->arena, CallExpr);
        $$->args = $1;
        $$->statics = $3;
        $$->has_semicolon = true;
    };

opt_args: %empty { $$ = (ArgVec){ 0 }; } | args;

args: arg { $$ = (ArgVec){ 0 }; vec_push(p->arena, &$$, *$1); }
  | args ',' arg { $$ = $1; vec_push(p->arena, &$$, *$3); };

arg: expr { $$ = argument(p, NULL, $1); } | static_arg;

static_args: static_arg { $$ = (ArgVec){ 0 }; vec_push(p->arena, &$$, *$1); }
  | static_args ',' static_arg { $$ = $1; vec_push(p->arena, &$$, *$3); };

static_arg: word '=' expr { $$ = argument(p, $1, $3); };

%%

/* "'foo'" for words, the name of the token for all others. */
static const char *describe(Parse *p, yysymbol_kind_t symbol, const Loc *loc) {
    bool is_own_text = symbol == YYSYMBOL_NAME || symbol == YYSYMBOL_INTEGER || symbol == YYSYMBOL_FLOAT;
    if (symbol == YYSYMBOL_STRING) return arena_printf(p->arena, "string %s", loc_text(p->arena, *loc));
    return is_own_text ? arena_printf(p->arena, "'%s'", loc_text(p->arena, *loc)) : yysymbol_name(symbol);
}

static bool is_comparison(yysymbol_kind_t token) {
    return token == YYSYMBOL_EQUAL || token == YYSYMBOL_NOT_EQUAL || token == YYSYMBOL_LESS_EQUAL ||
           token == YYSYMBOL_GREATER_EQUAL || token == YYTRANSLATE('<') || token == YYTRANSLATE('>');
}

/* The word that ends where the token begins, spaces left out: "for" in `for i in ..`. */
static bool is_after(const Loc *loc, const char *word) {
    const char *text = loc->source->text;
    size_t end = loc->begin, length = strlen(word);
    while (end > 0 && text[end - 1] == ' ') end--;
    if (end < length || memcmp(text + end - length, word, length)) return false;
    char before = end > length ? text[end - length - 1] : ' ';
    return !isalnum((unsigned char)before) && before != '_';
}

/* What other languages write in that place. */
static const char *foreign_syntax(yysymbol_kind_t token, const Loc *loc) {
    if (is_after(loc, "for") || is_after(loc, "while")) return "a loop is `repeat i in 0..3 { ... }`";
    if (loc->end - loc->begin == 3 && !memcmp(loc->source->text + loc->begin, "def", 3))
        return "a block is `block name(x) -> y { ... }`";
    if (token == YYTRANSLATE('*') && loc->begin > 0 && loc->source->text[loc->begin - 1] == '*')
        return "a power is pow(x; e = 2.0)";
    const char *text = loc->source->text + loc->begin;
    if (token == YYTRANSLATE('/') && (text[1] == '/' || text[1] == '*')) return "a comment begins with #";
    if (token == YYTRANSLATE('['))
        return "tensors are not indexed; write slice(x; dim = 1, from = 0, to = 1), and reshape to drop the dimension";
    return NULL;
}

/* A hint at the usual cause of that token in the wrong position. */
static void help_with(Parse *p, Diag *diag, yysymbol_kind_t token, const Loc *loc) {
    const char *foreign = foreign_syntax(token, loc);
    if (foreign) diag_help(p->diags, diag, "%s", foreign);
    else if (token == YYSYMBOL_ELSE) diag_help(p->diags, diag, "else must be on the line of its '}'");
    else if (token >= YYSYMBOL_REPEAT && token <= YYSYMBOL_BATCH)
        diag_help(p->diags, diag, "'%s' is a reserved word and cannot be a name", loc_text(p->arena, *loc));
    else if (token == YYSYMBOL_NEWLINE)
        diag_help(p->diags, diag, "a statement continues on the next line only inside ( ) or [ ]");
    else if (is_comparison(token)) diag_help(p->diags, diag, "comparisons do not chain; combine them with `and`");
}

static int yyreport_syntax_error(const yypcontext_t *context, Parse *p) {
    enum { MOST = 4 };
    yysymbol_kind_t expected[MOST];
    int count = yypcontext_expected_tokens(context, expected, MOST); /* 0: more than fit */
    Text t;
    text_init(&t, p->arena);
    for (int i = 0; i < count; i++)
        text_printf(&t, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", yysymbol_name(expected[i]));
    yysymbol_kind_t token = yypcontext_token(context);
    const Loc *loc = yypcontext_location(context);
    Diag *diag = parse_syntax_error(p, *loc, describe(p, token, loc), count ? text_str(&t) : NULL);
    if (diag) help_with(p, diag, token, loc);
    return 0;
}

/* Called only when the parser's stack is full. */
static void amp_yyerror(const Loc *loc, Parse *p, const char *message) {
    (void)message;
    parse_too_deep(p, *loc);
}
