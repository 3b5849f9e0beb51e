/* read_token.c: the text form's tokens. */
#include "ir/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/decimal.h"

enum { LONGEST_SOURCE = 1 << 28 }; /* offsets are 32 bits */

/* ---- errors ------------------------------------------------------------------------------------------------------ */

void reader_fail(Reader *r, Loc loc, const char *fmt, ...) {
    if (r->failed) return;
    va_list args;
    va_start(args, fmt);
    diag_error(r->diags, loc, "%s", arena_vprintf(r->a, fmt, args));
    va_end(args);
    r->failed = true;
    r->token = (Token){.kind = TOKEN_END, .loc = loc, .text = ""};
}

void reader_expected(Reader *r, const char *what) {
    const Token *t = &r->token;
    if (t->kind == TOKEN_END) reader_fail(r, t->loc, "expected %s, found the end of the text", what);
    else
        reader_fail(r, t->loc, "expected %s, found '%.*s'", what, (int)(t->loc.end - t->loc.begin),
                    r->source->text + t->loc.begin);
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* '\0' behind the end; a NUL in the text is a character that no token takes. */
static char peek(const Reader *r, uint32_t ahead) {
    size_t at = (size_t)r->at + ahead;
    return at < r->source->len ? r->source->text[at] : '\0';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_space(Reader *r) {
    for (;;) {
        char c = peek(r, 0);
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') r->at++;
        else if (c == '/' && peek(r, 1) == '/')
            while (r->at < r->source->len && peek(r, 0) != '\n') r->at++;
        else return;
    }
}

static Loc loc_from(const Reader *r, uint32_t begin) { return (Loc){r->source, begin, r->at}; }

static void set_token(Reader *r, TokenKind kind, uint32_t begin, const char *text) {
    if (!r->failed) r->token = (Token){kind, loc_from(r, begin), text};
}

static const char *slice(const Reader *r, uint32_t begin) {
    return arena_strndup(r->a, r->source->text + begin, r->at - begin);
}

static int hex_digit(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Behind the backslash.  '\0': no escape. */
static char read_escape(Reader *r) {
    char c = peek(r, 0);
    r->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case '"':
    case '\\': return c;
    case 'x': {
        int high = hex_digit(peek(r, 0)), low = high < 0 ? -1 : hex_digit(peek(r, 1));
        if (low < 0) return '\0';
        r->at += 2;
        return (char)(high * 16 + low);
    }
    default: return '\0';
    }
}

/* At the opening quote. */
static const char *read_quoted(Reader *r) {
    uint32_t begin = r->at++;
    Text t;
    text_init(&t, r->a);
    while (peek(r, 0) != '"') {
        uint32_t at = r->at;
        char c = peek(r, 0);
        if (r->at >= r->source->len || c == '\n') {
            reader_fail(r, loc_from(r, begin), "this string has no closing quote");
            return "";
        }
        r->at++;
        if (c == '\\') c = read_escape(r);
        if (c == '\0') {
            if (r->at > r->source->len) r->at = (uint32_t)r->source->len;
            reader_fail(r, loc_from(r, at), "not a character of a string; escapes are \\\" \\\\ \\n \\t \\xNN");
            return "";
        }
        text_putc(&t, c);
    }
    r->at++;
    return text_str(&t);
}

static void read_value(Reader *r) {
    uint32_t begin = r->at++;
    uint32_t name = r->at;
    const char *text;
    if (peek(r, 0) == '"') text = read_quoted(r);
    else {
        while (value_name_char(peek(r, 0))) r->at++;
        text = slice(r, name);
    }
    set_token(r, TOKEN_VALUE, begin, text);
    if (!*text) reader_fail(r, loc_from(r, begin), "a value needs a name");
}

static void read_digits(Reader *r) {
    while (is_digit(peek(r, 0))) r->at++;
}

static void read_number(Reader *r) {
    uint32_t begin = r->at;
    if (peek(r, 0) == '-') r->at++;
    if (peek(r, 0) == 'i') r->at += 3;
    read_digits(r);
    if (peek(r, 0) == '.') {
        r->at++;
        read_digits(r);
    }
    if (peek(r, 0) == 'e') {
        r->at += peek(r, 1) == '-' || peek(r, 1) == '+' ? 2 : 1;
        read_digits(r);
    }
    set_token(r, TOKEN_NUMBER, begin, slice(r, begin));
    if (word_goes_on(peek(r, 0))) reader_fail(r, loc_from(r, begin), "a number ends here, and a letter follows");
}

static bool number_starts(const Reader *r) {
    if (is_digit(peek(r, 0))) return true;
    return peek(r, 0) == '-' && (is_digit(peek(r, 1)) || (peek(r, 1) == 'i' && peek(r, 2) == 'n' && peek(r, 3) == 'f'));
}

void reader_next(Reader *r) {
    if (r->failed) return;
    skip_space(r);
    uint32_t begin = r->at;
    char c = peek(r, 0);
    if (r->at >= r->source->len) set_token(r, TOKEN_END, begin, "");
    else if (word_starts(c)) {
        while (word_goes_on(peek(r, 0))) r->at++;
        set_token(r, TOKEN_WORD, begin, slice(r, begin));
    } else if (number_starts(r)) read_number(r);
    else if (c == '%') read_value(r);
    else if (c == '"') {
        const char *text = read_quoted(r);
        set_token(r, TOKEN_STRING, begin, text);
    } else {
        r->at++;
        set_token(r, TOKEN_PUNCT, begin, slice(r, begin));
    }
}

void reader_start(Reader *r, Arena *a, Diags *d, const Source *source) {
    *r = (Reader){.a = a, .diags = d, .source = source};
    if (source->len > LONGEST_SOURCE)
        reader_fail(r, (Loc){0}, "%s: longer than %d bytes", source->name, LONGEST_SOURCE);
    reader_next(r);
}

/* ---- small steps ------------------------------------------------------------------------------------------------- */

bool reader_at_punct(const Reader *r, char punct) { return r->token.kind == TOKEN_PUNCT && r->token.text[0] == punct; }

bool reader_take(Reader *r, char punct) {
    if (!reader_at_punct(r, punct)) return false;
    reader_next(r);
    return true;
}

bool reader_at_word(const Reader *r, const char *word) {
    return r->token.kind == TOKEN_WORD && !strcmp(r->token.text, word);
}

bool reader_take_word(Reader *r, const char *word) {
    if (!reader_at_word(r, word)) return false;
    reader_next(r);
    return true;
}

void reader_need(Reader *r, char punct) {
    if (!reader_take(r, punct)) reader_expected(r, (char[]){'\'', punct, '\'', '\0'});
}

void reader_need_word(Reader *r, const char *word) {
    if (!reader_take_word(r, word)) reader_expected(r, arena_printf(r->a, "'%s'", word));
}

const char *reader_name(Reader *r, const char *what) {
    const char *text = r->token.text;
    if (r->token.kind == TOKEN_STRING || (r->token.kind == TOKEN_WORD && !word_is_reserved(text))) {
        reader_next(r);
        return text;
    }
    reader_expected(r, what);
    return "";
}

const char *reader_optional_name(Reader *r, const char *what) {
    return reader_take(r, '-') ? NULL : reader_name(r, what);
}

const char *reader_string(Reader *r, const char *what) {
    const char *text = r->token.text;
    if (r->token.kind == TOKEN_STRING) {
        reader_next(r);
        return text;
    }
    reader_expected(r, what);
    return "";
}

int64_t reader_int(Reader *r, const char *what, int64_t least, int64_t most) {
    char *end = NULL;
    errno = 0;
    long long v = r->token.kind == TOKEN_NUMBER ? strtoll(r->token.text, &end, 10) : 0;
    if (!end || *end || errno) {
        reader_expected(r, what);
        return least;
    }
    if (v < least || v > most) {
        reader_fail(r, r->token.loc, "%s must be from %lld to %lld", what, (long long)least, (long long)most);
        return least;
    }
    reader_next(r);
    return v;
}

double reader_float(Reader *r, const char *what) {
    static const double infinity = 1.0 / 0.0;
    double v = 0.0;
    const Token *t = &r->token;
    if (reader_at_word(r, "inf")) v = infinity;
    else if (reader_at_word(r, "nan")) v = infinity - infinity;
    else if (t->kind == TOKEN_NUMBER && !strcmp(t->text, "-inf")) v = -infinity;
    else if (t->kind != TOKEN_NUMBER || !decimal_parse(t->text, strlen(t->text), &v)) {
        reader_expected(r, what);
        return 0.0;
    }
    reader_next(r);
    return v;
}

bool reader_bool(Reader *r) {
    if (reader_take_word(r, "true")) return true;
    if (!reader_take_word(r, "false")) reader_expected(r, "'true' or 'false'");
    return false;
}

int reader_choice(Reader *r, const char *what, const char *const *names, int count) {
    int i = r->token.kind == TOKEN_WORD ? word_index(r->token.text, names, count) : -1;
    if (i < 0) {
        reader_expected(r, what);
        return 0;
    }
    reader_next(r);
    return i;
}
