/* csv_text.c: see csv_table.h. */
#include "tools/amprun/data/csv_table.h"

#include <inttypes.h>

#include "base/text.h"
#include "tools/amprun/amprun.h"

/* ---- the whole text ---------------------------------------------------------------------------------------------- */

/* What a spreadsheet saves when it is asked for "Unicode text", or what somebody has compressed. */
static int refuse_bytes(const char *path, const char *text, size_t size, size_t at, int64_t line) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (size > 1 && (bytes[0] + bytes[1] == 0xff + 0xfe) && (bytes[0] == 0xff || bytes[0] == 0xfe))
        return report_text("%s: is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)", path);
    if (size > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return report_text("%s: is compressed; unpack it first (gunzip)", path);
    return report_text("%s:%" PRId64 ": byte 0x%02x is no UTF-8 text; convert the file (iconv -f LATIN1 -t UTF-8)",
                       path, line, bytes[at]);
}

static int check_text(const char *path, const char *text, size_t size) {
    int64_t line = 1;
    for (size_t at = 0, n; at < size; at += n) {
        n = utf8_char_len(text + at, size - at);
        if (!n || !text[at]) return refuse_bytes(path, text, size, at, line);
        line += text[at] == '\n';
    }
    return 0;
}

int csv_open(CsvReader *r, Arena *arena, const char *path, const char *text, size_t size, char delimiter) {
    *r = (CsvReader){
        .arena = arena, .path = path, .at = text, .end = text + size, .delimiter = delimiter, .next_line = 1};
    if (check_text(path, text, size)) return 1;
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) r->at += 3;
    return 0;
}

char csv_guess_delimiter(const char *text, size_t size) {
    static const char choices[] = ",;\t|";
    int count[sizeof choices] = {0}, best = 0;
    bool quoted = false;
    for (size_t i = 0; i < size && (quoted || (text[i] != '\n' && text[i] != '\r')); i++) {
        const char *choice = text[i] ? strchr(choices, text[i]) : NULL;
        if (text[i] == '"') quoted = !quoted;
        else if (!quoted && choice) count[choice - choices]++;
    }
    for (int i = 1; choices[i]; i++)
        if (count[i] > count[best]) best = i;
    return choices[best];
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int refuse(const CsvReader *r, const char *what) {
    report_text("%s:%" PRId64 ": cell %d: %s", r->path, r->line, r->cells.len + 1, what);
    return -1;
}

static bool ends_cell(const CsvReader *r, const char *at) {
    return at == r->end || *at == r->delimiter || *at == '\n' || (*at == '\r' && at + 1 < r->end && at[1] == '\n');
}

/* From behind the opening quote. */
static int take_quoted(CsvReader *r) {
    Text cell;
    text_init(&cell, r->arena);
    for (;; r->at++) {
        if (r->at == r->end) return refuse(r, "its quote is not closed");
        if (*r->at == '\n') r->next_line++;
        if (*r->at != '"') text_putc(&cell, *r->at);
        else if (r->at + 1 < r->end && r->at[1] == '"') text_putc(&cell, *r->at++);
        else break;
    }
    r->at++;
    while (r->at < r->end && *r->at == ' ') r->at++;
    if (!ends_cell(r, r->at))
        return refuse(r, "something follows its closing quote; a quote within quotes is written twice (\"\")");
    vec_push(r->arena, &r->cells, ((CsvCell){arena_strdup(r->arena, text_str(&cell)), true}));
    return 0;
}

static int take_plain(CsvReader *r, const char *first) {
    while (!ends_cell(r, r->at)) {
        if (*r->at == '"') return refuse(r, "a quote in a cell without quotes; write \"a \"\"quoted\"\" word\"");
        if (*r->at == '\r') return refuse(r, "a carriage return in a cell without quotes");
        r->at++;
    }
    const char *last = r->at;
    while (last > first && (last[-1] == ' ' || (last[-1] == '\t' && r->delimiter != '\t'))) last--;
    vec_push(r->arena, &r->cells, ((CsvCell){arena_strndup(r->arena, first, (size_t)(last - first)), false}));
    return 0;
}

static int take_cell(CsvReader *r) {
    while (r->at < r->end && (*r->at == ' ' || (*r->at == '\t' && r->delimiter != '\t'))) r->at++;
    if (r->at == r->end || *r->at != '"') return take_plain(r, r->at);
    r->at++;
    return take_quoted(r);
}

/* Whether the record goes on. */
static bool pass_delimiter(CsvReader *r) {
    if (r->at < r->end && *r->at == r->delimiter) return r->at++, true;
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end) r->at++;
    r->next_line++;
    return false;
}

static bool is_empty(const CsvReader *r) {
    return r->cells.len == 1 && !r->cells.data[0].quoted && !*r->cells.data[0].text;
}

int csv_next(CsvReader *r) {
    do {
        if (r->at == r->end) return 0;
        arena_reset(r->arena);
        memset(&r->cells, 0, sizeof r->cells);
        r->line = r->next_line;
        do
            if (take_cell(r)) return -1;
        while (pass_delimiter(r));
    } while (is_empty(r));
    return 1;
}
