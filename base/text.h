/* text.h: building text in an arena; doubles as decimal text; UTF-8. */
#ifndef AMP_BASE_TEXT_H
#define AMP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
/* Paths of what is repeated differ in numbers: in parts that are one, "h.11.mlp", and after the last underscore of a
 * part, "lstm.mul_3".  The same text for all of them: the pattern is a glob that matches the path, "h.*.mlp" and
 * "lstm.mul*"; the key is equal for "lstm.mul" too, whose pattern is itself. */
const char *text_path_pattern(Arena *a, const char *path);
const char *text_path_key(Arena *a, const char *path);
/* The pattern of what differs in whole parts alone, as layers do: "h.*.add_1" of "h.11.add_1". */
const char *text_path_layers(Arena *a, const char *path);
/* The candidate that is nearest to |word| by edit distance, or NULL when none is near: for "did you mean". */
const char *text_nearest(const char *word, const char *const *candidates, int count);

/* ---- decimal text of doubles, the same in every locale (printf and strtod follow the process's) ------------------ */

enum {
    DECIMAL_MAX = 32,      /* bytes that decimal_format writes at most, NUL included */
    DECIMAL_LONGEST = 1000 /* characters that decimal_parse reads at most */
};

/* The shortest decimal that reads back to the same bits, always with a dot; below 1e-4 and from 1e16 on with an
 * exponent: 0.001, 1.0, 65536.0, 1.0e-08, inf, -inf, nan.  Writes into |out| and returns it. */
char *decimal_format(double v, char out[DECIMAL_MAX]);

/* Reads all |n| bytes as [-+] digits [. digits] [e [-+] digits], correctly rounded; a digit on one side of the dot is
 * enough. False for anything else, and for more than DECIMAL_LONGEST characters.  A value too large gives infinity, one
 * too small zero, as strtod does. */
bool decimal_parse(const char *s, size_t n, double *out);

/* ---- walking over UTF-8 text that may be damaged ----------------------------------------------------------------- */

/* Bytes of the well-formed character at the start of |s| (1 to 4), or 0 where the bytes are not one: cut off, overlong,
 * a surrogate, above U+10FFFF (the table of The Unicode Standard 15.0, section 3.9, D92). */
size_t utf8_char_len(const char *s, size_t n);

/* Writes |code| (a Unicode scalar value) as 1 to 4 bytes and returns how many. */
size_t utf8_encode(uint32_t code, char out[4]);

/* The largest length <= |limit| at which |s| can be cut without splitting a character. */
size_t utf8_cut(const char *s, size_t limit);

#ifdef __cplusplus
}
#endif

#endif
