/* reader.h: tokens of the text form, and the small steps that read.c and read_func.c are made of.
 *
 * Recursive descent by hand, not flex and bison: the form is a list of lines that each begin with their keyword,
 * nothing nests but a
 * kernel in a function, and what counts as a word depends on the place ('-' and '/' belong to file names and paths,
 * not to dims).
 *
 * The first error ends the reading: every token after it is TOKEN_END, so that all loops stop by themselves.
 */
#ifndef AMP_IR_READER_H
#define AMP_IR_READER_H

#include "ir/words.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,   /* fc1.weight */
    TOKEN_STRING, /* "..." with escapes */
    TOKEN_NUMBER, /* -12, 1.0e-08, -inf */
    TOKEN_VALUE,  /* %x.h, %"fc1.weight/m" */
    TOKEN_PUNCT   /* one character */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Loc loc;
    const char *text; /* escapes resolved, without quotes and '%' */
} Token;

typedef struct Reader {
    Arena *a;
    Diags *diags;
    const Source *source;
    uint32_t at; /* after |token| */
    Token token;
    bool failed;
    Module *m;
    Table states; /* names to 1-based indexes into m->states */
    Table funcs;  /* names */
} Reader;

/* ---- tokens (reader.c) ------------------------------------------------------------------------------------------- */

void reader_start(Reader *r, Arena *a, Diags *d, const Source *source);
void reader_next(Reader *r);
void reader_fail(Reader *r, Loc loc, const char *fmt, ...) AMP_PRINTF(3, 4);
/* "expected WHAT, found ..." at the token */
void reader_expected(Reader *r, const char *what);

/* The token is this character / this unquoted word: then take it. */
bool reader_take(Reader *r, char punct);
bool reader_take_word(Reader *r, const char *word);
bool reader_at_punct(const Reader *r, char punct);
bool reader_at_word(const Reader *r, const char *word);
void reader_need(Reader *r, char punct);
void reader_need_word(Reader *r, const char *word);
/* A word or string; never NULL ("" after an error). */
const char *reader_name(Reader *r, const char *what);
/* The same, or '-' for NULL. */
const char *reader_optional_name(Reader *r, const char *what);
const char *reader_string(Reader *r, const char *what);
int64_t reader_int(Reader *r, const char *what, int64_t least, int64_t most);
double reader_float(Reader *r, const char *what);
bool reader_bool(Reader *r);
/* A name of |names|; the first after an error. */
int reader_choice(Reader *r, const char *what, const char *const *names, int count);

/* ---- parts of lines (reader.c) ----------------------------------------------------------------------------------- */

Dtype reader_dtype(Reader *r);
Dim reader_dim(Reader *r);
Shape reader_type(Reader *r, Dtype *t);
Pos reader_place(Reader *r);
Pos reader_at(Reader *r); /* "at FILE:LINE:COLUMN", or nowhere if it is absent */
Call reader_call(Reader *r);
Dims reader_dims(Reader *r);
const Numbers *reader_numbers(Reader *r);                             /* "[0.5, 2.0]" */
Reason *reader_because(Reader *r);                                    /* "because {...}", or NULL if it is absent */
void reader_origin(Reader *r, const char **path, const char **layer); /* an optional "@PATH layer LAYER" */

/* ---- read_func.c: after "func" ----------------------------------------------------------------------------------- */

void reader_func(Reader *r);

#endif
