/* utf8.h: walking over UTF-8 text that may be damaged. */
#ifndef AMP_BASE_UTF8_H
#define AMP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
