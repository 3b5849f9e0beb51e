/* tokens.h: what lexer.l and parser.y need of parse.c, which is between them: values of tokens, words that are
 * keywords only where their statement can begin, and newlines that count only outside ( ) and [ ]. */
#ifndef AMP_FRONTEND_TOKENS_H
#define AMP_FRONTEND_TOKENS_H

#include "frontend/parse.h"
#include "frontend/parser.h" /* generated: AMP_YYSTYPE, AMP_YYLTYPE, the token numbers */

/* ---- for lexer.l: each returns the token's number --------------------------------------------------------- */

void token_place(Parse *p, Loc *loc, uint32_t length);
int token_word(Parse *p, AMP_YYSTYPE *value, const Loc *loc);
int token_int(Parse *p, AMP_YYSTYPE *value, const Loc *loc);
int token_float(Parse *p, AMP_YYSTYPE *value, const Loc *loc);
int token_string(Parse *p, AMP_YYSTYPE *value, const Loc *loc);
/* Reports |message| and lets the parser recover without a second one. */
int token_bad(Parse *p, const Loc *loc, const char *message);

/* ---- in lexer.l ------------------------------------------------------------------------------------------- */

int amp_scan_lex(AMP_YYSTYPE *value, AMP_YYLTYPE *loc, void *scanner);
void amp_scan_begin(Parse *p);

/* ---- for parser.y ----------------------------------------------------------------------------------------- */

int amp_yylex(AMP_YYSTYPE *value, AMP_YYLTYPE *loc, Parse *p);

#endif
