/* visible.h: characters that must not be shown as they are. */
#ifndef AMP_BASE_VISIBLE_H
#define AMP_BASE_VISIBLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the character at the start of |s|, and the character, if it is a control character (C0, C1, DEL) or turns
 * the direction of the text around it: what a terminal acts on, or makes a line look like another.  0: neither. */
size_t utf8_control(const char *s, size_t n, uint32_t *code);

#ifdef __cplusplus
}
#endif

#endif
