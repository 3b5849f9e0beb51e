/* parser.h: what is known while PTX text is read: names and what they mean in the open scopes, and the module so far.
 *
 * Memory is of one arena, which the module keeps.  The first error ends the parse: parser_fail does not return. */
#ifndef FAKECUDA_PTX_PARSER_H
#define FAKECUDA_PTX_PARSER_H

#include <setjmp.h>
#include <stdarg.h>

#include "fakecuda/ptx/ptx.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct Arena {
    struct ArenaBlock *blocks;
    size_t used, size; /* of the newest block */
    jmp_buf *out_of_memory;
} Arena;

void *ptx_arena_alloc(Arena *a, size_t bytes);                   /* zeroed, aligned to 16 */
char *ptx_arena_copy(Arena *a, const char *text, size_t length); /* with a terminating zero */
void ptx_arena_free(Arena *a);
/* |items| of |count| entries with room for one more; the room doubles, so the caller keeps only the count. */
void *ptx_arena_grow(Arena *a, void *items, int count, size_t item_bytes);

/* ---- text and names ---------------------------------------------------------------------------------------------- */

typedef struct Place { /* of a token or of several in a row */
    int line, column;
    uint32_t begin, end; /* offsets in the text */
} Place;

typedef struct Name { /* one per spelling */
    const char *text;
    struct Symbol *meaning; /* in the innermost scope that declares it */
    struct Name *next;      /* of the same hash */
} Name;

typedef struct Names {
    Name *name;
    Place place;
    struct Names *next;
} Names;

typedef struct Number { /* the value of a constant expression */
    bool is_float, is_single, is_unsigned;
    uint64_t bits; /* of the float too */
} Number;

/* ---- declarations ------------------------------------------------------------------------------------------------ */

enum { MAX_DIMENSIONS = 8 };

typedef struct Specs { /* what comes before the names of a declaration */
    Place place;
    PtxSpace space;
    PtxType type;
    int vector;     /* 1, 2, 4 or 8 */
    uint64_t align; /* 0: the type's own */
    bool is_extern, is_visible, is_pointer;
} Specs;

typedef struct Dimensions {
    int count; /* 0: no array */
    uint64_t sizes[MAX_DIMENSIONS];
    bool is_open; /* [] first */
} Dimensions;

typedef struct Initializer { /* one value or a list */
    Place place;
    Number number;
    Name *of; /* the address of a variable or function, plus number */
    bool generic;
    uint64_t mask; /* 0xFF00(address): that byte of it; 0: none */
    bool is_list;
    struct Initializer *items, *last, *next;
} Initializer;

typedef struct Variable { /* grows nowhere: operands point to it until the module is finished */
    PtxVariable is;
    PtxVariable *placed; /* where it is in the finished module */
    struct Variable *next;
    Name *name;
    Place place;
    PtxSpace space; /* PTX_REG: a parameter in a register */
    int vector;
} Variable;

typedef struct Variables {
    Variable *first, *last;
    int count;
} Variables;

typedef struct ParsedFunction {
    PtxFunction is;
    Variables params, results, locals;
    struct ParsedFunction *next;
} ParsedFunction;

typedef enum SymbolKind {
    SYMBOL_REGISTER, /* index */
    SYMBOL_VECTOR,   /* .reg .v4: index of its first register, count */
    SYMBOL_VARIABLE,
    SYMBOL_FUNCTION,
    SYMBOL_LABEL,   /* index */
    SYMBOL_TARGETS, /* of .branchtargets and .calltargets: list */
    SYMBOL_PROTOTYPE
} SymbolKind;

typedef struct Symbol {
    SymbolKind kind;
    Name *name;
    int index, count;
    Variable *variable;
    ParsedFunction *function;
    const PtxOperand *list;
    struct Scope *scope;
    struct Symbol *outer; /* what the name meant before */
    struct Symbol *next;  /* of the same scope */
} Symbol;

typedef struct LabelUse { /* not resolved before its scope ends: the label may come after it */
    Name *name;
    Place place;
    PtxOperand *operand; /* NULL: the operand of an instruction, which still moves */
    int instruction, position;
    struct LabelUse *next;
} LabelUse;

typedef struct Scope {
    struct Scope *outer;
    Symbol *symbols;
    LabelUse *uses;
} Scope;

typedef struct Operands {
    PtxOperand *items;
    int count;
} Operands;

/* ---- the parser -------------------------------------------------------------------------------------------------- */

