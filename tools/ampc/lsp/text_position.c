/* text_position.c: see documents.h. */
#include "tools/ampc/lsp/documents.h"

#include "base/text.h"

LinedText lined_text(Arena *a, const char *text, size_t size) {
    LinedText t = {.text = text, .size = size};
    vec_push(a, &t.lines, 0);
    for (const char *at = text; (at = memchr(at, '\n', size - (size_t)(at - text)));)
        vec_push(a, &t.lines, (uint32_t)(++at - text));
    return t;
}

/* Bytes of the character, 1 for a damaged one, and how many units it counts. */
static size_t step(const LinedText *t, size_t at, PositionEncoding encoding, int *units) {
    const size_t bytes = utf8_char_len(t->text + at, t->size - at);
    *units = encoding == POSITION_UTF8 ? (int)(bytes ? bytes : 1) : bytes == 4 ? 2 : 1;
    return bytes ? bytes : 1;
}

static int line_of(const LinedText *t, size_t offset) {
    int low = 0, high = t->lines.len;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (t->lines.data[middle] <= offset) low = middle;
        else high = middle;
    }
    return low;
}

Position position_of(const LinedText *t, size_t offset, PositionEncoding encoding) {
    Position p = {.line = line_of(t, offset)};
    int units;
    for (size_t at = t->lines.data[p.line]; at < offset && at < t->size; p.character += units)
        at += step(t, at, encoding, &units);
    return p;
}

size_t position_offset(const LinedText *t, Position at, PositionEncoding encoding) {
    if (at.line < 0) return 0;
    if (at.line >= t->lines.len) return t->size;
    size_t offset = t->lines.data[at.line];
    for (int character = 0, units; character < at.character; character += units) {
        if (offset >= t->size || t->text[offset] == '\n' || !strncmp(t->text + offset, "\r\n", 2)) break;
        offset += step(t, offset, encoding, &units);
    }
    return offset;
}

/* ---- shifts ------------------------------------------------------------------------------------------------------ */

TextShift text_shift(const char *from, size_t from_size, const char *to, size_t to_size) {
    const size_t least = from_size < to_size ? from_size : to_size;
    TextShift s = {.from_size = from_size, .to_size = to_size};
    while (s.before < least && from[s.before] == to[s.before]) s.before++;
    while (s.after < least - s.before && from[from_size - s.after - 1] == to[to_size - s.after - 1]) s.after++;
    return s;
}

bool text_shift_move(const TextShift *s, size_t offset, size_t *out) {
    *out = offset <= s->before ? offset : offset - s->from_size + s->to_size;
    return offset <= s->before || offset + s->after >= s->from_size;
}

TextShift text_shift_reverse(const TextShift *s) { return (TextShift){s->before, s->after, s->to_size, s->from_size}; }
