/* parse.h: one source file to its raw syntax tree: checked bytes -> lexer.l -> parse.c -> parser.y -> File. */
#ifndef AMP_FRONTEND_PARSE_H
#define AMP_FRONTEND_PARSE_H

#include "frontend/tree.h"

/* The state between the source and the parser while a file is parsed. */
typedef struct Parse {
    Arena *arena;
    Diags *diags;
    const Source *source;
    File *file;
    void *scanner; /* flex */
    uint32_t at;   /* bytes that the lexer has read */
    VEC(struct Bracket {
        char open;
        Loc loc;
    })
    brackets;                     /* open ones, innermost last */
    struct Bracket unclosed;      /* left open inside the bracket that was closed last; open is 0 if none */
    struct PendingToken *pending; /* one token that was read ahead */
    int previous;                 /* the token handed out last */
    bool recovering;              /* skipping to the end of the line after a syntax error */
    bool lost;                    /* braces no longer match: silent until the next declaration */
    bool too_deep;                /* reported: nothing more is read */
} Parse;

/* NULL where the file has errors, which are in |d|. */
File *frontend_parse(Arena *a, Diags *d, const Source *source);
/* With errors, the declarations and statements that have none.  NULL: it is no text. */
File *frontend_parse_part(Arena *a, Diags *d, const Source *source);

/* ---- parse.c ---------------------------------------------------------------------------------------------- */

/* Reports that nesting is too deep, once; after that the parser sees the end of the file. */
void parse_too_deep(Parse *p, Loc loc);
/* A syntax error at a token; NULL if it follows from an earlier one.  |expected| may be NULL. */
Diag *parse_syntax_error(Parse *p, Loc loc, const char *unexpected, const char *expected);

#endif
