/* diag.c: errors in text files, with the line itself and a caret. */
#include "base/diag.h"

#include "base/text.h"
#include "base/visible.h"

enum {
    DEFAULT_MAX_ERRORS = 20,
    EXCERPT_MAX = 160,   /* characters of a source line that are shown */
    EXCERPT_BEFORE = 60, /* of these, before the caret when the line is longer */
};

static const char *const severity_names[] = {
    [DIAG_ERROR] = "error",
    [DIAG_WARNING] = "warning",
    [DIAG_NOTE] = "note",
};

void diags_init(Diags *d, Arena *a) {
    memset(d, 0, sizeof *d);
    d->arena = a;
}

static Diag *diag_new(Diags *d, Severity severity, Loc loc, const char *fmt, va_list args) {
    Diag *diag = arena_new(d->arena, Diag);
    diag->severity = severity;
    diag->loc = loc;
    diag->text = arena_vprintf(d->arena, fmt, args);
    return diag;
}

Diag *diag_error(Diags *d, Loc loc, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Diag *diag = diag_new(d, DIAG_ERROR, loc, fmt, args);
    va_end(args);
    if (d->errors < (d->max_errors ? d->max_errors : DEFAULT_MAX_ERRORS)) vec_push(d->arena, &d->list, diag);
    d->errors++;
    return diag;
}

Diag *diag_warning(Diags *d, Loc loc, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Diag *diag = diag_new(d, DIAG_WARNING, loc, fmt, args);
    va_end(args);
    vec_push(d->arena, &d->list, diag);
    return diag;
}

static void add_note(Diags *d, Diag *to, Loc loc, const char *fmt, va_list args) {
    DiagNote note = {.loc = loc, .text = arena_vprintf(d->arena, fmt, args)};
    vec_push(d->arena, &to->notes, note);
}

void diag_note(Diags *d, Diag *to, Loc loc, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_note(d, to, loc, fmt, args);
    va_end(args);
}

