/* grammar.y: the grammar of PTX.  It calls the builder as it goes; instructions are words with operands.
 *
 * Memory is the arena's, so nothing is destroyed on errors; the parser's stack does not grow, because errors jump out
 * of it. */
%require "3.8"
%expect 0
%define api.pure full
%define api.prefix {ptx_yy}
%define api.location.type {Place}
%define parse.error custom
%define lr.default-reduction consistent
%locations
%param { Parser *p }

%code requires {
#include "fakecuda/ptx/parser.h"
}

%code {
#include <string.h>

#define YYINITDEPTH 2000
#define YYMAXDEPTH 2000

#define YYLLOC_DEFAULT(current, parts, count)                                                                     \
    do {                                                                                                          \
        (current) = YYRHSLOC(parts, (count) ? 1 : 0);                                                             \
        if (count) (current).end = YYRHSLOC(parts, count).end;                                                    \
        else (current).begin = (current).end;                                                                     \
    } while (0)

int ptx_yylex(PTX_YYSTYPE *value, Place *place, Parser *p);
static void ptx_yyerror(const Place *place, Parser *p, const char *message);

static Number negative(Number n) {
    n.bits = 0 - n.bits;
    return n;
}

static Names *names_add(Parser *p, Names *list, Name *name, Place place) {
    Names *item = ptx_arena_alloc(&p->arena, sizeof *item), **end = &list;
    *item = (Names){ .name = name, .place = place };
    while (*end) end = &(*end)->next;
    *end = item;
    return list;
}
}

%union {
    Name *name;
    const char *text;
    Names *names;
    Number number;
    struct { Number *items; int count; } numbers;
    Dimensions dimensions;
    Initializer *init;
    Variable *variable;
    Variables variables;
    PtxOperand *operand;
    Operands operands;
    bool flag;
}

%token <name> WORD "name" DOTTED "opcode" DOTWORD "directive"
%token <text> CALL "call" STRING "string"
%token <number> INTEGER "integer" FLOAT "float"
%token END 0 "end of text" SINK "'_'"
%token <name> VERSION ".version" TARGET ".target" ADDRESS_SIZE ".address_size" SOURCE_FILE ".file" LOC ".loc"
%token <name> SECTION ".section" PRAGMA ".pragma" ENTRY ".entry" FUNC ".func" ALIGN_BY ".align" ATTRIBUTE ".attribute"
%token <name> BRANCHTARGETS ".branchtargets" CALLTARGETS ".calltargets" CALLPROTOTYPE ".callprototype"
%token SHIFT_LEFT "<<" SHIFT_RIGHT ">>" LESS_EQUAL "<=" GREATER_EQUAL ">=" EQUAL "==" NOT_EQUAL "!=" AND_AND "&&"
%token OR_OR "||"

%right '?' ':'
%left OR_OR
%left AND_AND
%left '|'
%left '^'
%left '&'
%left EQUAL NOT_EQUAL
%left '<' '>' LESS_EQUAL GREATER_EQUAL
%left SHIFT_LEFT SHIFT_RIGHT
%left '+' '-'
%left '*' '/' '%'
%precedence UNARY

%type <name> name
%type <text> opcode
%type <names> names
%type <number> expr align version_number
%type <numbers> numbers opt_numbers
%type <dimensions> dimensions
%type <init> init init_item init_items address_value symbol_value
%type <variable> parameter
%type <variables> parameters opt_parameters
%type <operand> operand leaf address address_part call_operand
%type <operands> operands opt_operands address_parts call_operands opt_call_list
%type <flag> opt_not

%%

module: items { module_finish(p, @$); };

items: %empty | items item;

item: VERSION version_number { module_version(p, @2, $2); }
  | TARGET names { module_target(p, @2, $2); }
  | ADDRESS_SIZE INTEGER { if ($2.bits != 64) parser_fail(p, @2, "only .address_size 64 is known"); }
  | debug
  | SECTION any_section '{' section_parts '}'
  | specs declarators ';'
  | function;

version_number: FLOAT | INTEGER;

names: name { $$ = names_add(p, NULL, $1, @1); }
  | names ',' name { $$ = names_add(p, $1, $3, @3); };

