/* text_position.h: places in a text: bytes here, lines and characters for editors, which count in UTF-16 unless they
 * agreed on UTF-8. */
#ifndef AMP_TOOLS_AMPC_LSP_TEXT_POSITION_H
#define AMP_TOOLS_AMPC_LSP_TEXT_POSITION_H

#include "base/arena.h"

typedef enum PositionEncoding { POSITION_UTF16, POSITION_UTF8 } PositionEncoding;

typedef struct Position {
    int line, character; /* from 0 */
} Position;

typedef struct LinedText {
    const char *text;
    size_t size;
    VEC(uint32_t) lines; /* where each begins */
} LinedText;

/* |text| has to live as long. */
LinedText lined_text(Arena *a, const char *text, size_t size);
Position position_of(const LinedText *t, size_t offset, PositionEncoding encoding);
/* A place past the end of its line, or of the text, is that end. */
size_t position_offset(const LinedText *t, Position at, PositionEncoding encoding);

/* How offsets in one text move to another that differs from it in one stretch. */
typedef struct TextShift {
    size_t before, after; /* bytes that are equal at both ends */
    size_t from_size, to_size;
} TextShift;

TextShift text_shift(const char *from, size_t from_size, const char *to, size_t to_size);
/* False: it is in what differs. */
bool text_shift_move(const TextShift *s, size_t offset, size_t *out);
TextShift text_shift_reverse(const TextShift *s);

#endif