void diag_help(Diags *d, Diag *to, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_note(d, to, (Loc){.source = NULL}, fmt, args);
    va_end(args);
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Bytes of the next character; a damaged byte counts as one. */
static size_t char_step(const char *s, size_t n) {
    size_t len = utf8_char_len(s, n);
    return len ? len : 1;
}

static size_t count_chars(const char *s, size_t n) {
    size_t count = 0;
    for (size_t at = 0; at < n; count++) at += char_step(s + at, n - at);
    return count;
}

/* Bytes of the first |chars| characters, or |n|. */
static size_t skip_chars(const char *s, size_t n, size_t chars) {
    size_t at = 0;
    while (at < n && chars-- > 0) at += char_step(s + at, n - at);
    return at;
}

/* The line around a location: byte offsets, without the line end. */
typedef struct Line {
    size_t begin, end;
    int number;
} Line;

static Line find_line(const Source *source, size_t offset) {
    Line line = {.number = 1};
    offset = min_size(offset, source->len);
    for (size_t i = 0; i < offset; i++) {
        if (source->text[i] != '\n') continue;
        line.number++;
        line.begin = i + 1;
    }
    const char *newline = memchr(source->text + line.begin, '\n', source->len - line.begin);
    line.end = newline ? (size_t)(newline - source->text) : source->len;
    if (line.end > line.begin && source->text[line.end - 1] == '\r') line.end--;
    return line;
}

void loc_line_column(Loc loc, int *line, int *column) {
    *line = *column = 0;
    if (!loc.source) return;
    Line found = find_line(loc.source, loc.begin);
    size_t offset = min_size(loc.begin, loc.source->len);
    *line = found.number;
    *column = (int)count_chars(loc.source->text + found.begin, offset - found.begin) + 1;
}

/* The other way round; the end of the text if there is no such place. */
static uint32_t find_offset(const char *text, int line, int column) {
    const char *at = text;
    for (int i = 1; i < line && *at; at++)
        if (*at == '\n') i++;
    for (int i = 1; i < column && *at && *at != '\n'; i++) at += char_step(at, strlen(at));
    return (uint32_t)(at - text);
}

Loc loc_at(const Source *source, int line, int column) {
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*\"";
    const uint32_t begin = find_offset(source->text, line, column);
    const uint32_t length = (uint32_t)strspn(source->text + begin, chars);
    return (Loc){source, begin, begin + (length ? length : 1)};
}

Loc loc_join(Loc a, Loc b) {
    if (!a.source || a.source != b.source) return a.source ? a : b;
    if (b.begin < a.begin) a.begin = b.begin;
    if (b.end > a.end) a.end = b.end;
    return a;
}

/* "mlp.amp:9:17: " */
static void put_place(Text *t, Loc loc) {
    if (!loc.source) return;
    int line, column;
    loc_line_column(loc, &line, &column);
    text_printf(t, "%s:%d:%d: ", loc.source->name, line, column);
}

/* What a terminal would act on, or cannot show, is shown as '?'; a tab keeps its width because the caret line repeats
 * it. */
static void put_visible(Text *t, const char *s, size_t n) {
    uint32_t code;
    for (size_t at = 0, len; at < n; at += len) {
        len = utf8_char_len(s + at, n - at);
        if (len == 0 || (s[at] != '\t' && utf8_control(s + at, n - at, &code))) {
            text_putc(t, '?');
            if (len == 0) len = 1;
        } else {
            text_write(t, s + at, len);
        }
    }
}

/* As many columns as put_visible takes. */
static void put_blank(Text *t, const char *s, size_t n) {
    for (size_t at = 0; at < n; at += char_step(s + at, n - at)) text_putc(t, s[at] == '\t' ? '\t' : ' ');
}

/* Four columns, more where the number needs them. */
static int line_number_width(int number) {
    int width = 4;
    for (number /= 10000; number > 0; number /= 10) width++;
    return width;
}

/* The line and the caret under it.  Of a long line, the part around the caret is shown; a range that goes on over
 * several lines is marked to the end of the first. */
static void put_excerpt(Text *t, Loc loc) {
    static const char dots[] = "...";
    Line line = find_line(loc.source, loc.begin);
    const char *text = loc.source->text;
    size_t caret = min_size(loc.begin, line.end), shown = line.begin;
    if (count_chars(text + line.begin, line.end - line.begin) > EXCERPT_MAX) {
        size_t before = count_chars(text + line.begin, caret - line.begin);
        if (before > EXCERPT_BEFORE)
            shown += skip_chars(text + line.begin, caret - line.begin, before - EXCERPT_BEFORE);
    }
    size_t shown_end = shown + skip_chars(text + shown, line.end - shown, EXCERPT_MAX);
    const char *lead = shown > line.begin ? dots : "", *trail = shown_end < line.end ? dots : "";
    size_t marked_end = min_size(loc.end, shown_end);
    size_t marks = marked_end > caret ? count_chars(text + caret, marked_end - caret) : 1;

    int margin = line_number_width(line.number);
    text_printf(t, "%*d |%s%s", margin, line.number, shown_end > shown ? " " : "", lead);
    put_visible(t, text + shown, shown_end - shown);
    text_printf(t, "%s\n%*s | %*s", trail, margin, "", (int)strlen(lead), "");
    put_blank(t, text + shown, caret - shown);
    text_putc(t, '^');
    while (--marks > 0) text_putc(t, '~');
    text_putc(t, '\n');
}

static void put_note(Text *t, const DiagNote *note) {
    text_puts(t, "  ");
    if (note->loc.source) put_place(t, note->loc);
    else text_puts(t, "help: ");
    text_printf(t, "%s\n", note->text);
}

void diag_format(Text *t, const Diag *diag) {
    put_place(t, diag->loc);
    text_printf(t, "%s: %s\n", severity_names[diag->severity], diag->text);
    if (diag->loc.source) put_excerpt(t, diag->loc);
    for (int i = 0; i < diag->notes.len; i++) put_note(t, &diag->notes.data[i]);
}
