/* places.c: files and their bytes, of places in text; and diagnostics, which are little more. */
#include "compiler/analyze/analysis.h"

#include "base/text.h"

static const amp_span nowhere = {.file = -1};

const char *analysis_copy(Analysis *x, const char *text) { return text ? arena_strdup(&x->arena, text) : NULL; }

int analysis_file(Analysis *x, const Source *source) {
    for (int i = 0; i < x->files.len; i++)
        if (x->files.data[i].session_text == source->text) return i;
    AnalysedFile file = {.session_text = source->text};
    vec_push(&x->arena, &file.lines, 0);
    for (size_t i = 0; i < source->len; i++)
        if (source->text[i] == '\n') vec_push(&x->arena, &file.lines, (uint32_t)i + 1);
    amp_source_text text = {analysis_copy(x, source->name), arena_strndup(&x->arena, source->text, source->len),
                            source->len};
    vec_push(&x->arena, &x->files, file);
    vec_push(&x->arena, &x->texts, text);
    return x->files.len - 1;
}

amp_span analysis_span(Analysis *x, Loc loc) {
    return loc.source ? (amp_span){analysis_file(x, loc.source), loc.begin, loc.end} : nowhere;
}

/* Files are opened by paths that end in the name. */
static int find_file(const Analysis *x, const char *name) {
    const size_t length = strlen(name);
    for (int i = 0; i < x->texts.len; i++) {
        const char *path = x->texts.data[i].name;
        const size_t whole = strlen(path);
        if (whole < length || strcmp(path + whole - length, name) != 0) continue;
        if (whole == length || path[whole - length - 1] == '/') return i;
    }
    return -1;
}

/* Columns count characters. */
static uint32_t column_begin(const Analysis *x, int file, Pos pos) {
    const amp_source_text *text = &x->texts.data[file];
    size_t at = x->files.data[file].lines.data[pos.line - 1];
    for (int i = 1; i < pos.column && at < text->size && text->text[at] != '\n'; i++)
        at += utf8_char_len(text->text + at, text->size - at);
    return (uint32_t)at;
}

amp_span analysis_word(const Analysis *x, Pos pos) {
    const int file = pos.file ? find_file(x, pos.file) : -1;
    if (file < 0 || pos.line < 1 || pos.line > x->files.data[file].lines.len) return nowhere;
    const uint32_t begin = column_begin(x, file, pos);
    const Source from_there = {NULL, x->texts.data[file].text + begin, x->texts.data[file].size - begin};
    const Loc word = loc_at(&from_there, 1, 1);
    return (amp_span){file, begin + word.begin, begin + word.end};
}

void analysis_tell_diagnostic(Analysis *x, const Diag *d) {
    static const amp_severity severities[] = {
        [DIAG_ERROR] = AMP_SEVERITY_ERROR, [DIAG_WARNING] = AMP_SEVERITY_WARNING, [DIAG_NOTE] = AMP_SEVERITY_NOTE};
    amp_diagnostic_note *notes = arena_array(&x->arena, amp_diagnostic_note, d->notes.len + 1);
    for (int i = 0; i < d->notes.len; i++)
        notes[i] =
            (amp_diagnostic_note){analysis_span(x, d->notes.data[i].loc), analysis_copy(x, d->notes.data[i].text)};
    amp_diagnostic told = {severities[d->severity], analysis_span(x, d->loc), analysis_copy(x, d->text), notes,
                           (size_t)d->notes.len};
    vec_push(&x->arena, &x->diagnostics, told);
}
