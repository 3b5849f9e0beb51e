/* diag_at.c: see diag_at.h. */
#include "passes/common/diag_at.h"

#include "base/utf8.h"

/* Byte offset of a line and column (counted in characters from 1); the end of the text if there is no such place. */
static uint32_t find_offset(const char *text, Pos pos) {
    const char *at = text;
    for (int line = 1; line < pos.line && *at; at++)
        if (*at == '\n') line++;
    for (int column = 1; column < pos.column && *at && *at != '\n'; column++) {
        size_t len = utf8_char_len(at, strlen(at));
        at += len ? len : 1;
    }
    return (uint32_t)(at - text);
}

/* The length of the name, path or number there, to be underlined. */
static uint32_t word_length(const char *at) {
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*\"";
    uint32_t n = (uint32_t)strspn(at, chars);
    return n ? n : 1;
}

static Loc loc_of(const Module *m, Pos pos) {
    if (!pos.line || !pos.file || !m->source_text || !m->source_name || strcmp(pos.file, m->source_name))
        return (Loc){0};
    Source *source = arena_new(m->arena, Source);
    *source = (Source){m->source_path ? m->source_path : m->source_name, m->source_text, strlen(m->source_text)};
    uint32_t begin = find_offset(m->source_text, pos);
    return (Loc){source, begin, begin + word_length(m->source_text + begin)};
}

Diag *place_error(PassContext *c, Pos pos, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(c->m->arena, fmt, args);
    va_end(args);
    Loc loc = loc_of(c->m, pos);
    if (loc.source || !pos.line || !pos.file) return diag_error(c->diags, loc, "%s", what);
    return diag_error(c->diags, loc, "%s:%d:%d: %s", pos.file, pos.line, pos.column, what);
}