name: WORD | DOTTED;

/* ---- what a debugger reads: kept is only the line */

debug: SOURCE_FILE INTEGER STRING
  | SOURCE_FILE INTEGER STRING ',' INTEGER ',' INTEGER
  | LOC INTEGER INTEGER INTEGER loc_extras { p->loc_line = (int)($3.bits & 0x7fffffff); }
  | PRAGMA strings ';';

strings: STRING | strings ',' STRING;

loc_extras: %empty | loc_extras ',' WORD loc_value;

loc_value: WORD | WORD '+' INTEGER | INTEGER INTEGER INTEGER;

any_section: WORD | DOTWORD;

section_parts: %empty | section_parts section_part;

section_part: WORD | DOTTED | DOTWORD | INTEGER | FLOAT | STRING | ':' | ',' | '+' | '-' | '(' | ')' | ';' | ALIGN_BY;

/* ---- declarations */

opt_specs: %empty { specs_begin(p, @$); } | specs;

specs: { specs_begin(p, @$); } spec | specs spec;

spec: DOTWORD { specs_word(p, @1, $1); }
  | ALIGN_BY align { specs_align(p, @2, $2); }
  | ATTRIBUTE '(' attributes ')';

align: INTEGER;

attributes: attribute | attributes ',' attribute;

attribute: DOTWORD | DOTWORD '(' numbers ')';

declarators: declarator | declarators ',' declarator;

declarator: WORD dimensions { declare(p, @1, $1, &$2, NULL); }
  | WORD dimensions '=' init { declare(p, @1, $1, &$2, $4); }
  | WORD '<' INTEGER '>' { declare_range(p, @1, $1, $3); };

dimensions: %empty { $$ = (Dimensions){ 0 }; }
  | dimensions '[' ']' {
        $$ = $1;
        if ($$.count) parser_fail(p, @2, "only the first dimension may be left open");
        $$.is_open = true;
        $$.sizes[$$.count++] = 0;
    }
  | dimensions '[' expr ']' {
        $$ = $1;
        if ($$.count == MAX_DIMENSIONS) parser_fail(p, @2, "more than %d dimensions", MAX_DIMENSIONS);
        $$.sizes[$$.count++] = number_size(p, @3, $3);
    };

init: init_item;

init_item: expr { $$ = initializer_number(p, @1, $1); }
  | address_value
  | INTEGER '(' address_value ')' { $$ = $3; $$->mask = $1.bits; }
  | '{' init_items '}' { $$ = $2; }
  | '{' '}' { $$ = initializer_add(p, NULL, NULL); };

init_items: init_item { $$ = initializer_add(p, NULL, $1); }
  | init_items ',' init_item { $$ = initializer_add(p, $1, $3); };

address_value: symbol_value
  | symbol_value '+' expr { $$ = $1; $$->number.bits += (uint64_t)number_integer(p, @3, $3); }
  | symbol_value '-' expr { $$ = $1; $$->number.bits -= (uint64_t)number_integer(p, @3, $3); };

symbol_value: WORD { $$ = initializer_address(p, @1, $1, (Number){ 0 }); }
  | WORD '(' address_value ')' {
        if (strcmp($1->text, "generic"))
            parser_fail(p, @1, "'%s' is no operator of an initializer: generic is", $1->text);
        $$ = $3;
        $$->generic = true;
    };

/* ---- functions */

function: function_head directives body { function_end(p, @3, true); }
  | function_head directives ';' { function_end(p, @3, false); };

function_head: opt_specs ENTRY { function_begin(p, @2, true); } WORD {
        function_named(p, @4, $4, (Variables){ 0 });
    } opt_parameters { function_parameters(p, $6); }
  | opt_specs FUNC opt_attributes { function_begin(p, @2, false); } opt_parameters WORD {
        function_named(p, @6, $6, $5);
    } opt_parameters { function_parameters(p, $8); };

opt_attributes: %empty | ATTRIBUTE '(' attributes ')';

opt_parameters: %empty { $$ = (Variables){ 0 }; }
  | '(' ')' { $$ = (Variables){ 0 }; }
  | '(' parameters ')' { $$ = $2; };

