/* outline.h: what an editor asks of a model's text: which names it declares, and what each name in it means.
 *
 * Names are found in the text alone: code that no call runs has them too, and so has as much of a text with errors as
 * the parser can read.
 */
#ifndef AMP_FRONTEND_OUTLINE_H
#define AMP_FRONTEND_OUTLINE_H

#include "frontend/frontend.h"

typedef enum SymbolKind {
    SYMBOL_FILE,
    SYMBOL_CONST,
    SYMBOL_BLOCK,
    SYMBOL_MODEL,
    SYMBOL_TRAIN,
    SYMBOL_PRECISION,
    SYMBOL_INPUT,     /* of a model or of train */
    SYMBOL_TENSOR,    /* an argument of a block before ';' */
    SYMBOL_SETTING,   /* one after it */
    SYMBOL_VALUE,     /* a = ... */
    SYMBOL_PARAMETER, /* param */
    SYMBOL_STATE,
    SYMBOL_INDEX,  /* of repeat */
    SYMBOL_METRIC, /* and a loss that has a name */
    SYMBOL_OP,
    SYMBOL_FUNCTION /* an initialiser, optimizer, schedule, loss scale or type of states */
} SymbolKind;

typedef struct SymbolArg {   /* of a block, an op or a function */
    const char *name, *type; /* "int"; NULL: a tensor */
    const char *initial;     /* as written; "" of an op's, which are not told; NULL: it has to be given */
} SymbolArg;

typedef struct Symbol {
    SymbolKind kind;
    const char *name;
    Loc loc;           /* of the name; nowhere: it is built in */
    Loc whole;         /* of the declaration, a block's body included */
    int parent;        /* the declaration that it is in; -1: none */
    const char *about; /* the comment above a block, the formula of an op; NULL */
    VEC(SymbolArg) args;
    int least, most; /* tensors that an op takes */
} Symbol;

typedef struct Reference {
    Loc loc; /* of the name */
    int symbol;
    Loc whole; /* of the call whose callee it is; else |loc| */
} Reference;

typedef struct Outline {
    VEC(const Source *) sources; /* main, what it includes, prelude.amp */
    VEC(Symbol) symbols;
    VEC(Reference) references;
} Outline;

/* |options|: how files are found.  Never NULL; what cannot be read is not there. */
Outline *frontend_outline(Arena *a, const Source *main, const FrontendOptions *options);

#endif