typedef struct Parser {
    Arena arena;
    jmp_buf failed;
    const char *text;
    size_t length;
    char *message;
    size_t message_size;
    void *scanner;
    Place scanned; /* the last token */
    Name **names;  /* hash table */
    int name_count, name_slots;
    Scope *scope;
    Specs specs; /* of the declaration that is read */
    PtxModule *module;
    Variables variables;
    ParsedFunction *functions, *last_function;
    int function_count;
    ParsedFunction *function; /* that is read; NULL: outside */
    int loc_line;
    const char *origin;
    struct {
        Place place;
        const char *full;
        bool is_branch, has_addresses;
        int guard;
        bool guard_negated;
    } instruction; /* that is read */
} Parser;

_Noreturn void parser_fail(Parser *p, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
Name *parser_name(Parser *p, const char *text, size_t length);
const char *parser_print(Parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- declare.c --------------------------------------------------------------------------------------------------- */

Number number_unary(Parser *p, Place place, char op, Number a);
Number number_binary(Parser *p, Place place, int op, Number a,
                     Number b); /* op: a character, or a token of the grammar */
Number number_cast(Parser *p, Place place, Name *type, Number a);
int64_t number_integer(Parser *p, Place place, Number a);
uint64_t number_size(Parser *p, Place place, Number a); /* 0..2^40 */

void specs_begin(Parser *p, Place place);
void specs_word(Parser *p, Place place, Name *word);
void specs_align(Parser *p, Place place, Number align);
void declare(Parser *p, Place place, Name *name, const Dimensions *dimensions, Initializer *init);
void declare_range(Parser *p, Place place, Name *prefix, Number count); /* %r<5> */
Variable *declare_parameter(Parser *p, Place place, Name *name, const Dimensions *dimensions);
void variables_add(Variables *list, Variable *v);

Initializer *initializer_number(Parser *p, Place place, Number number);
Initializer *initializer_address(Parser *p, Place place, Name *of, Number offset);
Initializer *initializer_add(Parser *p, Initializer *list, Initializer *item); /* list NULL: a new one */
void initialize(Parser *p, Variable *v, const Dimensions *dimensions, const Initializer *init);

/* ---- function.c -------------------------------------------------------------------------------------------------- */

void function_begin(Parser *p, Place place, bool is_entry);
void function_named(Parser *p, Place place, Name *name, Variables results);
void function_parameters(Parser *p, Variables params);
void function_directive(Parser *p, Place place, Name *word, const Number *numbers, int count);
void function_end(Parser *p, Place place, bool has_body);

PtxOperand *operand_number(Parser *p, Number number);
PtxOperand *operand_name(Parser *p, Place place, Name *name);
PtxOperand *operand_sum(Parser *p, Place place, Name *name, Number offset);    /* of a variable */
PtxOperand *operand_element(Parser *p, Place place, Name *name, Number index); /* a[3] */
PtxOperand *operand_of(Parser *p, PtxOperandKind kind, const Operands *items);
PtxOperand *operand_pair(Parser *p, Place place, PtxOperand *first, PtxOperand *second);
PtxOperand *operand_not(Parser *p, Place place, PtxOperand *predicate);
PtxOperand *operand_address(Parser *p, Place place, PtxOperand *base, Number offset);
void operands_add(Parser *p, Operands *list, const PtxOperand *operand);

void instruction_guard(Parser *p, Place place, Name *predicate, bool negated);
void instruction_opcode(Parser *p, Place place, const char *full);
void instruction_add(Parser *p, Place end, const Operands *operands);
void instruction_targets(Parser *p, Place place, Name *label, const Names *names, bool are_labels);

/* ---- module.c ---------------------------------------------------------------------------------------------------- */

void scope_open(Parser *p);
void scope_close(Parser *p); /* resolves labels */
Symbol *scope_declare(Parser *p, SymbolKind kind, Name *name, Place place);
void scope_label(Parser *p, Name *name, Place place);
void scope_use_label(Parser *p, Name *name, Place place, PtxOperand *operand, int instruction, int position);

void module_version(Parser *p, Place place, Number version);
void module_target(Parser *p, Place place, const Names *words);
void module_finish(Parser *p, Place end);

PtxType type_named(const char *word); /* "f32"; PTX_NONE: no type */
int special_named(const char *word);  /* "%tid.x"; -1: none */

/* ---- made by flex and bison -------------------------------------------------------------------------------------- */

/* scanner.l */
void scanner_begin(Parser *p);
/* grammar.y: 0: parsed */
int ptx_yyparse(Parser *p);

#endif