parameters: parameter { $$ = (Variables){ 0 }; variables_add(&$$, $1); }
  | parameters ',' parameter { $$ = $1; variables_add(&$$, $3); };

parameter: specs WORD dimensions { $$ = declare_parameter(p, @2, $2, &$3); }
  | specs SINK dimensions { $$ = declare_parameter(p, @2, parser_name(p, "_", 1), &$3); };

directives: %empty
  | directives DOTWORD opt_numbers { function_directive(p, @2, $2, $3.items, $3.count); }
  | directives PRAGMA strings ';'
  | directives debug_line;

debug_line: LOC INTEGER INTEGER INTEGER loc_extras;

opt_numbers: %empty { $$.items = NULL; $$.count = 0; } | numbers;

numbers: INTEGER { $$.items = ptx_arena_grow(&p->arena, NULL, 0, sizeof(Number)); $$.items[0] = $1; $$.count = 1; }
  | numbers ',' INTEGER {
        $$ = $1;
        $$.items = ptx_arena_grow(&p->arena, $$.items, $$.count, sizeof(Number));
        $$.items[$$.count++] = $3;
    };

body: '{' statements '}';

/* ---- statements */

statements: %empty | statements statement;

statement: '{' { scope_open(p); } statements '}' { scope_close(p); }
  | WORD ':' { scope_label(p, $1, @1); }
  | WORD ':' BRANCHTARGETS names ';' { instruction_targets(p, @1, $1, $4, true); }
  | WORD ':' CALLTARGETS names ';' { instruction_targets(p, @1, $1, $4, false); }
  | WORD ':' CALLPROTOTYPE opt_parameters SINK opt_parameters prototype_words ';' {
        scope_declare(p, SYMBOL_PROTOTYPE, $1, @1);
    }
  | instruction
  | guard instruction
  | specs declarators ';'
  | debug
  | ';';

instruction: opcode opt_operands ';' { instruction_add(p, @2, &$2); }
  | CALL { instruction_opcode(p, @1, $1); } call_operands ';' { instruction_add(p, @3, &$3); };

prototype_words: %empty | prototype_words DOTWORD opt_numbers;

guard: '@' opt_not WORD { instruction_guard(p, @3, $3, $2); };

opt_not: %empty { $$ = false; } | '!' { $$ = true; };

opcode: name { $$ = $1->text; instruction_opcode(p, @1, $$); }
  | opcode DOTWORD { $$ = parser_print(p, "%s%s", $1, $2->text); instruction_opcode(p, @$, $$); };

opt_operands: %empty { $$ = (Operands){ 0 }; } | operands;

operands: operand { $$ = (Operands){ 0 }; operands_add(p, &$$, $1); }
  | operands ',' operand { $$ = $1; operands_add(p, &$$, $3); };

operand: leaf
  | leaf '|' leaf { $$ = operand_pair(p, @$, $1, $3); }
  | '!' name { $$ = operand_not(p, @2, operand_name(p, @2, $2)); }
  | name '+' expr { $$ = operand_sum(p, @1, $1, $3); }
  | name '-' expr { number_integer(p, @3, $3); $$ = operand_sum(p, @1, $1, negative($3)); }
  | name '[' expr ']' { $$ = operand_element(p, @1, $1, $3); }
  | expr { $$ = operand_number(p, $1); }
  | '{' operands '}' { $$ = operand_of(p, PTX_OP_VECTOR, &$2); }
  | address;

leaf: name { $$ = operand_name(p, @1, $1); }
  | SINK { $$ = operand_of(p, PTX_OP_SINK, &(Operands){ 0 }); };

address: '[' address_part ']' { $$ = $2; }
  | '[' address_part ',' address_parts ']' {
        Operands parts = { 0 };
        operands_add(p, &parts, $2);
        for (int i = 0; i < $4.count; i++) operands_add(p, &parts, &$4.items[i]);
        $$ = operand_of(p, PTX_OP_LIST, &parts);
    };

address_parts: operand { $$ = (Operands){ 0 }; operands_add(p, &$$, $1); }
  | address_parts ',' operand { $$ = $1; operands_add(p, &$$, $3); };

