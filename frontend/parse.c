/* parse.c: checks that a source is text, and runs the parser over it. */
#include "frontend/tokens.h"

#include "base/utf8.h"

enum { MAX_SOURCE_BYTES = 4 << 20 };

/* Text is UTF-8 without NUL bytes; the first byte that is not is reported. */
static bool check_bytes(Diags *d, const Source *source) {
    if (source->len > MAX_SOURCE_BYTES) {
        diag_error(d, (Loc){source, 0, 0}, "the file has %zu bytes; a model may have at most %d", source->len,
                   MAX_SOURCE_BYTES);
        return false;
    }
    for (size_t at = 0, n; at < source->len; at += n) {
        n = utf8_char_len(source->text + at, source->len - at);
        if (n && source->text[at]) continue;
        Loc loc = {source, (uint32_t)at, (uint32_t)at + 1};
        if (n) diag_error(d, loc, "a NUL byte; the file is not text");
        else diag_error(d, loc, "byte 0x%02x is not UTF-8; save the file as UTF-8", (unsigned char)source->text[at]);
        return false;
    }
    return true;
}

void parse_too_deep(Parse *p, Loc loc) {
    if (!p->too_deep)
        diag_help(p->diags, diag_error(p->diags, loc, "nested more than %d deep", MAX_NESTING), "bind parts to names");
    p->too_deep = p->lost = true;
}

/* An open bracket on an earlier line is what is wrong more often than the word that no longer fits. */
static void note_open_bracket(Parse *p, Diag *diag, Loc loc) {
    const struct Bracket *b = p->unclosed.open ? &p->unclosed : tokens_open_bracket(p);
    if (!b || !(b->open != '{' || loc.begin == p->source->len)) return;
    if (memchr(p->source->text + b->loc.begin, '\n', loc.begin - b->loc.begin))
        diag_note(p->diags, diag, b->loc, "this '%c' is not closed", b->open);
}

Diag *parse_syntax_error(Parse *p, Loc loc, const char *unexpected, const char *expected) {
    Diag *diag = NULL;
    if (!p->lost) {
        diag = expected ? diag_error(p->diags, loc, "unexpected %s, expected %s", unexpected, expected)
                        : diag_error(p->diags, loc, "unexpected %s", unexpected);
        note_open_bracket(p, diag, loc);
        p->unclosed = (struct Bracket){0};
    }
    tokens_recover(p);
    return diag;
}

File *frontend_parse(Arena *a, Diags *d, const Source *source) {
    if (!check_bytes(d, source)) return NULL;
    Parse p = {.arena = a, .diags = d, .source = source, .file = arena_new(a, File)};
    p.file->source = source;
    int errors = d->errors;
    amp_scan_begin(&p);
    amp_yyparse(&p);
    return d->errors == errors ? p.file : NULL;
}
