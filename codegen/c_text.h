/* c_text.h: strings inside generated C. */
#ifndef AMP_CODEGEN_C_TEXT_H
#define AMP_CODEGEN_C_TEXT_H

#include "base/text.h"

/* A string literal, or 0 for NULL. */
void c_string(Text *t, const char *s);
/* One literal per line of text; `""` for nothing. */
void c_long_string(Text *t, const char *s);
/* Inside a comment: nothing in |s| ends it or breaks the line. */
void c_comment(Text *t, const char *s);
/* An identifier made of |s|. */
void c_identifier(Text *t, const char *s);

#endif