address_part: name { $$ = operand_address(p, @1, operand_name(p, @1, $1), (Number){ 0 }); }
  | name '+' expr { $$ = operand_address(p, @1, operand_name(p, @1, $1), $3); }
  | name '-' expr {
        number_integer(p, @3, $3);
        $$ = operand_address(p, @1, operand_name(p, @1, $1), negative($3));
    }
  | expr { $$ = operand_address(p, @1, operand_number(p, $1), (Number){ 0 }); };

call_operands: call_operand { $$ = (Operands){ 0 }; operands_add(p, &$$, $1); }
  | call_operands ',' call_operand { $$ = $1; operands_add(p, &$$, $3); };

call_operand: name { $$ = operand_name(p, @1, $1); }
  | '(' opt_call_list ')' { $$ = operand_of(p, PTX_OP_LIST, &$2); };

opt_call_list: %empty { $$ = (Operands){ 0 }; } | operands;

/* ---- constant expressions */

expr: INTEGER | FLOAT
  | '(' expr ')' { $$ = $2; }
  | '(' DOTWORD ')' expr %prec UNARY { $$ = number_cast(p, @2, $2, $4); }
  | '-' expr %prec UNARY { $$ = number_unary(p, @1, '-', $2); }
  | '+' expr %prec UNARY { $$ = $2; }
  | '~' expr %prec UNARY { $$ = number_unary(p, @1, '~', $2); }
  | '!' expr %prec UNARY { $$ = number_unary(p, @1, '!', $2); }
  | expr '+' expr { $$ = number_binary(p, @2, '+', $1, $3); }
  | expr '-' expr { $$ = number_binary(p, @2, '-', $1, $3); }
  | expr '*' expr { $$ = number_binary(p, @2, '*', $1, $3); }
  | expr '/' expr { $$ = number_binary(p, @2, '/', $1, $3); }
  | expr '%' expr { $$ = number_binary(p, @2, '%', $1, $3); }
  | expr '&' expr { $$ = number_binary(p, @2, '&', $1, $3); }
  | expr '|' expr { $$ = number_binary(p, @2, '|', $1, $3); }
  | expr '^' expr { $$ = number_binary(p, @2, '^', $1, $3); }
  | expr '<' expr { $$ = number_binary(p, @2, '<', $1, $3); }
  | expr '>' expr { $$ = number_binary(p, @2, '>', $1, $3); }
  | expr SHIFT_LEFT expr { $$ = number_binary(p, @2, SHIFT_LEFT, $1, $3); }
  | expr SHIFT_RIGHT expr { $$ = number_binary(p, @2, SHIFT_RIGHT, $1, $3); }
  | expr LESS_EQUAL expr { $$ = number_binary(p, @2, LESS_EQUAL, $1, $3); }
  | expr GREATER_EQUAL expr { $$ = number_binary(p, @2, GREATER_EQUAL, $1, $3); }
  | expr EQUAL expr { $$ = number_binary(p, @2, EQUAL, $1, $3); }
  | expr NOT_EQUAL expr { $$ = number_binary(p, @2, NOT_EQUAL, $1, $3); }
  | expr AND_AND expr { $$ = number_binary(p, @2, AND_AND, $1, $3); }
  | expr OR_OR expr { $$ = number_binary(p, @2, OR_OR, $1, $3); }
  | expr '?' expr ':' expr { $$ = number_integer(p, @1, $1) ? $3 : $5; };

%%

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p) {
    enum { MOST = 5 };
    yysymbol_kind_t expected[MOST];
    int count = yypcontext_expected_tokens(context, expected, MOST); /* 0: more than fit */
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = parser_print(p, "%s%s%s", list, i == 0 ? ", expected " : i == count - 1 ? " or " : ", ",
                            yysymbol_name(expected[i]));
    const Place *place = yypcontext_location(context);
    int length = (int)(place->end - place->begin);
    if (length > 60) length = 60;
    if (length == 0) parser_fail(p, *place, "the text ends too early%s", list);
    parser_fail(p, *place, "'%.*s' cannot stand here%s", length, p->text + place->begin, list);
}

/* Only where the parser's stack is full. */
static void ptx_yyerror(const Place *place, Parser *p, const char *message) {
    (void)message;
    parser_fail(p, *place, "nested too deep");
}
