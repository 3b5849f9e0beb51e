/* text.h: building text in an arena. */
#ifndef AMP_BASE_TEXT_H
#define AMP_BASE_TEXT_H

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Text {
    Arena *arena;
    char *data; /* always NUL-terminated once something was written; "" before (text_str) */
    size_t len, cap;
    Arena *own; /* where a long text is stored: freed when it outgrows that; NULL: in |arena| */
} Text;

void text_init(Text *t, Arena *a);
void text_putc(Text *t, char c);
void text_puts(Text *t, const char *s);
void text_write(Text *t, const char *s, size_t n);
void text_printf(Text *t, const char *fmt, ...) AMP_PRINTF(2, 3);
void text_vprintf(Text *t, const char *fmt, va_list args);
void text_pad_to(Text *t, int column); /* spaces up to |column| of the current line, at least one */
const char *text_str(const Text *t);

/* A double as the shortest decimal that reads back to the same bits, always with a dot, "inf" or "nan":
 * 0.001, 1.0, 65536.0, 1.0e-08, inf. */
void text_put_double(Text *t, double v);
/* A quoted string with \" \\ \n \t and \xNN escapes. */
void text_put_quoted(Text *t, const char *s);

/* '*' matches any run of characters, dots included; everything else itself. */
bool text_glob_match(const char *glob, const char *s);
/* The candidate that is nearest to |word| by edit distance, or NULL when none is near: for "did you mean". */
const char *text_nearest(const char *word, const char *const *candidates, int count);

#ifdef __cplusplus
}
#endif

#endif
